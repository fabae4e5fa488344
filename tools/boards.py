"""Exports models for the boards that qemu emulates, and prints what each takes there.

Usage: PYTHONPATH=tests python -m tools.boards FILE...   (kilobytes; instructions of a run as -icount counts them)
"""

import sys
import tempfile
from pathlib import Path

from support.boards import BOARDS, Board, BoardProgram
from support.exported import check, random_steps


def _row(path: Path, board: Board, small: bool) -> str:
    with tempfile.TemporaryDirectory() as folder:
        program = BoardProgram(path, board, Path(folder), small=small, dynamic_range="reference")
        try:
            check(program, random_steps(program, 1)[:1])
        except AssertionError as error:
            return f"wrong: {' '.join(str(error).split())[:200]}"
    sizes, constants = program.sizes, len(program.drawn.constants)
    return (
        f"{(sizes.flash_bytes - constants) / 1000:.1f} code, {constants / 1000:.0f} constants, "
        f"{sizes.ram_bytes / 1000:.0f} RAM, {sizes.stack_bytes} bytes of stack, "
        f"{program.instructions[0] / 1e6:.1f} million instructions, needs {', '.join(sizes.needs)}"
    )


def main(*files: str) -> None:
    """Print a line a model, board and size."""
    for file in files:
        for board in BOARDS:
            for small in (False, True):
                try:
                    outcome = _row(Path(file), board, small)
                except Exception as error:
                    outcome = f"failed: {type(error).__name__}: {str(error)[:200]}"
                print(f"{Path(file).name}, {board.machine}{' --size' * small}: {outcome}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
