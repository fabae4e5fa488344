"""Compiles every program of the operators' cases and of the real models for GPUs, and compares with a baseline.

For each kernel function the worst of its programs: failed builds, bytes spilled, bytes of scratch, registers, local
memory, the share of global loads that take 16 bytes, the share of multiply-adds in the innermost loop, how many
work-items of Intel's run in lockstep, and the instructions of matrix units in the innermost loop. Exits with 1 if any
is worse than tests/tools/gpu_static.json says. What was compiled before is remembered.

Usage: python tests/tools/gpu_static.py [--kernel NAME]... [--target NAME]... [--jobs N] [--update]
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import gpu_compile
from support.all_cases import DEVICE_CASES
from support.gpu_compile import LEAST, MOST, Figures
from support.gpu_programs import Program, large, programs, zoo

_BASELINE = Path(__file__).with_suffix(".json")
# What is compiled for, each with the profile whose plans it gets. Where there is no compiler for a GPU, whether its
# programs build, without float64.
_TARGETS = {
    "sm_90": "sm_90",
    "gfx1100": "gfx1100",
    "bmg": "xe2_hpg",
    "tgllp": "xe_lp",
    "pvc": "xe_hpc",
    "dg2": "xe_hpg",
    "gfx90a": "gfx90a",
    "sm_80": "sm_80",
    "mali": "mali",
    "adreno": "adreno",
}
Table = dict[str, dict[str, Figures]]  # by target, and by file and function


def main() -> int:
    """Print the table and what is worse; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", action="append", help="programs of this kernel file only")
    parser.add_argument("--target", action="append", choices=_TARGETS, help="by default all")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--update", action="store_true", help="make what was found the baseline")
    arguments = parser.parse_args()
    wanted = arguments.target or [*_TARGETS]
    missing = [name for name in wanted if not gpu_compile.can_compile(name)]
    if missing:
        print(f"no compiler for {', '.join(missing)}: tests/tools/gpu_static.sh fetches them", file=sys.stderr)
        return 2
    found = _table(wanted, arguments.kernel, arguments.jobs)
    _show(found)
    known: Table = {
        target: {name: Figures(**fields) for name, fields in rows.items()}
        for target, rows in (json.loads(_BASELINE.read_text()) if _BASELINE.is_file() else {}).items()
    }
    if arguments.update:
        _write({target: known.get(target, {}) | found.get(target, {}) for target in (known | found)})
        return 0
    faults = [fault for target, rows in found.items() for fault in _worse(target, rows, known.get(target, {}))]
    print("\n".join(faults))
    total = sum(figures.programs for rows in found.values() for figures in rows.values())
    failed = sum(figures.failures for rows in found.values() for figures in rows.values())
    print(f"{total} kernels of programs, {failed} did not build, {len(faults)} figures worse than the baseline")
    return 1 if faults or failed else 0


def _table(targets: list[str], kernels: list[str] | None, jobs: int) -> Table:
    """Return the worst figures of every kernel function that a target's plans launch."""
    files = [*zoo()]
    found: Table = {}
    for target in targets:
        networks = (*large(), *files)
        models = (*(case.model() for case in DEVICE_CASES), *networks)
        made = programs(_TARGETS[target], models, networks)
        wanted = {program: entries for program, entries in made.items() if kernels is None or program[0] in kernels}
        with ThreadPoolExecutor(jobs) as pool:
            figures = pool.map(partial(_compiled, target), wanted)
            found[target] = _gathered(dict(zip(wanted, figures, strict=True)), wanted)
        print(f"{target}: {len(wanted)} programs", file=sys.stderr, flush=True)
    return found


def _compiled(target: str, program: Program) -> dict[str, Figures]:
    return gpu_compile.compiled(target, program[0], dict(program[1]))


def _gathered(made: Mapping[Program, Mapping[str, Figures]], wanted: Mapping[Program, set[str]]) -> dict[str, Figures]:
    worst: dict[str, Figures] = {}
    for program, figures in made.items():
        for entry in wanted[program]:
            name = f"{program[0]}.{entry}"
            own = figures.get(entry) or figures[""]
            if own.failures:
                print(f"{name} with {dict(program[1])} does not build", file=sys.stderr)
            worst[name] = worst[name].with_worst_of(own) if name in worst else own
    return dict(sorted(worst.items()))


def _worse(target: str, rows: Mapping[str, Figures], known: Mapping[str, Figures]) -> list[str]:
    """Return a line for every figure that is worse than the baseline's."""
    faults = []
    for name, figures in rows.items():
        if name not in known:
            continue
        for field in (*MOST, *LEAST):
            got, had = getattr(figures, field), getattr(known[name], field)
            if got is not None and had is not None and (got > had if field in MOST else got < had):
                faults.append(f"{target} {name}: {field} {got}, was {had}")
    return faults


def _show(found: Table) -> None:
    heads = (
        "target",
        "kernel",
        "programs",
        "failed",
        "spilled",
        "scratch",
        "registers",
        "local",
        "16-byte",
        "fma",
        "simd",
        "matrix",
    )
    print(("{:9}{:58}" + "{:>10}" * 10).format(*heads))
    for target, rows in found.items():
        for name, figures in rows.items():
            values = ["" if value is None else value for value in asdict(figures).values()]
            print(("{:9}{:58}" + "{:>10}" * 10).format(target, name, *values))


def _write(found: Table) -> None:
    """Write the baseline, a kernel a line."""
    by_target = defaultdict(list)
    for target, rows in found.items():
        for name, figures in rows.items():
            known = {field: value for field, value in asdict(figures).items() if value is not None}
            by_target[target].append(f"  {json.dumps(name)}: {json.dumps(known)}")
    parts = (f"{json.dumps(target)}: {{\n" + ",\n".join(lines) + "\n}" for target, lines in by_target.items())
    _BASELINE.write_text("{\n" + ",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    sys.exit(main())
