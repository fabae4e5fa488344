"""Runs a program with litecl in the place of the packages that it imports: ``python -m litecl.run_as SCRIPT ARGS``."""

import argparse
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

import litecl
from litecl.drop_in import PACKAGES
from litecl.drop_in.workers import reach_workers
from litecl.interpreter.errors import LiteclError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a script as the main program, with its own arguments."""
    args = _parser().parse_args(arguments)
    options = {"cpu": True} if args.cpu else {"device": args.device, "always": args.always}
    packages = args.packages or [name for name in PACKAGES if name != "tensorflow"]
    try:
        for package in packages:
            litecl.install_as(package, **options)
    except LiteclError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    reach_workers(packages, options)
    sys.argv = [args.script, *args.arguments]
    try:
        _run(args)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] == "tensorflow":
            error.add_note("TensorFlow is not installed; litecl stands in for its tf.lite with: --as tensorflow")
        raise
    return 0


def _run(args: argparse.Namespace) -> None:
    if args.module:
        runpy.run_module(args.script, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(args.script).resolve().parent))
        runpy.run_path(args.script, run_name="__main__")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m litecl.run_as", description=__doc__)
    parser.add_argument(
        "--as",
        dest="packages",
        action="append",
        choices=sorted(PACKAGES),
        help="a package to stand in for, once for each (default: ai_edge_litert and tflite_runtime)",
    )
    runtime = parser.add_mutually_exclusive_group()
    runtime.add_argument("--device", type=_device, help="an index or a fragment of a name from `litecl devices`")
    runtime.add_argument("--cpu", action="store_true", help="run the numpy reference, without a delegate")
    parser.add_argument("--always", action="store_true", help="use the device even if the program asks for no delegate")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER)
    return parser


def _device(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


if __name__ == "__main__":
    sys.exit(main())
