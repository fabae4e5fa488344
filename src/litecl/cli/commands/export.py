"""``litecl export``: writes a model as one file that needs nothing, for C programs or the web."""

import argparse
from collections.abc import Callable, Mapping, Sequence
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
from litecl.delegate.export.c_program import EXAMPLE as C_EXAMPLE
from litecl.delegate.export.c_program import c_files
from litecl.delegate.export.draft import Draft, draft
from litecl.delegate.export.image import Port
from litecl.delegate.export.machines import WEB, export_machine, names
from litecl.delegate.export.web import EXAMPLE as WEB_EXAMPLE
from litecl.delegate.export.web import FILES, RELAXED, WEIGHTS, web_files
from litecl.interpreter.errors import DelegateError

_T = TypeVar("_T")

HELP = "write a model as one file that needs nothing, for C programs or the web"
EXAMPLES = """\
litecl export model.tflite --for c --machine x86_64-linux -o model/
litecl export model.tflite --for c --machine cortex-m4 --name digits -o firmware/
litecl export model.tflite --for c --machine cortex-m55 --size -o firmware/
litecl export model.tflite --for web -o site/
litecl export model.tflite --for web --relaxed-simd --weights apart -o site/
litecl export model.tflite --for c --machine host --shape image=1,8,8,3 -o model/ --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    model_argument(parser)
    parser.add_argument(
        "--for",
        dest="made_for",
        choices=("c", "web"),
        required=True,
        help="c: a static library; web: a WebAssembly module and one of JavaScript, for browsers and Node",
    )
    parser.add_argument(
        "--machine",
        type=_parser(export_machine),
        metavar="MACHINE",
        help=f"with --for c, the machine that runs it: host, {', '.join(names())}",
    )
    parser.add_argument(
        "-o", "--output", type=folder, required=True, metavar="DIR", help="the folder to write; made if it is missing"
    )
    parser.add_argument(
        "--name",
        type=_parser(check_prefix),
        help="with --for c, precedes the names of files and functions (default: model)",
    )
    parser.add_argument("--signature", metavar="KEY", help="export this signature alone (default: all)")
    shape_argument(parser, "--shape")
    parser.add_argument(
        "--max-loop-iterations", type=positive, metavar="N", help="end a run with an error if a loop takes more"
    )
    parser.add_argument(
        "--relaxed-simd",
        action="store_true",
        help=f"with --for web, also write {RELAXED}, which is faster where an engine has relaxed SIMD",
    )
    parser.add_argument(
        "--weights",
        choices=("inside", "apart"),
        default="inside",
        help=f"with --for web, where weights are: in the modules, or in {WEIGHTS} (default: inside)",
    )
    parser.add_argument("--size", action="store_true", help="prefer little code to speed")
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
    for_c = args.made_for == "c"
    if for_c and args.machine is None:
        raise DelegateError(f"--for c needs --machine: host, {', '.join(names())}")
    if not for_c and (args.machine or args.name):
        raise DelegateError("--machine and --name: no effect with --for web")
    apart = args.weights == "apart"
    if for_c and (args.relaxed_simd or apart):
        raise DelegateError("--relaxed-simd and --weights: no effect with --for c")
    name = args.name or "model"
    files.require_free(
        args.output,
        [f"{name}.h", f"{name}.a"] if for_c else [*FILES, *[RELAXED] * args.relaxed_simd, *[WEIGHTS] * apart],
    )
    with progress("exporting", None) as bar:
        drawn = draft(
            args.model,
            args.machine if for_c else WEB,
            signature=args.signature,
            shapes=dict(args.shape),
            small=args.size,
            max_loop_iterations=args.max_loop_iterations,
            progress=bar.building,
            **device_options(args),
        )
        model, sizes = Path(args.model).name, None
        if for_c:
            contents, sizes = c_files(drawn, model, name)
        else:
            contents = web_files(drawn, model, relaxed=args.relaxed_simd, apart=apart)
        kept = files.write(args.output, contents, [C_EXAMPLE, WEB_EXAMPLE])
    return _output(args.output, drawn, sizes, contents, kept)


def _output(
    folder: Path, drawn: Draft, sizes: Sizes | None, contents: Mapping[str, bytes], kept: Sequence[str]
) -> Output:
    written = {name: len(content) for name, content in contents.items()}
    rows = table("file", "size", "")
    for name, size_bytes in written.items():
        rows.add_row(str(folder / name), size(size_bytes), "kept as it was" if name in kept else "")
    constants, arena = len(drawn.constants), drawn.arena_bytes
    data = {
        "machine": drawn.machine.name,
        "files": [
            {"path": str(folder / name), "size_bytes": size_bytes, "kept": name in kept}
            for name, size_bytes in written.items()
        ],
        "arena_bytes": arena,
        "constant_bytes": constants,
        "signatures": [
            {"key": image.signature.key, "inputs": [*map(_port, image.inputs)], "outputs": [*map(_port, image.outputs)]}
            for image in drawn.images.values()
        ],
    }
    if sizes is None:
        lines = [f"{drawn.machine.name}: {size(constants)} of constants, an arena of {size(arena)}"]
    else:
        lines = [
            f"{drawn.machine.name}: {size(sizes.flash_bytes)} of flash, {size(constants)} of them constants; "
            f"{size(sizes.ram_bytes)} of RAM and {size(sizes.stack_bytes)} of stack",
            f"needs {', '.join(sizes.needs)}" if sizes.needs else "needs no other function",
        ]
        data |= {"flash_bytes": sizes.flash_bytes, "ram_bytes": sizes.ram_bytes, "stack_bytes": sizes.stack_bytes}
        data |= {"needs": [*sizes.needs]}
    return Output(data | {"delegation": report_data(drawn.report)}, [rows, *map(line, lines)])


def _port(port: Port) -> dict[str, Any]:
    scale, zero_point = port.quantization or (None, None)
    return {
        "name": port.name,
        "type": port.spec.type.name,
        "shape": [*port.spec.static_shape],
        "scale": scale,
        "zero_point": zero_point,
    }
