"""The speed of the numpy interpreter compared with LiteRT's reference kernels.

The command is ``python -m tools.reference MODEL...``.
Both run in turns in one process, on the same random inputs, and each in one thread: LiteRT's reference kernels use no
more, and OPENBLAS_NUM_THREADS limits numpy's matrix products, unless the caller has set it.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from litecl.interpreter import Interpreter
from litecl.perf.contenders import PEERS
from litecl.perf.feeds import difference, outputs_of, prepare, random_inputs
from litecl.perf.timing import Stats, in_turns

_THREADS = "OPENBLAS_NUM_THREADS"


@dataclass(frozen=True)
class Result:
    """The times of both, and the largest difference of their outputs (``feeds.difference``)."""

    model: str
    ours: Stats
    reference: Stats
    difference: float

    @property
    def ratio(self) -> float:
        """LiteRT's median over litecl's: above 1 the interpreter is faster."""
        return self.reference.median_ms / self.ours.median_ms


def measure(path: str, runs: int, seed: int = 0) -> Result:
    """Times one model."""
    content = Path(path).read_bytes()
    ours, reference = Interpreter(model_content=content), PEERS["litert-reference"](content, 1)
    inputs = random_inputs(ours.get_input_details(), seed)
    for runtime in (ours, reference):
        prepare(runtime, inputs)
        runtime.invoke()
    apart = difference(outputs_of(ours), outputs_of(reference))
    # With one thread each no other threads spin, so no rest is needed.
    ours_ms, reference_ms = in_turns([ours.invoke, reference.invoke], runs, pause_s=0.0)
    return Result(Path(path).name, ours_ms, reference_ms, apart)


def table(results: Sequence[Result]) -> Table:
    """Return one line per model."""
    shown = Table("model", "litecl ms", "reference ms", "reference / litecl", "difference")
    for result in results:
        shown.add_row(
            result.model,
            f"{result.ours.median_ms:.2f}",
            f"{result.reference.median_ms:.2f}",
            f"{result.ratio:.2f}",
            f"{result.difference:.1e}",
        )
    return shown


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the models that are named and print the table."""
    parser = argparse.ArgumentParser(description="time the interpreter against LiteRT's reference kernels")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--runs", type=int, default=50, help="timed invokes of each, in turns (default 50)")
    options = parser.parse_args(arguments)
    if _THREADS not in os.environ:  # numpy reads it when it is loaded, which has already happened in this process
        given = sys.argv[1:] if arguments is None else arguments
        command = [sys.executable, "-m", "tools.reference", *given]
        sys.exit(subprocess.run(command, env={**os.environ, _THREADS: "1"}, check=False).returncode)
    Console().print(table([measure(path, options.runs) for path in options.models]))


if __name__ == "__main__":
    main()
