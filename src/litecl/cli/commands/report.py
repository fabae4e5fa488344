"""``litecl report``: profiles a model on devices, as one page."""

import argparse
from pathlib import Path

from rich.text import Text

from litecl.cli.command import (
    Output,
    count,
    device_arguments,
    device_options,
    input_arguments,
    inputs,
    model_argument,
    numbers_argument,
    positive,
    progress,
)
from litecl.cli.outputs import OutputFile
from litecl.cli.tables import to_json
from litecl.interpreter import Interpreter
from litecl.interpreter.whole_files import put_text
from litecl.perf.environment import plain
from litecl.perf.peers import PEERS
from litecl.perf.peers.litert import peer_name
from litecl.report.collect import Wanted, collect
from litecl.report.page import page

_ENDINGS = (".html", ".json")
HELP = "profile a model on devices, everything on one page"
EXAMPLES = """\
litecl report model.tflite -o report.html
litecl report model.tflite --against litert --layers -o report.html -o report.json
litecl report model.tflite --device 0 --device 1 -o report.html
litecl report model.tflite --before last_week.json --no-start -o report.html
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    model_argument(parser)
    input_arguments(parser)
    device_arguments(parser, several=("device",))
    numbers_argument(parser)
    parser.add_argument(
        "-o",
        "--output",
        action="append",
        default=[],
        type=OutputFile(*_ENDINGS),
        metavar="FILE",
        help="write the result as a page (.html) or as JSON (.json); may be repeated",
    )
    parser.add_argument(
        "--against", type=peer_name, choices=list(PEERS), help="measure this runtime too, with one thread and with all"
    )
    parser.add_argument("--before", type=Path, metavar="FILE.json", help="an earlier report to compare with")
    parser.add_argument("--layers", action="store_true", help="compare every layer with the reference")
    parser.add_argument("--runs", type=positive, default=100, metavar="N", help="timed invokes (default: 100)")
    parser.add_argument("--warmup", type=count, default=5, metavar="N", help="untimed invokes first (default: 5)")
    parser.add_argument("--no-start", action="store_true", help="skip the start times of new processes")


def run(args: argparse.Namespace) -> Output:
    """Measure a model and write the page."""
    given = device_options(args)
    wanted = Wanted(
        delegate={key: value for key, value in given.items() if key != "device"},
        devices=tuple(given["device"]) or (None,),
        against=args.against,
        runs=args.runs,
        warmup=args.warmup,
        layers=args.layers,
        cold=not args.no_start,
        before=args.before,
        numbers=args.numbers,
        values=", ".join([f"random (seed {args.random})", *(f"{value} given" for value in args.input)]),
    )
    with progress("starting", None) as bar:
        report = collect(args.model, inputs(args, Interpreter(args.model)), wanted, bar.now)
    data = plain(report)
    for path in args.output:
        put_text(path, page(data) if path.suffix.lower() == ".html" else to_json(data) + "\n")
    lines = [Text(sentence) for run in report.runs for sentence in run.verdict]
    notes = [Text(f"Note: {note}", "yellow") for note in report.notes]
    view = [*lines, *notes, *(Text(f"{path} is written.") for path in args.output)]
    return Output(data, view, page=lambda: page(data))
