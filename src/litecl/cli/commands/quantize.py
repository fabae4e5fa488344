"""``litecl quantize``: quantizes a float ``.tflite`` file, or the models of a ``.litertlm`` bundle."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from litecl.cli import quantization
from litecl.cli.command import A_MODEL, Output, model_file, progress
from litecl.cli.outputs import ModelOutput
from litecl.cli.quantization import notes_of, write_files
from litecl.cli.tables import line, size, table
from litecl.generate import litertlm
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.reader import content_of
from litecl.interpreter.whole_files import put

if TYPE_CHECKING:
    from litecl.converter.quantization.report import StoredWeights

HELP = "quantize a .tflite file in float, or the models of a .litertlm bundle, by a recipe or by flags"
EXAMPLES = """\
litecl quantize float.tflite --recipe dynamic_wi8_afp32 -o small.tflite
litecl quantize float.tflite --recipe recipe.json --calibrate samples.npz -o small.tflite
litecl quantize float.tflite --quantize int4 --block 32 -o small.tflite
litecl quantize model.litertlm --quantize int8 -o small.litertlm
litecl quantize float.tflite --budget 40MB --calibrate samples.npz -o small.tflite --save-recipe recipe.json
litecl quantize float.tflite --min-sqnr 30 --calibrate samples.npz -o small.tflite --frontier frontier.svg
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("model", type=model_file, metavar="MODEL", help=f"{A_MODEL}, or a .litertlm file")
    parser.add_argument("-o", "--output", type=ModelOutput(), required=True, metavar="OUT", help="the file to write")
    quantization.arguments(parser)
    parser.set_defaults(fp16_safe=False)


def run(args: argparse.Namespace) -> Output:
    """Quantize, and show the stored weights."""
    from litecl.converter import Converter

    how = quantization.quantization(args)
    if how is None:
        raise ConversionError("expected --recipe, --quantize, --budget or --min-sqnr")
    given = content_of(args.model)
    if given[:8] == litertlm.MAGIC:
        return _bundle(args, given, how)
    if str(args.output).endswith(".litertlm"):
        raise ConversionError(f"a .tflite file becomes a .tflite file: expected -o FILE.tflite, got {args.output}")
    before = len(given)
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
    if report is not None and report.frontier is not None:
        view.append(Text(str(report.frontier)))
    elif report is not None and report.weights:
        view.append(_weights_view(report.weights))
    if report is not None:
        view += [line(f"output {o.name} of {o.signature}: SQNR {o.sqnr_db:.1f} dB") for o in report.outputs]
    return Output(data, view)


def _bundle(args: argparse.Namespace, given: memoryview, how: Any) -> Output:
    """Quantize the models of a bundle."""
    from litecl.generate.quantizing import quantized_bundle

    if str(args.output).endswith(".tflite"):
        raise ConversionError(f"a bundle becomes a bundle: expected -o FILE.litertlm, got {args.output}")
    with progress("quantizing", None) as bar:
        content, sections = quantized_bundle(given, how, bar.reached, args.calibrate is not None)
    put(args.output, content)
    main = next(each for each in sections if each.type == "prefill_decode").report.quantization
    write_files(args, main)
    rows = [
        {
            "section": each.type,
            "float_bytes": each.float_bytes,
            "size_bytes": each.size_bytes,
            "quantization": None if each.report.quantization is None else each.report.quantization.to_dict(),
        }
        for each in sections
    ]
    data = {"output": str(args.output), "float_bytes": len(given), "size_bytes": len(content), "sections": rows}
    view: list[RenderableType] = [Text(f"{args.output}: {size(len(content))}, before {size(len(given))}")]
    for each in sections:
        view += [
            Text(f"{each.type}: {size(each.size_bytes)}, before {size(each.float_bytes)}"),
            *notes_of(each.report.quantization),
        ]
    return Output(data, view)


def _weights_view(weights: "Sequence[StoredWeights]") -> Table:
    view = table("op", "stored as", "before", "after", "SQNR", "constant")
    for row in weights:
        view.add_row(row.op, row.form, size(row.float_bytes), size(row.stored_bytes), f"{row.sqnr_db:.1f} dB", row.name)
    return view
