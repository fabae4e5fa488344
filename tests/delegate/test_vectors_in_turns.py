"""Tiles of processors with AVX-512 whose vectors of 16 floats take two turns, such as a Zen 4, and those of others."""

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.native import backend, compiler
from litecl.interpreter.file.writer import write
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding
from support.build import Graph, model, randn
from support.by_name import agrees

_ROWS = (5, 6, 7, 8, 9, 13, 49, 64)
_TURNS = CpuTarget(16, 1, takes_turns=True)


@pytest.mark.parametrize(
    ("rows", "columns", "tile"),
    [
        (49, 960, (7, 1, 16)),
        (9, 256, (9, 1, 16)),
        (64, 16, (8, 1, 16)),
        (49, 24, (6, 3, 8)),
        (49, 40, (7, 1, 16)),
        (49, 8, (12, 1, 8)),
        (49, 3, (12, 1, 4)),
        (4, 24, (4, 2, 16)),
    ],
)
def test_the_tile_computes_few_columns_in_vain(rows: int, columns: int, tile: tuple[int, int, int]) -> None:
    found = _TURNS.tile_for("gemm", rows, columns, narrow=True)
    assert (found.rows, found.vectors, found.width) == tile
    assert found.panel == found.vectors * found.width


@pytest.mark.parametrize(
    ("rows", "columns", "tile"),
    [(9, 256, (9, 2)), (36, 64, (9, 2)), (100, 64, (10, 2)), (49, 64, (7, 2)), (2, 256, (2, 4)), (2, 20, (2, 2))],
)
def test_the_tile_computes_few_rows_in_vain(rows: int, columns: int, tile: tuple[int, int]) -> None:
    found = CpuTarget(16, 1).tile_for("gemm", rows, columns)
    assert (found.rows, found.vectors) == tile


def test_other_kernels_have_their_tiles_and_width() -> None:
    plain = CpuTarget(16, 1)
    for kernel in ("conv_2d", "quantized_conv_2d", "hybrid_conv_2d"):
        for rows in _ROWS:
            assert _TURNS.tile_for(kernel, rows, 40) == plain.tile_for(kernel, rows, 40)
    assert all(_TURNS.tile_for("gemm", rows, 24).width == 16 for rows in _ROWS)


@pytest.mark.parametrize("turns", [True, False], ids=["in turns", "at once"])
@pytest.mark.parametrize("side", [1, 3])
def test_products_agree(turns: bool, side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that each tile fills and leaves unfilled, times columns that fill vectors of 16, of 8 and neither."""
    found = compiler.found(None)
    if found is None or "__AVX512F__" not in found.macros:
        pytest.skip("no compiler for a processor with AVX-512")
    monkeypatch.setattr(backend, "_IN_TURNS", frozenset({"__AVX512F__"} if turns else ()))
    assert backend.NativeFound(found).target().takes_turns == turns
    r, g, depth = np.random.default_rng(12), Graph(), 18
    inputs, outputs = [], []
    for rows in _ROWS:
        inputs.append(g.input((1, 2, rows, depth) if side == 1 else (1, 4 * rows, 8, depth)))
        for columns in (16, 17, 20, 24, 25, 40, 72):
            operands = [inputs[-1], g.const(randn(r, columns, side, side, depth)), g.const(randn(r, columns))]
            options = Conv2DOptions(Padding.SAME, 1, 1, fused_activation_function=ActivationFunctionType.RELU6)
            outputs.append(g.op(CONV_2D, operands, options))
    feeds = [randn(r, *g.tensors[x].static_shape) for x in inputs]
    agrees((write(model(g.build(*outputs))), feeds), [CLDelegate(device="native", num_threads=1, strict=True)])
