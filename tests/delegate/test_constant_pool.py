"""Constants on the processor's own device: once for all signatures, subgraphs and models, and some where they were."""

import gc
import os
import signal
import threading
from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.matmul.product import panels
from litecl.delegate.native import memory
from litecl.delegate.native.memory import ConstantPool
from litecl.interpreter import Interpreter
from litecl.interpreter.buffers import aligned
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Quantization, Signature, Subgraph, TensorSpec
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import TensorType as T
from support.build import Graph, model, randn
from support.interrupts import no_hang

_DEPTH, _COLUMNS = 96, 128
_WEIGHTS_BYTES = 4 * _DEPTH * _COLUMNS


def product(name: str, rows: int, weights: Array) -> Subgraph:
    g = Graph(name)
    x = g.input((rows, _DEPTH))
    return g.build(g.op(FULLY_CONNECTED, [x, g.const(weights), None], FullyConnectedOptions()))


def signatures(*rows: int, weights: list[Array]) -> bytes:
    """Return a file with a signature for each number of rows of a product."""
    graphs = [product(f"s{i}", n, w) for i, (n, w) in enumerate(zip(rows, weights, strict=True))]
    named = [Signature(g.name, {"x": g.inputs[0]}, {"y": g.outputs[0]}, i) for i, g in enumerate(graphs)]
    return write(model(*graphs, signatures=named))


def opened(content: bytes, **options: object) -> Interpreter:
    interpreter = Interpreter(content, delegates=[CLDelegate(device="native", strict=True, **options)])  # type: ignore[arg-type]
    interpreter.allocate_tensors()
    return interpreter


