"""The quantization flags of ``litecl convert`` and ``litecl quantize``."""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.text import Text

from litecl.cli.outputs import OutputFile
from litecl.cli.tables import line
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.whole_files import put_text
from litecl.report.draw.frontier import frontier

_TYPES = ("float32", "int8", "uint8", "int16")
_BORDER = "the type of {}s of a model with integer activations (default: float32)"
_OF_ACTIVATIONS: Mapping[str, Mapping[str, Any]] = {
    "method": {
        "flag": "--calibration",
        "choices": ("minmax", "moving_average", "percentile", "mse"),
        "help": "method for ranges (default: minmax)",
    },
    "percentile": {"type": float, "help": "the share of values within a percentile range (default: 99.99)"},
    "momentum": {"type": float, "help": "the weight of earlier samples in a moving average (default: 0.9)"},
    "samples": {"type": int, "metavar": "N", "help": "number of samples to use (default: all)"},
    "equalize": {"action": "store_true", "help": "move scales between layers so that channels have equal ranges"},
    "bias_correction": {"action": "store_true", "help": "correct biases for the mean error of rounded weights"},
    "input_type": {"choices": _TYPES, "help": _BORDER.format("input")},
    "output_type": {"choices": _TYPES, "help": _BORDER.format("output")},
    "skip": {
        "action": "append",
        "metavar": "NAME",
        "help": "keep an operator, or a layer by name or pattern, in float; may be repeated",
    },
    "strict": {"action": "store_true", "help": "fail if an operator would stay in float"},
    "sensitivity": {"action": "store_true", "help": "measure the error of each layer alone"},
    "measured": {"type": int, "metavar": "N", "help": "number of samples for the report's errors (default: 8)"},
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "--quantize",
        choices=("float16", "int8", "int4", "int16"),
        help="store weights in fewer bits; with --calibrate, quantize activations too",
    )
    parser.add_argument(
        "--recipe",
        metavar="FILE|NAME",
        help="quantize as a recipe of litert-quantizer says: a JSON file, or a name like dynamic_wi4b32_afp32",
    )
    _search_arguments(parser)
    parser.add_argument(
        "--per-tensor",
        action="store_true",
        help="use one scale for all weights of an operator, instead of one per output channel",
    )
    parser.add_argument(
        "--block",
        type=int,
        metavar="N",
        help="with int4, use one scale per N weights of a dense layer's output: 32, 64, ...",
    )
    parser.add_argument(
        "--calibrate",
        type=Path,
        metavar="DATA.npz",
        help="representative samples, one array per input, to measure the ranges of activations",
    )
    parser.add_argument(
        "--quantize-signature",
        action="append",
        default=[],
        metavar="KEY",
        help="quantize only what this signature runs, the others stay in float; may be repeated (default: all)",
    )
    for name, options in _OF_ACTIVATIONS.items():
        rest = {key: value for key, value in options.items() if key != "flag"}
        parser.add_argument(_flag(name), dest=name, default=None, **rest)
    parser.add_argument(
        "--quantize-report",
        type=OutputFile(),
        metavar="FILE",
        help="write each layer's scale and error to this file, as JSON (.json) or text",
    )


def _search_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--budget", metavar="SIZE", help="choose the bits of each layer for a file of up to this size, such as 40MB"
    )
    parser.add_argument(
        "--min-sqnr",
        dest="min_sqnr_db",
        type=float,
        metavar="DB",
        help="choose the bits of each layer for the smallest file whose outputs keep this ratio of signal to error",
    )
    parser.add_argument(
        "--weight-only", action="store_true", help="with --budget or --min-sqnr, widen all weights to floats"
    )
    parser.add_argument(
        "--save-recipe", type=OutputFile(), metavar="FILE.json", help="write the bits that were chosen as a recipe"
    )
    parser.add_argument(
        "--frontier", type=OutputFile(), metavar="FILE.svg", help="draw the best errors by size to this file"
    )


def _flag(name: str) -> str:
    return str(_OF_ACTIVATIONS.get(name, {}).get("flag", f"--{name.replace('_', '-')}"))


def quantization(args: argparse.Namespace) -> Any:
    """Return the requested quantization, or None.

    Raises ConversionError for flags that would have no effect.
    """
    from litecl.converter import Quantization

    of_weights: dict[str, Any] = {} if args.block is None else {"block": args.block}
    if args.per_tensor:
        of_weights["per_channel"] = False
    if args.quantize_signature:
        of_weights["signatures"] = tuple(args.quantize_signature)
    given = {name: getattr(args, name) for name in _OF_ACTIVATIONS if getattr(args, name) is not None}
    if "skip" in given:
        given["skip"] = tuple(given["skip"])
    wanted = {
        name: getattr(args, name) for name in ("recipe", "budget", "min_sqnr_db") if getattr(args, name) is not None
    }
    searches = bool(wanted.keys() - {"recipe"})
    without = [flag for flag in ("weight_only", "save_recipe", "frontier") if getattr(args, flag) and not searches]
    if without:
        flags = ", ".join(f"--{flag.replace('_', '-')}" for flag in without)
        raise ConversionError(f"{flags}: no effect without --budget or --min-sqnr")
    if wanted:
        data = None if args.calibrate is None else str(args.calibrate)
        if args.quantize is not None or len(wanted) > 1:
            raise ConversionError("--quantize, --recipe, --budget, --min-sqnr: expected one of them")
        if searches and data is None:
            raise ConversionError("--budget, --min-sqnr: expected --calibrate DATA.npz with them")
        return Quantization(**wanted, weight_only=args.weight_only, data=data, **of_weights, **given)
    if args.calibrate is None or (args.fp16_safe and args.quantize in (None, "float16")):
        if args.quantize == "int16":
            raise ConversionError("integer activations need --calibrate DATA.npz")
        without = [_flag(name) for name in (*given, *(["quantize_report"] if args.quantize_report else []))]
        if without:
            raise ConversionError(f"{', '.join(without)}: no effect without --calibrate")
        if args.quantize is None and of_weights:
            raise ConversionError("--per-tensor, --block: no effect without --quantize")
        return Quantization(weights=args.quantize, **of_weights) if of_weights else args.quantize
    if args.quantize not in ("int8", "int16"):
        raise ConversionError("--calibrate: expected --quantize int8 or int16 with it")
    return Quantization(activations=args.quantize, data=str(args.calibrate), **of_weights, **given)


def write_files(args: argparse.Namespace, report: Any) -> None:
    """Write a quantization's report, as JSON (.json) or text, and a search's recipe and picture, if requested."""
    if report is None:
        return
    if args.quantize_report is not None:
        text = report.to_json() if args.quantize_report.suffix == ".json" else f"{report}\n"
        put_text(args.quantize_report, text)
    if args.save_recipe is not None:
        put_text(args.save_recipe, f"{json.dumps(report.frontier.recipe, indent=2)}\n")
    if args.frontier is not None:
        picture = frontier(report.to_dict()["frontier"], args.output.stem)
        put_text(args.frontier, picture)


def notes_of(report: Any) -> list[Text]:
    """Return the report's notes as lines."""
    return [] if report is None else [line(f"note: {note}") for note in report.notes]
