"""Installs public programs from PyPI, runs each on litecl and on LiteRT, and prints the tables of
docs/measurements/public_programs.md.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from support import shared
from tools.public_programs.compare import verdict
from tools.public_programs.table import NEEDS, Program, programs

HERE = Path(__file__).parent
TIME_LIMIT_S = 600


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.public_programs", description=__doc__)
    parser.add_argument("folder", type=Path, help="where packages and logs are kept; made if it is not there")
    parser.add_argument("names", nargs="*", metavar="NAME", help="the programs to run (default: all)")
    parser.add_argument("--files", type=Path, help="a folder of OWNER/REPOSITORY/FILE, for what is not on PyPI")
    args = parser.parse_args()
    folder, files = args.folder.resolve(), args.files and args.files.resolve()
    _install(folder / "needs", NEEDS)
    wanted = [each for each in programs() if not args.names or each.name in args.names]
    for program in wanted:  # all of them first: some use the models of another
        if not program.file:
            _install(folder / "packages" / program.name, [f"{program.name}=={program.version}"])
    failed = False
    for group, members in groupby(wanted, lambda each: each.group):
        print(f"\n| {group} | task | imports | result |\n|---|---|---|---|")
        for program in members:
            result = _tried(program, folder, files)
            failed |= not result.startswith("same")
            print(f"| {program.title} | {program.task} | {program.imports} | {result} |", flush=True)
    return int(failed)


def _tried(program: Program, folder: Path, files: Path | None) -> str:
    """Return what the last column says of a program."""
    if not program.file:
        place = folder / "packages" / program.name
    elif files is not None and (files / program.name / program.file).exists():
        place = files / program.name / program.file
    else:
        return "not tried: --files has not got it"
    results = []
    for side, command in (("litecl", _on_litecl(program)), ("LiteRT", _on_litert(program))):
        run = folder / "runs" / f"{program.driver}-{side}"
        if not _ran(command, place, folder / "needs", run):
            return f"fails on {side}: {run / 'log.txt'}"
        results.append(run / "result.npz")
    return verdict(*results)


def _on_litecl(program: Program) -> list[str]:
    packages = ["--as", "tensorflow"] if program.tensorflow else []
    return ["-m", "litecl.run_as", *packages, _driver(program)]


def _on_litert(program: Program) -> list[str]:
    options = ["--tensorflow"] * program.tensorflow + ["--reference"] * program.integers
    return [str(HERE / "litert_side.py"), _driver(program), *options]


def _driver(program: Program) -> str:
    return str(HERE / "drive" / f"run_{program.driver}.py")


def _ran(command: Sequence[str], place: Path, needs: Path, run: Path) -> bool:
    """Run a driver in a folder, where it leaves ``result.npz`` and a log."""
    run.mkdir(parents=True, exist_ok=True)
    result = run / "result.npz"
    result.unlink(missing_ok=True)
    paths = [place if place.is_dir() else place.parent, needs, HERE.parents[1] / "src"]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYTHONHASHSEED": "0",
        "PUBLIC_MODELS": str(shared.MODELS),
        "PUBLIC_PROGRAM": str(place),
        "PUBLIC_RESULT": str(result),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    with (run / "log.txt").open("w") as log:
        try:
            done = subprocess.run(
                [sys.executable, *command],
                cwd=run,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=TIME_LIMIT_S,
            )
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == 0 and result.exists()


def _install(folder: Path, packages: Sequence[str]) -> None:
    """Install packages, without what they depend on, unless the folder is there."""
    if folder.exists():
        return
    options = ["-q", "--no-deps", "--ignore-requires-python", "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, *packages], check=True)


if __name__ == "__main__":
    sys.exit(main())
