"""``litecl convert``: converts models of TensorFlow, Keras, PyTorch or ONNX, functions, or ``.tflite`` files."""

import argparse
import errno
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from litecl.cli import quantization
from litecl.cli.command import Output, folder, positive, shape_argument
from litecl.cli.functions import functions, is_function, require_file
from litecl.cli.outputs import ModelOutput
from litecl.cli.quantization import notes_of, write_files
from litecl.cli.quiet import load_tensorflow
from litecl.cli.sources import Difference, differences
from litecl.cli.summaries import summary_view
from litecl.cli.tables import line, size, table
from litecl.delegate.report_table import PlainConsole
from litecl.generate.export import with_generation
from litecl.interpreter.errors import ConversionError, ModelFileNotFound
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write_file
from litecl.interpreter.whole_files import put
from litecl.perf.summary import summarize

HELP = "convert a model of Keras, TensorFlow, PyTorch or ONNX to a .tflite file, or quantize such a file"
EXAMPLES = """\
litecl convert model.keras -o model.tflite
litecl convert saved_model/ -o model.tflite --signature serving_default --input-shape image=1,224,224,3
litecl convert frozen.pb -o model.tflite --inputs x --outputs y
litecl convert model.keras -o small.tflite --quantize int8 --calibrate samples.npz --verify
litecl convert model.pt2 -o model.tflite --verify
litecl convert model.onnx -o model.tflite
litecl convert float.tflite -o half.tflite --quantize float16
litecl convert float.tflite -o safe.tflite --fp16-safe --calibrate samples.npz
litecl convert language_model.keras -o language_model.tflite --cache-length 256 --quantize int4
"""

_CHECK_S = 120.0  # the longest that a runtime may take
_FROZEN, _KERAS = (".pb", ".pbtxt"), (".keras", ".h5", ".hdf5")
_SAVED_MODEL = ("saved_model.pb", "saved_model.pbtxt")
_READY = (".tflite", ".pt2", ".onnx")  # these don't need TensorFlow


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "source",
        type=Path,
        metavar="SRC",
        help="a .keras or .h5 file, a SavedModel folder, a frozen graph (.pb, .pbtxt), a tf.function (FILE.py:NAME or "
        "MODULE:NAME), a program of torch.export (.pt2), an ONNX file, or a .tflite file in float to quantize",
    )
    parser.add_argument(
        "-o", "--output", type=ModelOutput(), required=True, metavar="OUT", help="the .tflite file to write"
    )
    shape_argument(parser, "--input-shape")
    parser.add_argument(
        "--signature",
        action="append",
        metavar="KEY",
        help="a signature of a SavedModel; may be repeated (default: all)",
    )
    for flag, arrays in (("--inputs", "input"), ("--outputs", "output")):
        parser.add_argument(flag, type=_names, metavar="NAME,...", help=f"the {arrays} tensors of a frozen graph")
    parser.add_argument(
        "--lstm",
        choices=("fused", "variables", "while"),
        default="fused",
        help="write recurrent layers as fused operators (default), as loops (while), or as fused operators whose "
        "states go on from one run to the next, for tflite-micro (variables)",
    )
    parser.add_argument(
        "--keep-unrolled",
        action="store_true",
        help="keep LSTMs and GRUs that a .pt2, .onnx or .tflite file has step by step (default: make one operator or "
        "one loop of each)",
    )
    quantization.arguments(parser)
    parser.add_argument(
        "--cache-length",
        type=positive,
        metavar="N",
        help="give a causal language model of Keras caches for N tokens, and signatures prefill_N and decode",
    )
    parser.add_argument(
        "--fp16-safe",
        action="store_true",
        help="rescale weights by powers of two so that no activation overflows 16-bit floats, where results stay the "
        "same; ranges are those of --calibrate's samples, or of random inputs",
    )
    parser.add_argument(
        "--generate",
        type=positive,
        metavar="N",
        help="add the signature generate to a language model (.tflite, .litertlm, .task); it makes up to N tokens in "
        "one invoke, in litecl and in LiteRT",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="compare the file with its source on random inputs; exit with 1 if a float model's results differ",
    )
    parser.add_argument(
        "--check",
        type=_names,
        default=[],
        metavar="RUNTIME,...",
        help="say which nodes of the file these runtimes refuse, compute otherwise or leave to the CPU, as "
        "`litecl where` (tflm, openvino, onnxruntime, litert, litert-reference, vela, edgetpu), and run it in those "
        "that are installed; exit with 1 if one refuses it",
    )
    parser.add_argument(
        "--dump-passes", type=folder, metavar="DIR", help="write the graph to this folder after every pass"
    )


