"""Models exported for boards, which qemu emulates: all outputs are the interpreter's."""

from pathlib import Path
from typing import Any

import pytest

from support import quantize_models, small_models
from support.boards import BOARDS, Board, BoardProgram
from support.exported import HAS_ZIG, branching, check, images

pytestmark = pytest.mark.skipif(not HAS_ZIG, reason="not the package ziglang")


def integers() -> Any:
    made, _ = quantize_models.quantized(images(), activations="int8", input_type="int8", output_type="int8")
    return made


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.machine)
@pytest.mark.parametrize("build", [images, integers, small_models.lstm, branching])
def test_models(build: Any, board: Board, tmp_path: Path) -> None:
    """Floats, integers to the bit, an LSTM with states, a loop with branches."""
    if not board.is_here:
        pytest.skip(f"{board.command[0]} is not installed")
    check(BoardProgram(build(), board, tmp_path))
