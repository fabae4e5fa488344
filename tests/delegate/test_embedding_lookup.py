"""Tables of integers with scales, looked up on the device, against float64."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.ops.hybrid.embedding_lookup import CL_OPS
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.unary import ABS
from litecl.interpreter.schema import TensorType as T
from support import devices
from support.build import Graph, model

_TOPS = {T.INT8: 127, T.INT4: 7, T.INT2: 1}
_ROWS = 9
_POSITIONS = np.array([8, 0, 3, 3, 7, 1], np.int32)


@dataclass(frozen=True)
class Table:
    """A table with a number of columns. scales: of a row, or 0 for one scale for all; they determine the block size."""

    type: T
    columns: int
    scales: int
    dtype: type = np.float32

    def made(self, rng: np.random.Generator) -> tuple[TensorSpec, Array]:
        """Return the table and its floats."""
        top, count = _TOPS[self.type], max(1, self.scales)
        values = rng.integers(-top - 1, top + 1, (_ROWS, self.columns)).astype(np.int8)
        scales = rng.uniform(0.01, 0.1, (_ROWS if self.scales else 1, count)).astype(self.dtype)
        scales[-1:] *= self.scales == 0  # a row, whose position is looked up first
        block = self.columns // count if count > 1 else 0
        zeros = np.zeros(scales.size, np.int64)
        by = Quantization(scales if block else scales.ravel(), zeros, int(block > 0), block_size=block)
        floats = values * np.repeat(scales.astype(np.float64), self.columns // count, axis=1)
        return TensorSpec(self.type, values.shape, "table", values, by), floats


TABLES = [
    *(Table(type_, columns, scales) for type_ in _TOPS for columns in (1, 7, 64, 75) for scales in (0, 1)),
    *(Table(type_, 96, scales) for type_ in _TOPS for scales in (3, 12)),
    Table(T.INT4, 64, 2, np.float16),
]


def run(options: dict[str, Any]) -> Iterator[tuple[Table, Array, Array]]:
    """Yield every table with its result and the expected one, computed in one region."""
    g, rng, outputs, wanted = Graph(), np.random.default_rng(3), [], []
    positions = g.input(_POSITIONS.shape, T.INT32)
    for table in TABLES:
        spec, floats = table.made(rng)
        g.tensors.append(spec)
        wanted.append(floats[_POSITIONS])
        out = TensorSpec(T.FLOAT32, wanted[-1].shape)
        outputs += g.node(EMBEDDING_LOOKUP, [positions, len(g.tensors) - 1], [out], NoOptions())
    interpreter = Interpreter(model(g.build(*outputs)), delegates=[CLDelegate(strict=True, **options)])
    interpreter.allocate_tensors()
    interpreter.set_tensor(positions, _POSITIONS)
    interpreter.invoke()
    report = interpreter.delegation_report()
    assert all(row.claimed for row in report.nodes)
    for table, output, result in zip(TABLES, outputs, wanted, strict=True):
        yield table, interpreter.get_tensor(output), result


def check(options: dict[str, Any]) -> None:
    for table, got, wanted in run(options):
        np.testing.assert_allclose(got, wanted, rtol=1e-6, err_msg=str(table))


@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 2}, {"queue_loops": True}], ids=str)
def test_tables(options: dict[str, Any]) -> None:
    check(options)


def test_tables_on_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check(devices.as_on_a_gpu(monkeypatch, tmp_path))


@pytest.mark.parametrize("scales", [0, 3, 5])
def test_refused(scales: int) -> None:
    """Scales that are none, or neither one nor one a row."""
    by = Quantization(np.ones(scales, np.float32), np.zeros(scales, np.int64)) if scales else None
    table = TensorSpec(T.INT8, (4, 6), "table", np.ones((4, 6), np.int8), by)
    (cl_op,) = CL_OPS
    refusal = cl_op.claim(NoOptions(), [TensorSpec(T.INT32, (2,)), table], [TensorSpec(T.FLOAT32, (2, 6))])
    assert refusal is not None
    assert "scales" in refusal.reason


@pytest.mark.parametrize("type_", [T.INT4, T.INT2])
@pytest.mark.parametrize("columns", [131_071, 131_072])
def test_a_large_table_stays_in_the_file(type_: T, columns: int) -> None:
    """Packed elements are looked up in the bytes that were read; of records, which have none, they are packed."""
    g, rng = Graph(), np.random.default_rng(4)
    positions = g.input(_POSITIONS.shape, T.INT32)
    spec, floats = Table(type_, columns, 1).made(rng)
    g.tensors.append(spec)
    floats_ = TensorSpec(T.FLOAT32, (_POSITIONS.size, columns))
    (rows,) = g.node(EMBEDDING_LOOKUP, [positions, len(g.tensors) - 1], [floats_], NoOptions())
    y = g.op(ABS, [rows], NoOptions())
    content = write(model(g.build(y)))
    size = -(-_ROWS * columns * (4 if type_ == T.INT4 else 2) // 8)
    for given, is_copied in ((content, False), (bytearray(content), False), (model(g.build(y)), True)):
        interpreter = Interpreter(given, delegates=[CLDelegate(device="native", strict=True)])
        interpreter.allocate_tensors()
        (row,) = interpreter.delegation_report().partitions
        assert (row.constant_bytes >= size) == is_copied
        interpreter.set_tensor(positions, _POSITIONS)
        interpreter.invoke()
        np.testing.assert_allclose(interpreter.get_tensor(y), np.abs(floats[_POSITIONS]), rtol=1e-6)
