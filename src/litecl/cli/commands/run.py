"""``litecl run``: runs a model once and shows its outputs, or runs it on many inputs."""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from litecl.cli.answers import answer_arguments, answers, refuse_with_many
from litecl.cli.command import (
    Output,
    device_arguments,
    device_options,
    folder,
    input_arguments,
    inputs,
    media_of,
    model_argument,
    numbers_argument,
    numbers_view,
    progress,
    read_view,
    require_device,
)
from litecl.cli.entry import Entry
from litecl.cli.many import many, many_arguments, require_inputs
from litecl.cli.outputs import OutputFile
from litecl.cli.streams import begun, over_time, refuse, stream_arguments, streamed
from litecl.cli.tables import number, report_data, shape, table, titled, to_json
from litecl.comparison import is_float
from litecl.delegate import CLDelegate, DelegationReport
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array
from litecl.interpreter.whole_files import put_text
from litecl.jobs.given import how_read
from litecl.perf.feeds import labels, outputs_of, prepare, save_outputs
from litecl.perf.timeline import Timeline

HELP = "run a model once and show its outputs, or run it on batches of inputs"
EXAMPLES = """\
litecl run model.tflite                               # on random inputs
litecl run model.tflite --input photo.jpg --labels labels.txt --top 3
litecl run detector.tflite --input photo.jpg --draw boxes.png --least 0.4
litecl run yamnet.tflite --input speech.wav --profile-to trace.json
litecl run model.tflite --input x=x.npy --shape x=8,4 --signature serving_default
litecl run wake_word.tflite --input long.wav --features front_end.tflite --hop-ms 10 --stream
litecl run model.tflite --device pocl --require-device
litecl run model.tflite --inputs 'images/*.jpg' --batch 16 --devices all -o results
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    model_argument(parser)
    input_arguments(parser)
    parser.add_argument("--signature", metavar="KEY", help="run this signature of the model")
    parser.add_argument(
        "-o", "--output", type=folder, metavar="DIR", help="write every output to this folder as a .npy file"
    )
    answer_arguments(parser)
    stream_arguments(parser)
    parser.add_argument(
        "--profile-to", type=OutputFile(), metavar="FILE.json", help="write a timeline of this run, for ui.perfetto.dev"
    )
    numbers_argument(parser)
    device_arguments(parser, cpu=True)
    many_arguments(parser)


def run(args: argparse.Namespace) -> Output:
    """Run a model once, or on many inputs."""
    if args.inputs:
        refuse_with_many(args)
        return many(args)
    require_inputs(args)
    refuse(args)
    if args.profile_to is not None and args.cpu:
        raise ModelError("--profile-to: expected a device, got --cpu")
    timeline = Timeline()
    with progress("preparing and running", None) as bar:
        options = device_options(args) | {"profile": args.profile_to is not None}
        delegates = [] if args.cpu else [CLDelegate(**options, progress=bar.building)]
        interpreter = Interpreter(
            args.model,
            delegates=delegates,
            listeners=[timeline] if args.profile_to else [],
            dynamic_range=args.dynamic_range,
            numbers=args.numbers,
        )
        entry = Entry(interpreter, args.signature)
        if args.stream:
            chunks = begun(args, entry)
        else:
            prepare(entry, inputs(args, entry))
        require_device(args, None if args.cpu else DelegationReport.of(interpreter))
        if args.stream:
            arrays = streamed(entry, chunks)
        else:
            entry.invoke()
            arrays = outputs_of(entry)
    require_device(args, None if args.cpu else DelegationReport.of(interpreter))
    read = how_read(args.input, entry.get_input_details(), media_of(args, entry))
    details = entry.get_output_details()
    values = [_value(name, value) for name, value in zip(labels(details), arrays, strict=True)]
    data: dict[str, Any] = {"model": str(args.model), "inputs": read, "outputs": values}
    data |= {"numbers": args.numbers, "delegation": None, "files": []}
    if args.stream:
        view = [_values(f"outputs of {chunks.count} chunks", values)]
        view += over_time(args, details, arrays, chunks, data)
    else:
        view = [_values("outputs", values), *answers(args, interpreter, [*zip(details, arrays, strict=True)], data)]
    view = [*read_view(read), *numbers_view(args.numbers), *view]
    if args.output is not None:
        data["files"] = [str(path) for path in save_outputs(details, arrays, args.output)]
        view += [Text(path) for path in data["files"]]
    if args.profile_to is not None:
        put_text(args.profile_to, to_json(timeline.trace(interpreter)))
        view.append(Text(f"{args.profile_to}: open it at https://ui.perfetto.dev"))
    if not args.cpu:
        delegation = DelegationReport.of(interpreter)
        data["delegation"] = report_data(delegation)
        view.append(delegation)
    return Output(data, view)


def _value(name: str, value: Array) -> dict[str, Any]:
    """Describe a tensor: name, type, shape, range, mean and first elements."""
    numeric = (value.dtype.kind in "iu" or is_float(value.dtype)) and value.size > 0
    return {
        "name": name,
        "dtype": str(value.dtype),
        "shape": list(value.shape),
        "min": float(value.min()) if numeric else None,
        "max": float(value.max()) if numeric else None,
        "mean": float(value.mean(dtype=np.float64)) if numeric else None,
        "first": [_plain(x) for x in value.reshape(-1)[:8].tolist()],
    }


def _values(title: str, values: Sequence[dict[str, Any]]) -> RenderableType:
    """Return a table of tensors described by ``_value``."""
    view = table("name", "type", "shape", "min", "max", "mean", "first")
    for value in values:
        view.add_row(
            value["name"],
            value["dtype"],
            shape(value["shape"]),
            number(value["min"]),
            number(value["max"]),
            number(value["mean"]),
            " ".join(number(x) for x in value["first"]),
        )
    return titled(title, view)


def _plain(value: Any) -> Any:
    """Convert an element for JSON."""
    return value if isinstance(value, bool | int | float) else str(value)
