"""Packs for machines that are not there: their libraries are whole, and expect nothing of them that they may lack."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

from litecl.cli import main
from litecl.delegate.native import compiler, kinds
from litecl.interpreter.file.writer import write_file
from litecl.interpreter.graph import Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ATAN2, FLOOR_MOD, POW
from litecl.interpreter.ops.cast import CAST, CastOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.unary import CEIL, COS, EXP, FLOOR, ROUND, SIN
from litecl.interpreter.schema import TensorType
from support import compare
from support.build import Graph, model, randn
from support.imported import imported
from support.small_models import prepared, reference, run

FOUND = compiler.found()
pytestmark = pytest.mark.skipif(
    FOUND is None or FOUND.source != "of ziglang", reason="no compiler for all machines: pip install ziglang"
)
RNG = np.random.default_rng(8)

# Of the system's libraries that are in every process of Python's: mathematics, memory, threads.
FUNCTIONS = ("atan2", "ceil", "cos", "exp", "floor", "fmod", "log", "pow", "rint", "sin", "sqrt")
MATHS = {name + kind for kind in ("", "f") for name in FUNCTIONS}
EVERYWHERE = {"memcpy", "memset", "sched_yield", "pthread_create", "pthread_detach"} | MATHS
ALLOWED = {
    "linux": EVERYWHERE | {"syscall"},
    "darwin": EVERYWHERE | {"__ulock_wait", "__ulock_wake", "bzero"},
    "win32": {
        *(f"ucrtbase.dll!{name}" for name in {"memcpy", "memset"} | MATHS),
        *(f"kernel32.dll!{name}" for name in ("CloseHandle", "CreateThread", "SwitchToThread")),
        *(f"api-ms-win-core-synch-l1-2-0.dll!{name}" for name in ("WaitOnAddress", "WakeByAddressAll")),
    },
}
MAGIC = {"linux": b"\x7fELF", "darwin": b"\xcf\xfa\xed\xfe", "win32": b"MZ"}


def maths() -> Model:
    """Operators that call functions of the system's, whole numbers of 64 bits, and weights that may be halves."""
    g = Graph()
    x = g.input((4, 600))
    y = g.op(FULLY_CONNECTED, [x, g.const(randn(RNG, 600, 600) / 20)], FullyConnectedOptions())
    for op in (SIN, COS, ROUND, CEIL, FLOOR):
        y = g.op(POW, [g.op(EXP, [g.op(op, [y], NoOptions())], NoOptions()), g.const(np.float32(0.7))], NoOptions())
    y = g.op(ATAN2, [g.op(FLOOR_MOD, [y, g.const(np.float32(0.75))], NoOptions()), x], NoOptions())
    whole = g.op(CAST, [y], CastOptions(TensorType.FLOAT32, TensorType.INT64))
    return model(g.build(g.op(CAST, [whole], CastOptions(TensorType.INT64, TensorType.FLOAT32))))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("elsewhere") / "maths.tflite"
    write_file(MODEL, path)
    return path


MODEL = maths()


def made(file: Path, *flags: str) -> Path:
    path = file.with_name(f"{'_'.join(flags).replace(':', '_')}.pack")
    assert main(["compile", str(file), *flags, "--threads", "1", "-o", str(path), "--require-device", "--json"]) == 0
    return path


@pytest.mark.parametrize("kind", kinds.KINDS.values(), ids=lambda kind: kind.name)
def test_libraries_are_whole(kind: kinds.Kind, file: Path) -> None:
    """A region's and that of helpers: files of the system, which import what every process has."""
    names = set[str]()
    with zipfile.ZipFile(made(file, "--for", kind.name, "--precision", "fp16")) as pack:
        libraries = [pack.read(name) for name in pack.namelist() if name.startswith("libraries/")]
    for content in libraries:
        assert content.startswith(MAGIC[kind.system])
        names |= imported(content)
    assert len(libraries) == 2
    assert sorted(names - ALLOWED[kind.system]) == []
    assert {name.rpartition("!")[2] for name in names} >= {"memcpy", "powf", "sinf"}


@pytest.mark.skipif(kinds.here().name != "x86_64-linux", reason="not a machine of that kind")
def test_a_processor_without_halves(file: Path) -> None:
    """The oldest processors have no instruction for them: a library brings what converts them."""
    given = {"programs": made(file, "--for", "x86_64-linux", "--precision", "fp16"), "precision": "fp16"}
    x = randn(RNG, 4, 600)
    got = run(prepared(MODEL, strict=True, **given), x)
    exact = run(reference(MODEL), x)
    half = run(prepared(MODEL, device="native", strict=True, precision="fp16"), x)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(exact))
    compare.assert_close(got, half, 1e-4)