def _names(text: str) -> list[str]:
    return text.split(",")


def run(args: argparse.Namespace) -> Output:
    """Convert, and summarize the result."""
    if args.generate is not None:
        return _with_generation(args)
    with _passes() as progress:
        content, conversion, compared = _converted(args, progress)
        put(args.output, content)
    write_files(args, conversion.quantization)
    summary = summarize(read(content))
    data = {"output": str(args.output), "size_bytes": len(content), **asdict(summary)}
    data["conversion"] = conversion.to_dict()
    written = Text(f"{args.output}: {size(len(content))}")
    fusions = [line(str(fusion)) for fusion in conversion.fusions]
    warned = [Text(f"WARNING: {conversion.warning}")] if conversion.warning else []
    warned += [line(f"note: {note}") for note in conversion.notes]
    warned += [
        line(f"{name!r}: within {apart:.1e} of ONNX Runtime, in float")
        for name, apart in conversion.differences.items()
    ]
    warned += notes_of(conversion.quantization)
    rescaled = [] if conversion.rescaled is None else [Text(str(conversion.rescaled))]
    view = [written, *warned, *fusions, *rescaled, summary_view(args.output.name, summary)]
    refused = False
    if args.check:
        data["check"], shown, refused = _checked(args, content)
        view += shown
    if not args.verify:
        return Output(data, view, int(refused))
    data["differences"] = [asdict(difference) for difference in compared]
    differs = quantization.quantization(args) is None and not all(difference.small for difference in compared)
    return Output(data, [*view, _differences_view(compared)], int(differs or refused))


def _checked(args: argparse.Namespace, content: bytes) -> tuple[dict[str, Any], list[RenderableType], bool]:
    """Return what runtimes do with the file, for programs and for people, and whether one refuses it."""
    from litecl.cli.places import measured, measured_view, names_of, notes
    from litecl.where.places import where
    from litecl.where.table import REFUSES, UNKNOWN, shipped

    names = names_of(args.check, shipped())
    places = where(read(content), shipped(), names)
    results = measured(content, names, 0, _CHECK_S)
    unknown = {name: sum(place.verdicts[name].status == UNKNOWN for place in places) for name in names}
    refused = any(place.verdicts[name].status == REFUSES for place in places for name in names)
    remarks = [
        line(f"{name}: {count} of {len(places)} nodes are not known") for name, count in unknown.items() if count
    ]
    view = [*notes(places, names), *remarks, measured_view(results)]
    nodes = [
        {"subgraph": place.subgraph, "node": place.node, "op": place.kind.op, "runtime": name}
        | asdict(place.verdicts[name])
        | {"changes": place.changes[name]}
        for place in places
        for name in place.changes
    ]
    refused |= any(one.refused is not None and one.installed for one in results)
    return {"nodes": nodes, "not_known": unknown, "measured": [*map(asdict, results)]}, view, refused


def _with_generation(args: argparse.Namespace) -> Output:
    """Add the signature generate to a language model. Raises ConversionError for flags that have no effect."""
    others = (
        *("quantize", "recipe", "fp16_safe", "input_shape", "signature", "inputs", "outputs"),
        *("verify", "check", "dump_passes", "cache_length"),
    )
    if ignored := [f"--{name.replace('_', '-')}" for name in others if getattr(args, name)]:
        raise ConversionError(f"--generate: {', '.join(ignored)}: no effect on a language model")
    write_file(with_generation(args.source, args.generate), args.output)
    summary, count = summarize(read(args.output)), args.output.stat().st_size
    data = {"output": str(args.output), "size_bytes": count, **asdict(summary), "conversion": None}
    return Output(data, [Text(f"{args.output}: {size(count)}"), summary_view(args.output.name, summary)])


def _differences_view(rows: Sequence[Difference]) -> Table:
    view = table("signature", "result", "difference to the source")
    for difference in rows:
        view.add_row(difference.signature, difference.output, f"{difference.largest:.1e}")
    return view


