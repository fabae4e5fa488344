"""Runs random valid graphs with the interpreter and on a device, in every mode, and reports where they differ.

``python -m tools.fuzz_graphs --graphs 100000 --jobs 2`` draws models of every operator with a kernel:
odd shapes, all types, fusions, joins, states over several invokes, loops and branches, signatures and resizes. Integers
must be equal; floats as close as a run of the interpreter with other roundings is (``graph_fuzz/oracle.py``). What
differs is made small, printed, and written to ``--output``. ``--only 12:345`` runs one graph again.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from multiprocessing.connection import wait
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tools.graph_fuzz.modes import MODES, fault_of
from tools.graph_fuzz.work import Batch, Result, Worker, batch

_DEFAULT_BATCH = 1000
_SHARES = (  # of the modes among batches
    "one thread",
    "two threads",
    "queued",
    "as a GPU",
    "one thread",
    "OpenCL, several groups",
    "two threads",
    "fp16 weights",
    "all tensors kept",
    "OpenCL, queued",
    "profile",
    "OpenCL, one group",
)


def fuzz(
    batches: Sequence[Batch], jobs: int, cache_dir: Path, output: Path | None, time_limit_s: float, progress: Progress
) -> Result:
    """Run batches in processes side by side."""
    total, start_s = Result(), time.monotonic()
    waiting, workers = list(batches), list[Worker]()
    task = progress.add_task("graphs", total=sum(batch.graphs for batch in batches))
    while waiting or workers:
        if time.monotonic() - start_s > time_limit_s:
            waiting.clear()
        while waiting and len(workers) < jobs:
            workers.append(Worker(waiting.pop(0), cache_dir, output))
        ready = wait([worker.receiver for worker in workers], timeout=1.0)
        still = []
        for worker in workers:
            result = None
            if worker.receiver in ready:
                try:
                    result = worker.hear()
                    progress.advance(task, 0 if result else 1)
                except EOFError:
                    result = worker.lost("crash")
            elif worker.hangs():
                result = worker.lost("hang")
            if result is None:
                still.append(worker)
                continue
            total.add(result)
            done = f"batch {worker.batch.number}, {worker.batch.mode}: {result.graphs.total()} graphs"
            progress.console.print(f"{done}, {result.skipped} left out, {len(result.findings)} findings")
            for finding in result.findings:
                progress.console.print(
                    f"{finding.name} {finding.batch.mode}: {finding.kind}: {finding.what}\n{finding.text}",
                    markup=False,
                    highlight=False,
                )
            lost = [finding for finding in result.findings if finding.kind in ("crash", "hang")]
            if lost and (left := _after(worker.batch, lost[0].graph)).graphs:
                waiting.insert(0, left)
        workers = still
    return total


def _after(batch: Batch, graph: int) -> Batch:
    """Return the rest of a batch after a graph; nothing for one that failed before its first."""
    first = graph + 1 if graph >= 0 else batch.first + batch.graphs
    return replace(batch, first=first, graphs=batch.first + batch.graphs - first)


def _show(result: Result, console: Console) -> None:
    modes = Table("mode", "graphs", title=f"{result.graphs.total()} graphs, {result.skipped} left out")
    for name, count in result.graphs.most_common():
        modes.add_row(name, str(count))
    console.print(modes)
    nodes = Table("operator", "nodes on the device by type", "by mode", "on the CPU")
    for op in sorted({key[0] for key in (*result.nodes, *result.on_cpu)}):
        of_op = {key: count for key, count in result.nodes.items() if key[0] == op}
        kinds, by_mode = ({key[i]: 0 for key in sorted(of_op)} for i in (1, 2))
        for key, count in of_op.items():
            kinds[key[1]] += count
            by_mode[key[2]] += count
        on_cpu = sum(count for key, count in result.on_cpu.items() if key[0] == op)
        texts = (", ".join(f"{name} {count}" for name, count in counts.items()) for counts in (kinds, by_mode))
        nodes.add_row(op, *texts, str(on_cpu))
    console.print(nodes)


def _json(result: Result, seconds: float) -> str:
    return json.dumps(
        {
            "graphs": dict(result.graphs),
            "left_out": result.skipped,
            "seconds": round(seconds, 1),
            "nodes": {" | ".join(key): count for key, count in sorted(result.nodes.items())},
            "on_cpu": {" | ".join(key): count for key, count in sorted(result.on_cpu.items())},
            "launches": dict(result.launches),
            "findings": [asdict(f) | {"name": f.name} for f in result.findings],
        },
        indent=1,
    )


def _usable() -> list[str]:
    """Return the modes that this machine can run; the others are told of, with the reason."""
    faults = {mode: fault_of(MODES[mode]) for mode in dict.fromkeys(_SHARES)}
    for mode, fault in faults.items():
        if fault:
            print(f"left out: {mode}: {fault}", file=sys.stderr)
    return [mode for mode in _SHARES if not faults[mode]]


def _batches(args: argparse.Namespace) -> list[Batch]:
    modes = [mode for mode in _SHARES if mode in args.modes] if args.modes else _usable()
    if args.only:
        number, graph = (int(part) for part in args.only.split(":"))
        return [replace(batch(args.seed, number, 1, modes, args.families, strange=args.strange), first=graph)]
    numbers = range(args.start, args.start - (-args.graphs // args.batch))
    graphs = min(args.batch, args.graphs)
    return [batch(args.seed, number, graphs, modes, args.families, strange=args.strange) for number in numbers]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if something differs, fails, crashes or hangs."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz_graphs", description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=5000, metavar="N", help="default: 5000")
    parser.add_argument("--seed", type=int, default=0, help="of all random choices (default: 0)")
    parser.add_argument("--batch", type=int, default=_DEFAULT_BATCH, metavar="N", help="graphs per process")
    parser.add_argument(
        "--families", type=int, default=5, metavar="N", help="kinds of nodes in each batch (default: 5)"
    )
    parser.add_argument("--start", type=int, default=0, metavar="BATCH", help="the first batch (default: 0)")
    parser.add_argument("--modes", nargs="+", choices=MODES, metavar="MODE", help=f"default: all of {list(MODES)}")
    parser.add_argument("--only", metavar="BATCH:GRAPH", help="run one graph again, with the other options unchanged")
    parser.add_argument(
        "--strange", action="store_true", help="feed infinities, NaN, denormal and extreme numbers among the floats"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes side by side (default: 1)")
    parser.add_argument(
        "--time-limit", type=float, default=float("inf"), metavar="S", help="start no new batches after this time"
    )
    parser.add_argument(
        "--cache", type=Path, metavar="DIR", help="keep compiled programs there for later runs (default: none)"
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="where models that differ are written")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    args = parser.parse_args(argv)
    console = Console(stderr=args.json)
    start_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="litecl-fuzz-") as folder, Progress(console=console) as progress:
        cache = args.cache or Path(folder)
        cache.mkdir(parents=True, exist_ok=True)
        # Before the workers load PoCL and numpy; each takes one core.
        os.environ |= {"POCL_CACHE_DIR": str(cache), "OPENBLAS_NUM_THREADS": "1"}
        result = fuzz(_batches(args), args.jobs, cache, args.output, args.time_limit, progress)
    if args.json:
        print(_json(result, time.monotonic() - start_s))
    else:
        _show(result, console)
    return 1 if result.findings else 0


if __name__ == "__main__":
    sys.exit(main())
