"""``litecl diff``: compares two models."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, get_args

from rich.console import RenderableType
from rich.text import Text

from litecl.cli.command import (
    Output,
    given_inputs,
    input_arguments,
    model_file,
    numbers_argument,
    numbers_view,
    tolerance,
)
from litecl.cli.outputs import OutputFile
from litecl.cli.tables import line, lines, number, table, titled, to_json
from litecl.diff.compare import diff_models
from litecl.diff.page import numbers, page, verdict
from litecl.interpreter import Interpreter
from litecl.interpreter.dynamic_range import DynamicRange
from litecl.interpreter.file.reader import read
from litecl.interpreter.whole_files import put_text
from litecl.perf.environment import plain

HELP = "compare two models: nodes, tensors, constants, and each layer's results on the same inputs"
EXAMPLES = """\
litecl diff a.tflite b.tflite
litecl diff a.tflite b.tflite --relative 0.01       # exit code 0 up to this error
litecl diff float.tflite int8.tflite -o diff.html   # a page
litecl diff a.tflite b.tflite --input image=photo.jpg
litecl diff a.tflite b.tflite --shape x=8,4 --random 7 --json
"""
FAILED = 2  # exit code for errors, as 1 means that the models differ
_ENDINGS = (".html", ".json")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("a", type=model_file, metavar="A.tflite", help="a model")
    parser.add_argument("b", type=model_file, metavar="B.tflite", help="the other model")
    input_arguments(parser)
    parser.add_argument(
        "--relative",
        type=tolerance,
        default=0.0,
        metavar="X",
        help="allowed relative RMS error of outputs for exit code 0 (default: 0)",
    )
    parser.add_argument(
        "--dynamic-range",
        choices=get_args(DynamicRange),
        default="reference",
        help="how activations meet integer weights in both (default: reference, as in LiteRT's reference kernels)",
    )
    numbers_argument(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=OutputFile(*_ENDINGS),
        action="append",
        default=[],
        metavar="FILE",
        help="write the result as a page (.html) or as JSON (.json); may be repeated",
    )


def run(args: argparse.Namespace) -> Output:
    """Compare two models. The exit code is 0 if they match, 1 if their structure differs or an output exceeds
    ``--relative``, and 2 if they can't be compared.
    """
    a, b = read(args.a), read(args.b)
    given, shapes = given_inputs(args, Interpreter(a)), dict(args.shape)
    modes = {"dynamic_range": args.dynamic_range, "numbers": args.numbers}
    result = diff_models(a, b, given, shapes=shapes, seed=args.random, **modes)
    head = {"a": str(args.a), "b": str(args.b), "relative": args.relative, "numbers": args.numbers}
    head["same_structure"] = result.same_structure
    data = {**head, **asdict(result)}
    for path in args.output:
        put_text(path, page(plain(data)) if path.suffix.lower() == ".html" else to_json(data) + "\n")
    view = [*numbers_view(args.numbers), *_view(data), *(Text(str(path)) for path in args.output)]
    return Output(data, view, int(not result.is_within(args.relative)), lambda: page(plain(data)))


def _view(data: Mapping[str, Any]) -> list[RenderableType]:
    view: list[RenderableType] = [*map(Text, data["ends"])]
    only = ("A", data["only_a"]), ("B", data["only_b"])
    view += [_rows(f"only in {side}", ("node", "operator"), list(nodes.items())) for side, nodes in only if nodes]
    if data["replaced"]:
        columns = "nodes of A", "operators", "nodes of B", "operators"
        view.append(_rows("fused, split or replaced", columns, list(map(_replaced, data["replaced"]))))
    if data["changed"]:
        columns = "node", "operator", "name", "difference, A -> B"
        view.append(_rows("changed", columns, list(map(_changed, data["changed"]))))
    layers = [row for row in data["layers"] if row["relative"]]
    if layers:
        columns = "node", "operator", "name", "relative error"
        view.append(_rows("results that differ, on the same inputs", columns, list(map(_layer, layers))))
    return [*view, line("; ".join(verdict(data)))]


def _rows(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str | Text, ...]]) -> RenderableType:
    view = table(*columns)
    for row in rows:
        view.add_row(*row)
    return titled(title, view)


def _replaced(row: Mapping[str, Any]) -> tuple[str, ...]:
    sides = zip((row["a"], row["b"]), (row["ops_a"], row["ops_b"]), row["subgraphs"], strict=True)
    return tuple(cell for nodes, ops, graph in sides for cell in (numbers(nodes, graph), ", ".join(ops)))


def _changed(row: Mapping[str, Any]) -> tuple[str | Text, ...]:
    pair = [numbers([row[side]], graph) for side, graph in zip("ab", row["subgraphs"], strict=True)]
    return " -> ".join(dict.fromkeys(pair)), row["op"], _short(row["name"]), lines(row["what"])


def _layer(row: Mapping[str, Any]) -> tuple[str, ...]:
    nodes = str(row["a"]) if row["a"] == row["b"] else f"{row['a']} -> {row['b']}"
    return nodes, row["op"], _short(row["name"]), number(row["relative"])


def _short(name: str) -> str:
    """Return the first of the names that a converter has merged."""
    return name.partition(";")[0]
