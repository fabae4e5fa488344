"""``litecl bisect``: finds a model's first operator that a runtime computes wrong."""

import argparse
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from litecl.bisection.case import command, write_case
from litecl.bisection.find import Bisection, bisect
from litecl.bisection.page import page
from litecl.bisection.runners import EMULATED
from litecl.bisection.search import Fault
from litecl.bisection.tolerance import Error
from litecl.cli.command import (
    Output,
    count,
    device_arguments,
    device_options,
    folder,
    input_arguments,
    inputs,
    model_argument,
    numbers_argument,
    numbers_view,
    progress,
    tolerance,
)
from litecl.cli.halves import halves_data, halves_view
from litecl.cli.tables import line, number, shape, table, titled
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.perf.environment import plain

HELP = "find the first operator that computes a wrong result from right inputs"
EXAMPLES = """\
litecl bisect model.tflite                                  # litecl's device against the interpreter
litecl bisect model.tflite --suspect litert --reference litert-reference
litecl bisect model.tflite --input image=photo.jpg --relative 1e-3
litecl bisect model.tflite --suspect pocl -o smallest       # write the smallest faulty model
litecl bisect model.tflite --fp16 both --page halves.html   # an emulated GPU with 16-bit floats
"""
_RUNTIMES = (
    "device (litecl's), a device's name, litert, litert-reference (LiteRT's reference kernels), interpreter, or an "
    "emulation: fp16-storage, fp16-sums, fp16-both"
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    model_argument(parser)
    parser.add_argument(
        "--suspect", default="device", metavar="RUNTIME", help=f"the runtime to examine: {_RUNTIMES} (default: device)"
    )
    parser.add_argument(
        "--reference",
        default="interpreter",
        metavar="RUNTIME",
        help="the runtime to compare it with, one of the same (default: interpreter)",
    )
    parser.add_argument(
        "--fp16",
        choices=[*EMULATED.values()],
        help="suspect an emulated GPU that stores activations in halves, adds up in halves, or both; also say what "
        "each operator loses, and which nodes to keep in float32",
    )
    input_arguments(parser)
    parser.add_argument(
        "--relative",
        type=tolerance,
        metavar="X",
        help="allowed error of floats, relative to the largest magnitude in their tensor (default: 1e-4; in halves "
        "0.01)",
    )
    parser.add_argument(
        "--steps",
        type=count,
        metavar="N",
        help="allowed error of integers, in steps (default: 0 for litecl's devices, else 1)",
    )
    parser.add_argument(
        "-o", "--output", type=_folder, metavar="DIR", help="write the smallest faulty model to this folder"
    )
    numbers_argument(parser)
    device_arguments(parser)
    parser.set_defaults(dynamic_range=None)  # by default, bisect chooses it to match the runtimes


def _folder(text: str) -> Path:
    if text.lower().endswith(".html"):
        raise argparse.ArgumentTypeError(f"expected a folder for the smallest faulty model; a page: --page {text}")
    return folder(text)


def run(args: argparse.Namespace) -> Output:
    """Bisect a model. The exit code is 1 if the suspect is wrong."""
    interpreter = Interpreter(args.model)
    options = {name: value for name, value in device_options(args).items() if name != "device"}
    if args.dynamic_range is None:
        del options["dynamic_range"]
    suspect = args.device if args.device is not None and args.suspect == "device" else args.suspect
    with progress("running", None) as bar:
        bisection = bisect(
            args.model,
            suspect,
            args.reference,
            inputs(args, interpreter),
            fp16=args.fp16,
            relative=args.relative,
            steps=args.steps,
            numbers=args.numbers,
            tick=bar.now,
            **options,
        )
    files = [] if bisection.fault is None or args.output is None else write_case(bisection, args.output)
    again = command(bisection, args.output) if files else ""
    data = _data(bisection) | {"files": [*map(str, files)], "command": again}
    written = [Text(str(path)) for path in files] + ([Text(f"To reproduce: {again}")] if again else [])
    view = [*numbers_view(args.numbers), *_view(bisection), *halves_view(bisection.halves), *written]
    return Output(data, view, int(bisection.verdict != "right"), lambda: page(str(args.model), plain(data)))


def _data(bisection: Bisection) -> dict[str, Any]:
    return {
        "suspect": bisection.suspect,
        "reference": bisection.reference,
        "verdict": bisection.verdict,
        "relative": bisection.tolerance.relative,
        "steps": bisection.tolerance.steps,
        "numbers": bisection.numbers,
        "nodes": bisection.nodes,
        "output": None
        if bisection.output is None
        else {"index": bisection.output.output, "error": bisection.output.size, "worst": bisection.output.text},
        "fault": None if bisection.fault is None else _fault_data(bisection.fault),
        "growth": [{"node": point.node, "op": point.op, "error": point.size} for point in bisection.growth],
        "notes": [*bisection.notes],
        "halves": None if bisection.halves is None else halves_data(bisection.halves),
    }


def _error_data(error: Error) -> dict[str, Any]:
    return {"output": error.output, "error": error.size, "worst": error.text}


def _fault_data(fault: Fault) -> dict[str, Any]:
    return {
        "subgraph": fault.subgraph,
        "nodes": [*fault.nodes],
        "ops": [*fault.ops],
        "iterations": [*fault.iterations],
        "tensor": fault.tensor,
        **_error_data(fault.error),
        "inputs": [_described(value) for value in fault.inputs],
    }


def _described(value: Array) -> dict[str, Any]:
    numeric = value.dtype.kind in "fiu" and value.size > 0
    low, high = (float(value.min()), float(value.max())) if numeric else (None, None)
    return {"dtype": str(value.dtype), "shape": [*value.shape], "min": low, "max": high}


def _view(bisection: Bisection) -> list[RenderableType]:
    """Return the verdict as text, and tables."""
    pair = f"{bisection.suspect} against {bisection.reference}"
    if bisection.output is None:
        return [line(f"{pair}: all outputs are right", "green")]
    whole = f"output {bisection.output.output}: {bisection.output.text}"
    if bisection.fault is None:
        growth = table("node", "operator", "error")
        for point in bisection.growth:
            growth.add_row(str(point.node), point.op, number(point.size))
        verdict = f"{pair}: {whole}. Every node is right by itself: small errors grow from node to node."
        behind = titled("error behind each node, with all before it on the suspect", growth)
        return [line(verdict, "yellow"), behind, *_notes(bisection)]
    fault = bisection.fault
    names = ", ".join(f"{op} (node {node})" for op, node in zip(fault.ops, fault.nodes, strict=True))
    where = f" of subgraph {fault.subgraph}" if fault.subgraph else ""
    loop = f", in iteration {'.'.join(map(str, fault.iterations))}" if fault.iterations else ""
    operands = table("operand", "type", "shape", "min", "max")
    for position, value in enumerate(map(_described, fault.inputs)):
        bounds = number(value["min"]), number(value["max"])
        operands.add_row(str(position), value["dtype"], shape(value["shape"]), *bounds)
    return [
        line(f"{pair}: {whole}"),
        line(f"Wrong given right inputs: {names}{where}{loop}", "red"),
        line(f"{fault.tensor or 'its result'}: {fault.error.text} (error {number(fault.error.size)})"),
        titled("given", operands),
        *_notes(bisection),
    ]


def _notes(bisection: Bisection) -> list[Text]:
    return [line(f"Note: {note}", "yellow") for note in bisection.notes]
