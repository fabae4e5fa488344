"""Measures the first answer: the CPU time of a whole process, imports included, with an empty and with a full cache.

Processes of litecl and of LiteRT take turns on one processor, with one thread each. Every process reads a model,
allocates tensors and invokes once; its compilers' time counts. Prints a table for docs/measurements/first_answer.md.

With --ahead, a column of empty caches beside objects compiled ahead, in a folder of ``tools.objects``.

    PYTHONPATH=tests python -m tools.first_answer MODEL ... [--turns 5] [--core 1] [--ahead FOLDER]
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_RUN = "i = Interpreter(sys.argv[1]{}); i.allocate_tensors(); i.invoke()"
_OURS = "import sys; from litecl import CLDelegate, Interpreter; " + _RUN.format(
    ", delegates=[CLDelegate('native', num_threads=1, cache_dir=sys.argv[2])]"
)
_LITERT = "import sys; from ai_edge_litert.interpreter import Interpreter; " + _RUN.format(", num_threads=1")


def _taken_s(code: str, *arguments: str, core: int, ahead: Path | None = None) -> float:
    """Run a process; return its CPU time, that of its children included. Raises RuntimeError if it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if ahead is not None:
        environment["PYTHONPATH"] = os.pathsep.join([str(ahead.resolve()), environment.get("PYTHONPATH", "")])
    command = ["taskset", "-c", str(core), sys.executable, "-c", code, *arguments]
    silent = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=silent, stderr=silent, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{arguments[0]}: exit status {status}")
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--core", type=int, default=1)
    parser.add_argument("--ahead", type=Path)
    given = parser.parse_args()
    kinds = ("empty", *(["ahead"] if given.ahead else []), "full", "LiteRT")
    load = os.getloadavg()[0]
    print(f"| model | {' | '.join(kinds)} | full / LiteRT |\n|{'---|' * (len(kinds) + 2)}")
    start_s = time.perf_counter()
    for model in map(str, given.models):
        times: dict[str, list[float]] = {name: [] for name in kinds}
        for turn in range(given.turns + 1):
            folder = tempfile.mkdtemp()
            try:
                taken = {}
                for name in kinds:
                    ahead, cache = (given.ahead, f"{folder}/ahead") if name == "ahead" else (None, folder)
                    code = _LITERT if name == "LiteRT" else _OURS
                    taken[name] = _taken_s(code, model, cache, core=given.core, ahead=ahead)
            finally:
                shutil.rmtree(folder)
            if turn:  # the first one reads files from the disk
                for name, taken_s in taken.items():
                    times[name].append(taken_s)
        least = {name: min(each) for name, each in times.items()}
        shown = " | ".join(f"{least[n]:.2f} ({statistics.median(times[n]):.2f})" for n in kinds)
        print(f"| {Path(model).stem} | {shown} | {least['full'] / least['LiteRT']:.2f} |", flush=True)
    loads = f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after"
    print(f"\nminima (medians) of {given.turns} turns, CPU s; {loads}, {time.perf_counter() - start_s:.0f} s")


if __name__ == "__main__":
    main()
