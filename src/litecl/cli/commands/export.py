"""``litecl export``: writes a model as one file that needs nothing, for C programs."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from litecl.cli.command import (
    Output,
    device_arguments,
    device_options,
    folder,
    model_argument,
    positive,
    progress,
    shape_argument,
)
from litecl.cli.tables import line, report_data, size, table
from litecl.delegate.export import files
from litecl.delegate.export.archive import Sizes
from litecl.delegate.export.c_names import check_prefix
from litecl.delegate.export.c_program import EXAMPLE, c_files
from litecl.delegate.export.draft import Draft, draft
from litecl.delegate.export.image import Port
from litecl.delegate.export.machines import export_machine, names
from litecl.interpreter.errors import DelegateError

_T = TypeVar("_T")

HELP = "write a model as one file that needs nothing, for C programs"
EXAMPLES = """\
litecl export model.tflite --for c --machine x86_64-linux -o model/
litecl export model.tflite --for c --machine cortex-m4 --name digits -o firmware/
litecl export model.tflite --for c --machine host --shape image=1,8,8,3 -o model/ --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    model_argument(parser)
    parser.add_argument("--for", dest="made_for", choices=("c",), required=True, help="c: a static library")
    parser.add_argument(
        "--machine",
        type=_parser(export_machine),
        metavar="MACHINE",
        help=f"the machine that runs it: host, {', '.join(names())}",
    )
    parser.add_argument(
        "-o", "--output", type=folder, required=True, metavar="DIR", help="the folder to write; made if it is missing"
    )
    parser.add_argument(
        "--name",
        type=_parser(check_prefix),
        default="model",
        help="precedes the names of files and functions (default: model)",
    )
    parser.add_argument("--signature", metavar="KEY", help="the signature to export (default: the only one)")
    shape_argument(parser, "--shape")
    parser.add_argument(
        "--max-loop-iterations", type=positive, metavar="N", help="end a run with an error if a loop takes more"
    )
    device_arguments(parser, without=("device", "num_threads", "compiler", "programs"))


def _parser(parse: Callable[[str], _T]) -> Callable[[str], _T]:
    """Return a function whose errors argparse shows."""

    def parsed(text: str) -> _T:
        try:
            return parse(text)
        except DelegateError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parsed


def run(args: argparse.Namespace) -> Output:
    """Export, and tell the sizes."""
    if args.machine is None:
        raise DelegateError(f"--for c needs --machine: host, {', '.join(names())}")
    files.require_free(args.output, [f"{args.name}.h", f"{args.name}.a"])
    with progress("exporting", None) as bar:
        drawn = draft(
            args.model,
            args.machine,
            signature=args.signature,
            shapes=dict(args.shape),
            max_loop_iterations=args.max_loop_iterations,
            progress=bar.building,
            **device_options(args),
        )
        made, sizes = c_files(drawn, Path(args.model).name, args.name)
        kept = files.write(args.output, made, [EXAMPLE])
    return _output(args, drawn, sizes, {name: len(content) for name, content in made.items()}, kept)


def _output(args: argparse.Namespace, drawn: Draft, sizes: Sizes, written: dict[str, int], kept: list[str]) -> Output:
    rows = table("file", "size", "")
    for name, size_bytes in written.items():
        rows.add_row(str(args.output / name), size(size_bytes), "kept as it was" if name in kept else "")
    image = drawn.image
    lines = [
        f"{drawn.machine.name}: {size(sizes.flash_bytes)} of flash, {size(len(image.constants))} of them constants; "
        f"{size(sizes.ram_bytes)} of RAM beside the stack",
        f"needs {', '.join(sizes.needs)}" if sizes.needs else "needs no other function",
    ]
    data = {
        "machine": drawn.machine.name,
        "name": args.name,
        "files": [
            {"path": str(args.output / name), "size_bytes": size_bytes, "kept": name in kept}
            for name, size_bytes in written.items()
        ],
        "flash_bytes": sizes.flash_bytes,
        "ram_bytes": sizes.ram_bytes,
        "arena_bytes": image.arena_bytes,
        "constant_bytes": len(image.constants),
        "needs": [*sizes.needs],
        "inputs": [_port(port) for port in image.inputs],
        "outputs": [_port(port) for port in image.outputs],
        "delegation": report_data(drawn.report),
    }
    return Output(data, [rows, *map(line, lines)])


def _port(port: Port) -> dict[str, Any]:
    scale, zero_point = port.quantization or (None, None)
    return {
        "name": port.name,
        "type": port.spec.type.name,
        "shape": [*port.spec.static_shape],
        "scale": scale,
        "zero_point": zero_point,
    }
