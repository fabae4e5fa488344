"""``litecl trace``: writes a model's timeline for Perfetto and chrome://tracing."""

import argparse

from rich.text import Text

from litecl.cli.command import (
    Output,
    device_arguments,
    device_options,
    input_arguments,
    inputs,
    model_argument,
    numbers_argument,
    numbers_view,
    positive,
    progress,
)
from litecl.cli.outputs import OutputFile
from litecl.cli.tables import to_json
from litecl.interpreter import Interpreter
from litecl.interpreter.file.reader import content_of
from litecl.interpreter.whole_files import put_text
from litecl.perf.timeline import trace

HELP = "write a timeline of a model's nodes and launches, for ui.perfetto.dev and chrome://tracing"
EXAMPLES = """\
litecl trace model.tflite -o trace.json
litecl trace model.tflite --runs 20 -o trace.json
litecl trace model.tflite --input image=photo.jpg --threads 1 -o trace.json
litecl trace model.tflite --device pocl -o trace.json --json
"""
PAGE = False  # Perfetto shows the trace


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    model_argument(parser)
    input_arguments(parser)
    device_arguments(parser)
    numbers_argument(parser)
    parser.add_argument(
        "-o", "--output", type=OutputFile(), required=True, metavar="FILE.json", help="the trace to write"
    )
    parser.add_argument("--runs", type=positive, default=5, metavar="N", help="invokes of each kind (default: 5)")


def run(args: argparse.Namespace) -> Output:
    """Trace a model."""
    values = inputs(args, Interpreter(args.model))
    with progress("tracing", 2 * args.runs) as tick:
        content, delegate = bytes(content_of(args.model)), device_options(args)
        document = trace(content, values, delegate, args.runs, tick, numbers=args.numbers)
    put_text(args.output, to_json(document))
    spans = [event for event in document["traceEvents"] if event["ph"] == "X"]
    counts = {"events": len(document["traceEvents"]), "spans": len(spans)}
    data = {"output": str(args.output), "numbers": args.numbers, **counts}
    return Output(
        data,
        [*numbers_view(args.numbers), Text(f"{args.output}: {len(spans)} spans; open it at https://ui.perfetto.dev")],
    )
