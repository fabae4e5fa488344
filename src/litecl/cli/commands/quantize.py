"""``litecl quantize``: quantizes a float ``.tflite`` file."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from litecl.cli import quantization
from litecl.cli.command import Output, model_argument, progress
from litecl.cli.outputs import OutputFile
from litecl.cli.quantization import notes_of, write_files
from litecl.cli.tables import line, size, table
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.reader import content_of
from litecl.interpreter.whole_files import put

if TYPE_CHECKING:
    from litecl.converter.quantization.report import StoredWeights

HELP = "quantize a .tflite file in float, by a recipe or by flags"
EXAMPLES = """\
litecl quantize float.tflite --recipe dynamic_wi8_afp32 -o small.tflite
litecl quantize float.tflite --recipe recipe.json --calibrate samples.npz -o small.tflite
litecl quantize float.tflite --quantize int4 --block 32 -o small.tflite
litecl quantize float.tflite --budget 40MB --calibrate samples.npz -o small.tflite --save-recipe recipe.json
litecl quantize float.tflite --min-sqnr 30 --calibrate samples.npz -o small.tflite --frontier frontier.svg
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    model_argument(parser)
    parser.add_argument(
        "-o", "--output", type=OutputFile(), required=True, metavar="OUT", help="the .tflite file to write"
    )
    quantization.arguments(parser)
    parser.set_defaults(fp16_safe=False)


def run(args: argparse.Namespace) -> Output:
    """Quantize, and show the stored weights."""
    from litecl.converter import Converter

    how = quantization.quantization(args)
    if how is None:
        raise ConversionError("expected --recipe, --quantize, --budget or --min-sqnr")
    before = len(content_of(args.model))
    converter = Converter.from_tflite(args.model, how, roll_up=False)  # recipes refer to the file's own nodes
    searches = args.budget is not None or args.min_sqnr_db is not None
    with progress("measuring layers" if searches else "quantizing", None) as bar:
        content = converter.convert(progress=bar.reached)
    put(args.output, content)
    report = converter.report.quantization
    write_files(args, report)
    data: dict[str, Any] = {"output": str(args.output), "float_bytes": before, "size_bytes": len(content)}
    data["quantization"] = None if report is None else report.to_dict()
    view: list[RenderableType] = [
        Text(f"{args.output}: {size(len(content))}, before {size(before)}"),
        *notes_of(report),
    ]
    if report is None and len(content) >= before:
        view.append(line("note: the file is no smaller: its weights are too few, or in integers already"))
    if report is not None and report.frontier is not None:
        view.append(Text(str(report.frontier)))
    elif report is not None and report.weights:
        view.append(_weights_view(report.weights))
    if report is not None:
        view += [line(f"output {o.name} of {o.signature}: SQNR {o.sqnr_db:.1f} dB") for o in report.outputs]
    return Output(data, view)


def _weights_view(weights: "Sequence[StoredWeights]") -> Table:
    view = table("op", "stored as", "before", "after", "SQNR", "constant")
    for row in weights:
        view.add_row(row.op, row.form, size(row.float_bytes), size(row.stored_bytes), f"{row.sqnr_db:.1f} dB", row.name)
    return view