@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 2}, {"queue_loops": True}], ids=str)
def test_signatures_share_weights(options: dict[str, object]) -> None:
    """Weights of equal layout are shared by all holders; weights that differ in one element aren't."""
    rng = np.random.default_rng(1)
    weights = randn(rng, _COLUMNS, _DEPTH)
    other = weights.copy()
    other[77, 3] += 1
    given = [weights, weights, other]
    interpreter = opened(signatures(12, 24, 24, weights=given), **options)
    first, second, third = interpreter.delegation_report().partitions
    assert first.constant_bytes >= _WEIGHTS_BYTES
    assert second.constant_bytes < _WEIGHTS_BYTES
    assert third.constant_bytes >= _WEIGHTS_BYTES
    for i, (rows, own) in enumerate(zip((12, 24, 24), given, strict=True)):
        x = randn(rng, rows, _DEPTH)
        got = interpreter.get_signature_runner(f"s{i}")(x=x)["y"]
        np.testing.assert_allclose(got, x.astype(np.float64) @ own.T, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("type_", [T.INT8, T.INT4])
@pytest.mark.parametrize("blocks", [1, 3])
def test_products_of_any_number_of_rows_share_integer_weights(type_: T, blocks: int) -> None:
    """As prefill and decode signatures have them."""
    rng, graphs, named = np.random.default_rng(1), [], []
    columns, depth = 257, 192
    values = rng.integers(-7, 8, (columns, depth)).astype(np.int8)
    scales = rng.uniform(0.01, 0.1, (columns, blocks)).astype(np.float32)
    by = Quantization(
        scales if blocks > 1 else scales.ravel(),
        np.zeros(scales.shape if blocks > 1 else columns, np.int64),
        int(blocks > 1),
        block_size=depth // blocks if blocks > 1 else 0,
    )
    all_rows = (1, 3, 24, 33)
    for i, rows in enumerate(all_rows):
        g = Graph(f"s{i}")
        x = g.input((rows, depth))
        g.tensors.append(TensorSpec(type_, values.shape, "weights", values, by))
        y = g.op(FULLY_CONNECTED, [x, len(g.tensors) - 1, None], FullyConnectedOptions())
        graphs.append(g.build(y))
        named.append(Signature(g.name, {"x": x}, {"y": y}, i))
    interpreter = opened(write(model(*graphs, signatures=named)))
    first, *others = (row.constant_bytes for row in interpreter.delegation_report().partitions)
    least = values.size // (1 if type_ == T.INT8 else 2)
    assert first >= least
    assert all(more < least / 2 for more in others)
    floats = values * np.repeat(scales.astype(np.float64), depth // blocks, axis=1)
    for i, rows in enumerate(all_rows):
        x_ = randn(rng, rows, depth)
        got = interpreter.get_signature_runner(f"s{i}")(x=x_)["y"]
        np.testing.assert_allclose(got, x_ @ floats.T, atol=0.02 * np.abs(x_ @ floats.T).max())


def test_models_share_weights_and_forget_them() -> None:
    weights = randn(np.random.default_rng(2), _COLUMNS, _DEPTH)
    content, x = signatures(12, weights=[weights]), randn(np.random.default_rng(3), 12, _DEPTH)
    interpreters = [opened(content) for _ in range(2)]
    parts = [{*p.constant_parts} for i in interpreters for d in i._delegations for p in d._programs.values()]  # type: ignore[attr-defined]
    assert len(parts[0] & parts[1]) == 1
    assert [i._delegations[0].memory_bytes > _WEIGHTS_BYTES for i in interpreters] == [True, True]
    del interpreters[0]
    gc.collect()
    got = interpreters[0].get_signature_runner()(x=x)["y"]
    np.testing.assert_allclose(got, x.astype(np.float64) @ weights.T, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("end", [Interpreter.close, lambda interpreter: None], ids=["closed", "deleted"])
def test_a_model_is_released_with_its_interpreter(end: Callable[[Interpreter], None]) -> None:
    """At once: nothing waits for the garbage collector, which may not come before the next model is loaded."""
    interpreter = opened(signatures(12, weights=[randn(np.random.default_rng(2), _COLUMNS, _DEPTH)]))
    interpreter.get_signature_runner()(x=np.zeros((12, _DEPTH), np.float32))
    delegation = ref(interpreter._delegations[0])
    gc.disable()
    try:
        end(interpreter)
        del interpreter
        assert delegation() is None
    finally:
        gc.enable()


def test_weights_that_are_read_as_they_are_stay_in_the_model() -> None:
    """A product of one row reads the file's bytes in place, or a copy if a caller could change them."""
    weights = randn(np.random.default_rng(4), 512, 1024)
    g = Graph()
    y = g.op(FULLY_CONNECTED, [g.input((1, 1024)), g.const(weights), None], FullyConnectedOptions())
    of_records = model(g.build(y))
    for given, is_copied in ((write(of_records), False), (of_records, True)):
        interpreter = opened(given)  # type: ignore[arg-type]
        (row,) = interpreter.delegation_report().partitions
        assert (row.constant_bytes >= weights.nbytes) == is_copied
        x = randn(np.random.default_rng(5), 1, 1024)
        interpreter.set_tensor(0, x)
        interpreter.invoke()
        np.testing.assert_allclose(interpreter.get_tensor(y), x.astype(np.float64) @ weights.T, rtol=1e-3, atol=1e-3)


def test_small_weights_are_aligned() -> None:
    """Vectors of weights that a file has elsewhere than at multiples of a cache line are copied."""
    weights, x = randn(np.random.default_rng(6), 1, 1, 1, 1100), randn(np.random.default_rng(7), 1, 1, 1, 1100)
    options = DepthwiseConv2DOptions(stride_h=1, stride_w=1, depth_multiplier=1)
    copied = []
    for letters in range(0, 64, 4):
        g = Graph("n" * letters)  # moves what follows
        y = g.op(DEPTHWISE_CONV_2D, [g.input(x.shape), g.const(weights), None], options)
        interpreter = opened(write(model(g.build(y))))
        (row,) = interpreter.delegation_report().partitions
        copied.append(row.constant_bytes >= weights.nbytes + x.nbytes)  # zeros are the bias
        interpreter.set_tensor(0, x)
        interpreter.invoke()
        np.testing.assert_allclose(interpreter.get_tensor(y), x * weights, rtol=1e-6)
    assert any(copied)


def test_the_pool() -> None:
    """Equal bytes are there once as long as anybody holds them; types and shapes do not matter, every byte does."""
    pool, data = ConstantPool(), np.arange(5000, dtype=np.int32)
    held = pool.held(data)
    assert pool.held(data.reshape(50, 100)) is held
    assert held.ctypes.data % 64 == 0
    data[1] += 1 << 8
    other = pool.held(data)
    assert other is not held
    np.testing.assert_array_equal(other.view(np.int32), data)
    assert len(pool._held) == 1  # they are told apart byte by byte
    del held, other
    pool.held(np.ones(9))
    assert len(pool._held) == 1


def test_large_packed_weights_are_not_copied() -> None:
    """They lie in memory of their own; small ones, parts of other memory, and what may change, are copied."""
    r = np.random.default_rng(8)
    pool, packed = ConstantPool(), panels(randn(r, 1024, 1024), 8)
    for given, is_copied in (
        (packed, False),
        (packed[1:], True),
        (panels(randn(r, 100, 40), 8), True),
        (panels(randn(r, 1024, 1024), 8) + 1, True),
    ):
        held = pool.held(given)
        assert np.may_share_memory(held, given) != is_copied
        np.testing.assert_array_equal(held.view(np.float32), given.ravel())
    with pytest.raises(ValueError, match="read-only"):
        packed[0, 0, 0] = 1


def test_copies_share_pages_as_long_as_somebody_holds_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies are contiguous and aligned, large ones separate; a chunk is freed with its last copy."""
    monkeypatch.setattr(memory, "aligned", aligned)  # tests keep what else it gives
    r, pool = np.random.default_rng(11), ConstantPool()
    given = [r.integers(256, size=size, dtype=np.uint8) for size in (5000, 1, 4097, 1 << 21, *9 * [(1 << 21) - 64])]
    held = [pool.held(data) for data in given]
    for copy, data in zip(held, given, strict=True):
        assert copy.ctypes.data % 64 == 0
        np.testing.assert_array_equal(copy, data)
    first, second, third, fourth, fifth = (copy.ctypes.data for copy in held[:5])
    assert (second - first, third - second, fifth - third) == (5056, 64, 4160)
    assert fourth % (1 << 21) == 0
    del copy
    chunks = [ref(chunk) for chunk in {id(data.base): data.base for data in held if data.base is not None}.values()]
    assert len(chunks) == 3  # two, and what lies apart
    held = held[:1]
    assert [chunk() is not None for chunk in chunks] == [True, False, False]
    del held
    assert not any(chunk() is not None for chunk in chunks)
    np.testing.assert_array_equal(pool.held(given[4]), given[4])


def _before_a_chunk(act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Act before the next chunk is allocated, in the middle of a pool's work."""
    real = memory.aligned

    def interrupted(size_bytes: int) -> Array:
        monkeypatch.setattr(memory, "aligned", real)
        act()
        return real(size_bytes)

    monkeypatch.setattr(memory, "aligned", interrupted)


@pytest.mark.skipif(not hasattr(signal, "SIGWINCH"), reason="no such signals here")
def test_a_signal_handler_may_use_the_pool_that_it_has_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    r, pool = np.random.default_rng(12), ConstantPool()
    given = [r.integers(256, size=5000, dtype=np.uint8) for _ in range(4)]
    held: dict[int, Array] = {}

    def handle(number: int, frame: object) -> None:
        held.update({1: pool.held(given[1]), 2: pool.held(given[2])})

    _before_a_chunk(lambda: signal.raise_signal(signal.SIGWINCH), monkeypatch)
    before = signal.signal(signal.SIGWINCH, handle)
    try:
        with no_hang(15):
            held.update({0: pool.held(given[0]), 3: pool.held(given[3])})
    finally:
        signal.signal(signal.SIGWINCH, before)
    for number, data in enumerate(given):
        np.testing.assert_array_equal(held[number], data)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_may_use_the_pool_that_another_thread_was_using(monkeypatch: pytest.MonkeyPatch) -> None:
    r, pool = np.random.default_rng(13), ConstantPool()
    given = [r.integers(256, size=5000, dtype=np.uint8) for _ in range(2)]
    inside, forked = threading.Event(), threading.Event()
    others: list[Any] = []
    _before_a_chunk(lambda: (inside.set(), forked.wait(60)), monkeypatch)
    thread = threading.Thread(target=lambda: others.append(pool.held(given[1])))
    thread.start()
    assert inside.wait(60)
    child = os.fork()
    if not child:
        code = 1
        try:  # or the child would go on as the tests
            signal.alarm(60)
            code = 0 if all(np.array_equal(pool.held(data), data) for data in given) else 2
        finally:
            os._exit(code)
    forked.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(others[0], given[1])


@pytest.mark.parametrize("columns", [1, 7, 8, 24, 25])
@pytest.mark.parametrize("outer", [(), (3,)])
def test_panels(columns: int, outer: tuple[int, ...]) -> None:
    """Columns beyond the last are zeros; the memory begins where kernels ask for."""
    matrices = randn(np.random.default_rng(10), *outer, columns, 5)
    got = panels(matrices, 8)
    assert got.shape == (*outer, -(-columns // 8), 5, 8)
    assert got.ctypes.data % 64 == 0
    lanes = got.swapaxes(-1, -2).reshape(*outer, -1, 5)
    np.testing.assert_array_equal(lanes[..., :columns, :], matrices)
    assert not lanes[..., columns:, :].any()
