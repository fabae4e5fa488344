"""``litecl compile``: compiles models ahead of time, into a cache folder to ship with them, or into a pack for machines
without a compiler.
"""

import argparse
import time
from pathlib import Path
from typing import Any

from rich.text import Text

from litecl.cli.command import (
    A_MODEL,
    Bar,
    Output,
    device_arguments,
    device_options,
    model_file,
    numbers_argument,
    numbers_view,
    progress,
    require_device,
    resize,
    shape_argument,
)
from litecl.cli.entry import Entry
from litecl.cli.outputs import OutputFile
from litecl.cli.packs import Machines, packed
from litecl.cli.tables import report_data, size, table
from litecl.delegate import CLDelegate, DelegationReport, disk
from litecl.delegate.backend import binaries
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError
from litecl.perf.feeds import prepare, random_inputs

HELP = "compile models ahead of time, for example for a container image"
EXAMPLES = """\
litecl compile model.tflite                     # into the user's cache
litecl compile a.tflite b.tflite --cache /app/cache --require-device
litecl compile model.tflite --shape image=8,224,224,3 --threads 4
litecl compile model.tflite --for aarch64-linux:cortex-a76 -o model.pack
litecl compile --for help                       # list kinds of machines
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("models", type=model_file, nargs="+", metavar="MODEL", help=A_MODEL)
    shape_argument(parser, "--shape")
    device_arguments(parser, several=("num_threads",), without=("programs",))
    numbers_argument(parser)
    parser.add_argument(
        "--for",
        dest="machines",
        action=Machines,
        metavar="MACHINE",
        help="make a pack for machines without a compiler, such as aarch64-linux:cortex-a76; may be repeated, "
        "`--for help` lists them",
    )
    parser.add_argument("-o", "--output", type=OutputFile(), metavar="PACK", help="the file to write, with --for")
    parser.add_argument("--require-device", action="store_true", help="fail unless the device runs every node")
    parser.set_defaults(cpu=False)


def run(args: argparse.Namespace) -> Output:
    """Compile, for this machine or for others."""
    if bool(args.machines) != bool(args.output):
        raise DelegateError("a pack needs both --for MACHINE and -o PACK")
    return packed(args) if args.machines else _compiled_here(args)


def _compiled_here(args: argparse.Namespace) -> Output:
    """Compile, and run every signature once: drivers finish compiling on the first run."""
    folder = disk.own(args.cache_dir)
    before = disk.size_bytes(folder)
    with progress("compiling", None) as bar:
        counts = args.num_threads or [None]
        rows = [_compiled(args, model, count, folder, bar) for model in args.models for count in counts]
    if folder in binaries.REFUSED:
        raise binaries.REFUSED[folder]
    view = table("model", "device", "nodes", "from the cache", "built", "s")
    for row in rows:
        report = row["delegation"]
        nodes = f"{sum(node['claimed'] for node in report['nodes'])} of {len(report['nodes'])}"
        view.add_row(row["model"], report["device"], nodes, str(report["cache_hits"]), _built(row), f"{row['s']:.1f}")
    after = disk.size_bytes(folder)
    line = f"{folder}: {size(after)}, {size(max(0, after - before))} more than before"
    warnings = [f"WARNING: {row['model']}: {warning}" for row in rows for warning in row["delegation"]["warnings"]]
    texts = [Text(each) for each in (line, *warnings)]
    data = {"folder": str(folder), "size_bytes": after, "numbers": args.numbers, "models": rows}
    return Output(data, [*numbers_view(args.numbers), view, *texts])


def _built(row: dict[str, Any]) -> str:
    return f"{len(row['built'])} ({size(sum(file['size_bytes'] for file in row['built']))})" if row["built"] else "0"


def _compiled(args: argparse.Namespace, model: Path, threads: int | None, folder: Path, bar: Bar) -> dict[str, Any]:
    start_s, before = time.perf_counter(), {*disk.files(folder)}
    delegate = CLDelegate(**device_options(args) | {"num_threads": threads, "progress": bar.building})
    interpreter = Interpreter(model, delegates=[delegate], numbers=args.numbers)
    for key in interpreter.get_signature_list() or [None]:
        entry = Entry(interpreter, key)
        resize(entry, args.shape)
        prepare(entry, random_inputs(entry.get_input_details(), 0))
        entry.invoke()
    report = DelegationReport.of(interpreter)
    require_device(args, report)
    took_s = time.perf_counter() - start_s
    built = [
        {"file": path.name, "size_bytes": path.stat().st_size} for path in disk.files(folder) if path not in before
    ]
    return {"model": str(model), "s": took_s, "built": built, "delegation": report_data(report)}
