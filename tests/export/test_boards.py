"""Models exported for boards, which qemu emulates: all outputs are the interpreter's."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from litecl.cases import Case
from litecl.delegate.native import compiler
from litecl.interpreter.errors import DelegateError
from support import quantize_models, small_models
from support.all_cases import DEVICE_CASES, content
from support.boards import BOARDS, Board, BoardProgram
from support.exported import HAS_ZIG, STRICT, CProgram, branching, check, images

pytestmark = pytest.mark.skipif(not HAS_ZIG, reason="not the package ziglang")


def integers() -> Any:
    made, _ = quantize_models.quantized(images(), activations="int8", input_type="int8", output_type="int8")
    return made


@pytest.mark.long
@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.machine)
@pytest.mark.parametrize("build", [images, integers, small_models.lstm, branching])
def test_models(build: Any, board: Board, tmp_path: Path) -> None:
    """Floats, integers to the bit (with little code), an LSTM with states, a loop with branches."""
    if not board.is_here:
        pytest.skip(f"{board.command[0]} is not installed")
    check(BoardProgram(build(), board, tmp_path, small=build is integers))


SHARED = Path(__file__).parents[3] / "shared" / "models"
PUBLIC = (
    *("kws_ref_model", "pretrainedResnet_quant", "vww_96_int8", "str_ww_ref_model", "ad01_int8"),
    "../esphome-micro-wake-word-models/hey_jarvis",  # it keeps states
)


@pytest.mark.nightly
@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.machine)
def test_public_models(name: str, board: Board, small: bool, tmp_path: Path) -> None:
    """MLPerf Tiny's integers to the bit, and little code with ``--size``."""
    path = SHARED / "mlcommons-tiny" / f"{name}.tflite"
    if not board.is_here or not path.exists():
        pytest.skip(f"{board.command[0]} is not installed, or there is no {path}")
    program = BoardProgram(path, board, tmp_path, small=small)
    check(program)
    assert not small or program.sizes.flash_bytes - len(program.drawn.constants) < 64000


PRODUCTS = "BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM"


@pytest.mark.nightly
@pytest.mark.parametrize("case", [case for case in DEVICE_CASES if case.op.name in PRODUCTS][::24], ids=repr)
@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.machine)
def test_products(case: Case, board: Board, tmp_path: Path) -> None:
    """By the instructions that a processor has for them: of bytes, words, 4 bits and floats."""
    if not board.is_here:
        pytest.skip(f"{board.command[0]} is not installed")
    try:
        program = BoardProgram(content(case), board, tmp_path, dynamic_range="reference")
    except DelegateError as error:
        pytest.skip(str(error))
    check(program)


@pytest.mark.nightly
@pytest.mark.parametrize("build", [images, integers, small_models.lstm, branching])
@pytest.mark.parametrize("machine", ["aarch64-linux", "armv7-linux", "riscv64-linux"])
def test_other_processors(build: Any, machine: str, tmp_path: Path) -> None:
    """Of systems, by qemu-user and zig's C library."""
    architecture = {"armv7-linux": "arm"}.get(machine, machine.partition("-")[0])
    emulator, found = shutil.which(f"qemu-{architecture}"), compiler.found()
    if emulator is None or found is None:
        pytest.skip(f"qemu-{architecture} is not installed")
    libc = "musleabihf" if architecture == "arm" else "musl"
    cc = found.command[0], "cc", "-target", f"{architecture}-linux-{libc}", "-static"
    check(CProgram(build(), tmp_path, STRICT, machine=machine, cc=cc, emulator=[emulator]))
