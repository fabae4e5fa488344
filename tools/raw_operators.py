"""TensorFlow's raw operators one by one, as those that Flex would run: which of them convert, and compute the same.

    PYTHONPATH=tests python -m tools.raw_operators [NAME ...] [--flex FILE] [--failures]

FILE is ``tensorflow/lite/delegates/flex/allowlisted_flex_ops.cc`` of TensorFlow's sources, which is not part of
litecl: with it, only operators that it names count, and those that are not functions of tensors (queues, variables,
steps of optimizers, control flow, quantized types of TensorFlow's own) are left out. The exit code is 1 if a result
differs from TensorFlow's.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf
from rich.console import Console
from rich.table import Table

from support.raw_runs import Verdict, arguments_of, is_function, names, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for every operator, then the counts; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--flex", type=Path, metavar="FILE", help="only the operators that this list names")
    parser.add_argument("--failures", action="store_true", help="only rows that are not equal")
    args = parser.parse_args(arguments)
    listed = set(re.findall(r'"(\w+)"', args.flex.read_text())) if args.flex else None
    chosen = args.names or sorted(names() if listed is None else filter(is_function, listed))
    table, counts = Table(), Counter[Verdict]()
    for column in ("operator", "verdict", "operators", "why"):
        table.add_column(column, no_wrap=True)
    for name in chosen:
        result = run(name) if arguments_of(name) is not None else None
        verdict = Verdict.UNTRIED if result is None else result.verdict
        counts[verdict] += 1
        if not (args.failures and verdict is Verdict.EQUAL):
            told = ("", "") if result is None else (" ".join(result.operators), result.why)
            table.add_row(name, verdict.value, *told)
    console = Console(width=180)
    console.print(table, markup=False)
    console.print(f"{len(chosen)} operators: " + ", ".join(f"{n} {verdict.value}" for verdict, n in counts.items()))
    return int(bool(counts[Verdict.DIFFERENT]))


if __name__ == "__main__":
    tf.get_logger().setLevel("ERROR")
    sys.exit(main())
