"""``litecl diff``: the differences of two models."""

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from litecl.cli.command import Output, input_arguments, inputs, model_file
from litecl.cli.tables import number, table, titled
from litecl.diff.compare import Difference, diff_models
from litecl.interpreter import Interpreter

HELP = "compare two models: nodes, tensors, constants, and each layer's results on the same inputs"
EXAMPLES = """\
litecl diff a.tflite b.tflite
litecl diff a.tflite b.tflite --relative 0.01       # exit code 0 up to this error
litecl diff a.tflite b.tflite --input image=photo.jpg
litecl diff a.tflite b.tflite --shape x=8,4 --random 7 --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("a", type=model_file, metavar="A.tflite", help="a model")
    parser.add_argument("b", type=model_file, metavar="B.tflite", help="the other model")
    input_arguments(parser)
    parser.add_argument(
        "--relative",
        type=float,
        default=0.0,
        metavar="X",
        help="allowed relative RMS error of outputs for exit code 0 (default: 0)",
    )


def run(args: argparse.Namespace) -> Output:
    """Compare two models. The exit code is 1 if their structure differs, or an output by more than ``--relative``."""
    a, b = (Path(path).read_bytes() for path in (args.a, args.b))
    found = diff_models(a, b, inputs(args, Interpreter(model_content=a)))
    data = {"a": str(args.a), "b": str(args.b), "same_structure": found.same_structure, **asdict(found)}
    differs = not found.same_structure or any(not relative <= args.relative for relative in found.outputs)
    return Output(data, _view(found), int(differs))


def _view(found: Difference) -> list[RenderableType]:
    view: list[RenderableType] = [*map(Text, found.ends)]
    view += [_only(name, nodes) for name, nodes in (("only in A", found.only_a), ("only in B", found.only_b)) if nodes]
    if found.changed:
        changed = table("node", "operator", "name", "difference, A -> B")
        for row in found.changed:
            changed.add_row(_numbers(row.a, row.b), row.op, _short(row.name), "\n".join(row.what))
        view.append(titled("changed", changed))
    layers = table("node", "operator", "name", "relative error")
    for layer in found.layers:
        if layer.relative:
            layers.add_row(_numbers(layer.a, layer.b), layer.op, _short(layer.name), number(layer.relative))
    if layers.row_count:
        view.append(titled("results that differ, on the same inputs", layers))
    outputs = ", ".join(number(relative) for relative in found.outputs)
    structure = "the same structure" if found.same_structure else "structures differ"
    return [*view, Text(f"{structure}; relative errors of the outputs: {outputs}")]


def _only(title: str, nodes: Mapping[int, str]) -> RenderableType:
    made = table("node", "operator")
    for node, name in nodes.items():
        made.add_row(str(node), name)
    return titled(title, made)


def _numbers(a: int, b: int) -> str:
    return str(a) if a == b else f"{a} -> {b}"


def _short(name: str) -> str:
    """Return a name without those that a converter has merged into it."""
    return name.partition(";")[0]
