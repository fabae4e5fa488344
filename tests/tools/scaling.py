"""Throughput by the number of interpreters: ``python -m tools.scaling MODEL...``.

One, two and four interpreters (``--threads``) run in as many threads, each with one thread of its own, in litecl and in
LiteRT, in turns. The best round counts. Measure on an idle machine with as many cores. ``litecl bench --streams`` does
it once, for any device and number of threads.
"""

import argparse
import importlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.perf.feeds import Runtime, prepare, random_inputs
from litecl.perf.streams import throughput

Rates = dict[tuple[str, int], float]  # invokes a second by runtime and number of interpreters


def _litert(path: str) -> Runtime:
    runtime: Runtime = importlib.import_module("ai_edge_litert.interpreter").Interpreter(path, num_threads=1)
    return runtime


_RUNTIMES: dict[str, Callable[[str], Runtime]] = {
    "litecl": lambda path: Interpreter(path, delegates=[CLDelegate(num_threads=1)]),
    "LiteRT": _litert,
}


def _opened(runtime: str, path: str) -> Runtime:
    interpreter = _RUNTIMES[runtime](path)
    interpreter.allocate_tensors()
    prepare(interpreter, random_inputs(interpreter.get_input_details(), seed=0))
    interpreter.invoke()
    return interpreter


def measure(path: str, numbers: Sequence[int], rounds: int, seconds: float) -> Rates:
    """Return the best rates of a model."""
    best: Rates = {}
    opened = {name: [_opened(name, path) for _ in range(max(numbers))] for name in _RUNTIMES}
    for _ in range(rounds):
        for name, interpreters in opened.items():
            for number in numbers:
                found, _ = throughput([one.invoke for one in interpreters[:number]], seconds)
                best[name, number] = max(found, best.get((name, number), 0.0))
    return best


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the models that are named and print the table."""
    parser = argparse.ArgumentParser(description="how throughput grows with interpreters in threads of their own")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each measurement (default 0.3)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    table = Table("model", *(f"{name}, {number}" for name in _RUNTIMES for number in options.threads))
    for path in options.models:
        rates = measure(path, options.threads, options.rounds, options.seconds)
        first = options.threads[0]
        cells = [f"{value:.0f}/s ({value / rates[name, first]:.2f}x)" for (name, _), value in rates.items()]
        table.add_row(Path(path).name, *cells)
        if options.json:
            print(json.dumps({"model": path, "rates": {f"{n} {k}": v for (n, k), v in rates.items()}}), flush=True)
    if not options.json:
        Console().print(table)


if __name__ == "__main__":
    main()
