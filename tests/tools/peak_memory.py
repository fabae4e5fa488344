"""The memory that a model takes: ``python -m tools.peak_memory MODEL...`` (Linux).

Every runtime gets a process of its own, which loads the model from its file, prepares it and runs it twice. The report
says how far its resident memory rose above its size after all imports: at its peak, and at the end. Pages of the file
count as long as they are in memory.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from litecl.delegate import CLDelegate
from litecl.delegate.devices import devices
from litecl.interpreter import Interpreter
from litecl.perf.contenders import peer_package
from litecl.perf.feeds import Runtime, prepare, random_inputs
from litecl.perf.resident import Usage, usage


def _litert(path: str, threads: int) -> Runtime:
    runtime: Runtime = peer_package().Interpreter(path, num_threads=threads)
    return runtime


_RUNTIMES: dict[str, Callable[[str, int], Runtime]] = {
    "delegate": lambda path, threads: Interpreter(path, delegates=[CLDelegate(num_threads=threads)]),
    "interpreter": lambda path, threads: Interpreter(path),
    "litert": _litert,
}


def measure(runtime: str, path: str, threads: int) -> Usage:
    """Run a model in a process of its own."""
    module = ["-m", "tools.peak_memory"]
    command = [sys.executable, *module, path, "--threads", str(threads), "--inside", runtime]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    peak, end = (int(number) for number in printed.split()[-2:])
    return Usage(peak, end)


def _inside(runtime: str, path: str, threads: int) -> Usage:
    """Return the measurement, in this process."""
    peer_package()
    devices()  # the devices' runtime is loaded, as the other runtime is

    def run() -> Runtime:
        model = _RUNTIMES[runtime](path, threads)
        model.allocate_tensors()
        prepare(model, random_inputs(model.get_input_details(), seed=0))
        for _ in range(2):
            model.invoke()
        return model

    return usage(run)


def table(paths: Sequence[str], threads: int) -> Table:
    """Return one line per model: megabytes of the file, and of each runtime at the peak and at the end."""
    view = Table("model", "file MB", *(f"{name} MB, peak / end" for name in _RUNTIMES))
    for path in paths:
        used = [measure(name, path, threads) for name in _RUNTIMES]
        cells = [f"{usage.peak / 1e6:.1f} / {usage.end / 1e6:.1f}" for usage in used]
        view.add_row(Path(path).name, f"{Path(path).stat().st_size / 1e6:.1f}", *cells)
    return view


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the models that are named and print the table."""
    parser = argparse.ArgumentParser(description="how much memory a model takes, in litecl and in LiteRT")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=1, help="of each runtime (default 1)")
    parser.add_argument("--inside", choices=_RUNTIMES, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.inside:
        usage = _inside(options.inside, options.models[0], options.threads)
        print(usage.peak, usage.end)
    else:
        Console().print(table(options.models, options.threads))


if __name__ == "__main__":
    main()
