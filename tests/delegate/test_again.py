"""Regions that run again without a launch: the mode of arithmetic, the gate before Python's lock, libraries."""

import ctypes
import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.opencl import again
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.binary import ADD, AddOptions
from support.build import Graph, model
from support.devices import runs_again

pytestmark = pytest.mark.skipif(not runs_again(), reason="every run is a launch on this device")

SMALLEST = np.float32(np.finfo(np.float32).smallest_subnormal)
FLUSHING = 0x9FC0  # of MXCSR: results and operands below the normal numbers are 0
DEFAULT = 0x1F80
STRANGER = 12345


def opened(num_threads: int = 1) -> Interpreter:
    g = Graph()
    x = g.input((5,))
    interpreter = Interpreter(
        model(g.build(g.op(ADD, [x, x], AddOptions()))), delegates=[CLDelegate(num_threads=num_threads)]
    )
    interpreter.allocate_tensors()
    return interpreter


def doubled(interpreter: Interpreter, x: Array) -> Array:
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@pytest.fixture
def mode() -> Iterator[Any]:
    """Reads this thread's mode of floating-point arithmetic, or sets it."""
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as code:
        code[:8] = bytes.fromhex("0fae17c3 0fae1fc3")  # ldmxcsr (%rdi); ret; stmxcsr (%rdi); ret
        start = ctypes.addressof(view := ctypes.c_char.from_buffer(code))
        load, store = (ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(start + offset) for offset in (0, 4))
        word = ctypes.c_uint32()

        def access(value: int | None = None) -> int:
            if value is not None:
                word.value = value
                load(ctypes.addressof(word))
            store(ctypes.addressof(word))
            return word.value

        before = access()
        yield access
        access(before)
        del view


@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_thread_that_flushes_small_numbers(num_threads: int, mode: Any) -> None:
    """A run has the mode that the runtime has given to the first one, and its thread gets its own back."""
    interpreter = opened(num_threads)
    x = np.arange(5, dtype=np.float32) * SMALLEST
    expected = x + x
    assert expected[1]
    np.testing.assert_array_equal(doubled(interpreter, x), expected)
    for _ in range(12):
        mode(FLUSHING)
        got, after = doubled(interpreter, x), mode()
        mode(DEFAULT)
        np.testing.assert_array_equal(got, expected)
        assert after & FLUSHING == FLUSHING


def test_a_gate_that_nobody_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again, "_SHORT_S", 0.0)  # nothing is too short to release the lock
    interpreter, x = opened(), np.arange(5, dtype=np.float32)
    for run in range(20):
        if run > 10:
            again._GATE[0] = STRANGER
        np.testing.assert_array_equal(doubled(interpreter, x + run), 2 * (x + run))
    assert again._GATE[0] not in (0, STRANGER)


def test_those_that_keep_the_lock_pass_no_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again, "_SHORT_S", 1.0)
    interpreter, x = opened(), np.arange(5, dtype=np.float32)
    again._GATE[0] = STRANGER
    for run in range(20):
        np.testing.assert_array_equal(doubled(interpreter, x + run), 2 * (x + run))
    assert again._GATE[0] == STRANGER


def test_a_function_that_may_be_unloaded_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again, "_is_kept", lambda address: False)
    monkeypatch.setattr(again, "_FREE", None)
    interpreter, x = opened(), np.arange(5, dtype=np.float32)
    for run in range(12):
        np.testing.assert_array_equal(doubled(interpreter, x + run), 2 * (x + run))


def test_only_addresses_of_libraries_are_kept() -> None:
    somewhere = ctypes.create_string_buffer(16)
    assert not again._is_kept(ctypes.addressof(somewhere))
    assert again._is_kept(ctypes.cast(ctypes.CDLL(None).strlen, ctypes.c_void_p).value or 0)