def _converted(args: argparse.Namespace, progress: Callable[[str], None]) -> tuple[bytes, Any, list[Difference]]:
    """Convert a source; return the .tflite content, the conversion report, and with --verify the differences.

    Raises ConversionError if TensorFlow is missing.
    """
    from litecl.converter import ConversionWarning
    from litecl.converter.dump import Dump

    _require_source(args)
    dump = None if args.dump_passes is None else Dump(args.dump_passes)

    def observe(name: str, module: Any) -> None:
        progress(name)
        if dump is not None:
            dump(name, module)

    try:
        if args.source.suffix not in _READY:
            load_tensorflow()
        options: dict[str, Any] = {"lstm": args.lstm, "quantize": quantization.quantization(args)}
        options["fp16_safe"] = None if not args.fp16_safe else args.calibrate or True
        converter = _converter(args, options)
        converter.keep_sources = args.verify
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConversionWarning)  # shown with the output
            content = converter.convert(observe, lambda done, total: progress(f"measuring layers ({done} of {total})"))
        return content, converter.report, differences(content, converter.sources) if args.verify else []
    except ModuleNotFoundError as error:
        raise ConversionError(f"converting needs TensorFlow ({error}): pip install 'litecl[convert]'") from error


def _require_source(args: argparse.Namespace) -> None:
    """Raise ModelFileNotFound for a missing file, ConversionError for an unknown kind or flags without effect on it."""
    source = args.source
    if args.cache_length is not None:
        _require_causal_lm(args)
    if is_function(str(source)):
        require_file(str(source))
        return
    if not source.exists():
        raise ModelFileNotFound(errno.ENOENT, os.strerror(errno.ENOENT), str(source))
    if source.is_dir() and not any((source / name).exists() for name in _SAVED_MODEL):
        raise ConversionError(f"{source}: expected a SavedModel, got a folder without {' or '.join(_SAVED_MODEL)}")
    if source.is_file() and source.suffix not in (*_FROZEN, *_KERAS, *_READY):
        raise ConversionError(
            f"{source}: expected a .keras, .h5, .pb, .pt2, .onnx or .tflite file, a SavedModel folder, or FILE.py:NAME"
        )
    if args.keep_unrolled and source.suffix not in _READY:
        raise ConversionError("--keep-unrolled: no effect on a source that is no .pt2, .onnx or .tflite file")
    if source.is_file() and source.suffix in _FROZEN and not (args.inputs and args.outputs):
        raise ConversionError(f"{source}: expected --inputs and --outputs with a frozen graph")


def _require_causal_lm(args: argparse.Namespace) -> None:
    """Raise ConversionError if a source can't be given caches, or for flags without effect on such a model."""
    if args.source.suffix not in _KERAS:
        raise ConversionError(f"--cache-length: expected a .keras or .h5 file, got {args.source}")
    if ignored := [f"--{name.replace('_', '-')}" for name in ("input_shape", "verify") if getattr(args, name)]:
        raise ConversionError(f"--cache-length: {', '.join(ignored)}: no effect with it")


def _converter(args: argparse.Namespace, options: dict[str, Any]) -> Any:
    """Return the converter for a kind of source."""
    from litecl.cli.keras_models import load
    from litecl.converter import Converter

    source = args.source
    shapes: dict[str, Any] = {"input_shapes": dict(args.input_shape)}
    if is_function(str(source)):
        concrete, held = functions(str(source))
        return Converter.from_concrete_functions(concrete, held, **shapes, **options)
    if source.is_dir():
        return Converter.from_saved_model(source, args.signature, **shapes, **options)
    if source.suffix in _FROZEN:
        return Converter.from_frozen_graph(source, args.inputs, args.outputs, **shapes, **options)
    if source.suffix in _KERAS and args.cache_length is not None:
        return Converter.from_keras_causal_lm(load(source), args.cache_length, **options)
    if source.suffix in _KERAS:
        return Converter.from_keras_model(load(source), **shapes, **options)
    ready = {"quantize": options["quantize"], "fp16_safe": options["fp16_safe"], "roll_up": not args.keep_unrolled}
    if source.suffix == ".pt2":
        return Converter.from_exported_program(source, **shapes, **ready)
    if source.suffix == ".onnx":
        return Converter.from_onnx(source, **shapes, **ready)
    if args.input_shape or args.signature or args.verify:
        raise ConversionError("--input-shape, --signature and --verify: no effect on a .tflite file")
    return Converter.from_tflite(source, **ready)


@contextmanager
def _passes() -> Iterator[Callable[[str], None]]:
    """Show a progress bar on stderr; yield a function that reports the current pass."""
    columns = [TextColumn("converting"), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn()]
    with (
        os.fdopen(os.dup(2), "w") as stderr,  # load_tensorflow redirects stderr
        Progress(*columns, console=PlainConsole(file=stderr), transient=True, disable=not stderr.isatty()) as progress,
    ):
        task = progress.add_task("loading", total=None)
        yield lambda name: progress.update(task, description=name)
