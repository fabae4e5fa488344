"""A table of small functions: litecl's conversions against those of TensorFlow's own converter, one by one.

    PYTHONPATH=tests python -m tools.operators [NAME ...] [--no-peer] [--json FILE]

For every function whose name contains a NAME: operators of both, and whether results are TensorFlow's in LiteRT and in
litecl. The peer is asked for builtin operators first, then for TensorFlow's own beside them ("flex"). The exit code is
1 where a conversion of ours fails that the peer has, or a result of ours differs.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from rich.console import Console
from rich.table import Table

from litecl.converter import Converter
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import Array
from support.compare import is_close
from support.conversion import invoke, litert
from support.tf_functions import FUNCTIONS, TfFunction
from support.tf_operators import OPERATORS

_TOLERANCE = 2e-5
_RUNTIMES: dict[str, Callable[[bytes], Any]] = {"litert": litert, "litecl": lambda c: Interpreter(model_content=c)}


@dataclass(frozen=True)
class Row:
    """What became of one function; ``ours`` and ``peer`` count operators, None where there is no file."""

    name: str
    ours: int | None
    peer: int | None
    flex: bool
    verdict: str

    @property
    def good(self) -> bool:
        """True if our file is right, or the peer has none either."""
        return self.verdict == "equal" or (self.ours is None and self.peer is None)

    @property
    def longer(self) -> bool:
        """True if the peer needs fewer builtin operators."""
        return self.ours is not None and self.peer is not None and not self.flex and self.ours > self.peer


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for every function, then the sums; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--no-peer", action="store_true", help="do not run TensorFlow's converter")
    parser.add_argument("--json", type=Path, help="write the rows there too")
    args = parser.parse_args(arguments)
    cases = [c for c in (*OPERATORS, *FUNCTIONS) if not args.names or any(name in c.name for name in args.names)]
    rows = [measure(case, with_peer=not args.no_peer) for case in cases]
    table = Table("function", "litecl", "TFLiteConverter", "results")
    for row in rows:
        peer = "-" if row.peer is None else f"{row.peer} with flex" if row.flex else str(row.peer)
        table.add_row(row.name, str(row.ours or "-"), peer, row.verdict + (", longer" if row.longer else ""))
    console = Console(width=140)
    console.print(table)
    console.print(
        f"{len(rows)} functions: {sum(row.verdict == 'equal' for row in rows)} converted and equal, by the peer "
        f"{sum(row.peer is not None for row in rows)} ({sum(row.flex for row in rows)} with flex); "
        f"{sum(row.longer for row in rows)} longer than the peer's"
    )
    if args.json is not None:
        args.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return int(not all(row.good for row in rows))


def measure(case: TfFunction, *, with_peer: bool = True) -> Row:
    """Return the row of a function."""
    function = tf.function(case.function, autograph=False)
    concrete = function.get_concrete_function(*case.specs)
    peer, flex = _peer(concrete) if with_peer else (None, False)
    try:
        content = Converter.from_concrete_functions([concrete]).convert()
    except ConversionError as error:
        return Row(case.name, None, peer, flex, str(error)[:80])
    computed = function if case.reference is None else tf.function(case.reference, autograph=False)
    return Row(case.name, _count(content), peer, flex, _compared(content, computed, case.feeds()))


def _peer(concrete: Any) -> tuple[int | None, bool]:
    """Return how many operators the peer needs, and whether some of them are TensorFlow's."""
    sets = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
    for count in (1, 2):
        converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete])
        converter.target_spec.supported_ops = sets[:count]
        try:
            return _count(converter.convert()), count == 2
        except Exception:  # of many kinds
            continue
    return None, False


def _count(content: bytes) -> int:
    return sum(len(graph.nodes) for graph in read(content).subgraphs)


def _compared(content: bytes, function: Any, values: Sequence[Array]) -> str:
    expected = [np.asarray(y) for y in tf.nest.flatten(function(*map(tf.constant, values)))]
    for name, make in _RUNTIMES.items():
        got = invoke(make(content), values)
        if not all(is_close(a, b, _TOLERANCE) for a, b in zip(got, expected, strict=True)):
            return f"{name} differs"
    return "equal"


if __name__ == "__main__":
    tf.get_logger().setLevel("ERROR")
    sys.exit(main())
