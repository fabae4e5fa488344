"""What compilers make of the kernels of GPUs, without a GPU: the fast part of ``tests/tools/gpu_static.sh``."""

import json
from pathlib import Path
from typing import Any

import pytest

from litecl.delegate.backend.absent import AbsentDevice
from litecl.delegate.gpu.groups import LocalTile
from litecl.delegate.gpu.profiles import PROFILES
from litecl.delegate.gpu.properties import MATRIX_UNITS, Gpu
from litecl.delegate.gpu.tiles import local_share
from support import gpu_compile
from support.gpu_code import Code
from support.gpu_programs import MACROS

_BASELINE = Path(__file__).parents[1] / "tools" / "gpu_static.json"
_TARGETS = ("sm_90", "gfx1100")
_MORE_TARGETS = ("sm_80", "gfx90a")  # for which tiles of 64 x 64 are compiled too
_LARGE, _SMALL = ({"BM": n, "BN": n, "TM": own, "TN": own} for n, own in ((64, 8), (32, 4)))
_DOTS = {"LITECL_DOTS": 1}
_BLOCK = {"ITEMS": 128, "TILE": 32, "ACROSS": 32, "PARTS": 1, "ACTIVATION": "ACTIVATION_CLAMP"}
# Kernels with macros of each kind, and the least share of multiply-adds in the inner loop. Loads of products take 16
# bytes each, but for SINGLE.
_KERNELS: dict[str, tuple[str, dict[str, Any], float]] = {
    "large tiles": ("product_local", {**_LARGE, "PARTS": 1}, 0.75),
    "large tiles of patches": ("product_local", {**_LARGE, "PARTS": 1, "GATHER": 1}, 0.75),
    "large tiles of bytes": ("quantized_local", {**_LARGE, "PARTS": 1, "T": "char", "RECTIFIED": 1, **_DOTS}, 0.75),
    "small tiles of bytes": ("quantized_local", {**_SMALL, "GATHER": 1, "SINGLE": 1, "T": "uchar", **_DOTS}, 0.6),
    "tiles behind a window": ("product_local", {**_SMALL, "PARTS": 1, "WINDOW_HEIGHT": 3, "WINDOW_WIDTH": 3}, 0.7),
    "tiles behind a large window": ("product_local", {**_LARGE, "WINDOW_HEIGHT": 5, "WINDOW_WIDTH": 5}, 0.75),
    "tiles behind gates": ("product_local", {**_SMALL, "PARTS": 1, "WINDOW_HEIGHT": 1, "WINDOW_WIDTH": 1}, 0.7),
    "small tiles": ("product_local", {**_SMALL, "PARTS": 1}, 0.7),
    "small tiles of patches": ("product_local", {**_SMALL, "PARTS": 1, "GATHER": 1}, 0.7),
    "smallest tiles": ("product_local", {"BM": 16, "BN": 32, "TM": 4, "TN": 4, "PARTS": 1, "GATHER": 1}, 0.7),
    "LSTMs": ("lstm_local", {"UNITS": 64, "ITEMS_PER_UNIT": 4, "DEPTH": 16, "NV": 4, "PEEPHOLE": 1}, 0.0),
    "LSTMs of several groups": (
        "lstm_local",
        {"UNITS": 16, "ITEMS_PER_UNIT": 16, "DEPTH": 16, "NV": 4, "HANDED_ON": 1, "ACTIVATION": "ACTIVATION_TANH"},
        0.0,
    ),
    "inverted residuals": ("inverted_residual", {**_BLOCK, "COLUMNS": 1, "WINDOW_HEIGHT": 3, "WINDOW_WIDTH": 3}, 0.0),
    "wide inverted residuals": (
        "inverted_residual",
        {**_BLOCK, "COLUMNS": 2, "WINDOW_HEIGHT": 5, "WINDOW_WIDTH": 5},
        0.0,
    ),
    "ends of Winograd's patches": ("winograd_patches", {"ACTIVATION": "ACTIVATION_GELU"}, 0.0),
    "windows of whole vectors": (
        "depthwise_conv_2d",
        {"PIXELS": 4, "KERNEL_WIDTH": 3, "STRIDE_X": 1, "ACTIVATION": "ACTIVATION_CLAMP", "ALIGNED": 1},
        0.0,
    ),
    "pooled whole vectors": ("pool_2d", {"OP": "MAXIMUM", "ACTIVATION": "ACTIVATION_CLAMP", "ALIGNED": 1}, 0.0),
    "rows of bytes": ("quantized_softmax_local", {"X": "char", "T": "char", "BITS": 8, "ITEMS": 256}, 0.0),
    "dots": ("matvec", {"ROWS": 1, "COLUMNS": 4, "ITEMS": 64}, 0.0),
    "rows": ("rows_local", {"ITEMS": 256}, 0.0),
    "reductions": ("reduce_local", {"ITEMS": 256, "T": "float", "A": "float", "R": "float", "OP": "ADD"}, 0.0),
    "swapped dimensions": ("transpose_local", {"ITEMS": 256, "T": "uint"}, 0.0),
    "swapped dimensions of bytes": ("transpose_local", {"ITEMS": 256, "T": "uchar"}, 0.0),
    "maps without broadcasting": (
        "binary",
        {"T": "float", "R": "float", "OP": "ADD", "FINISH": "ACTIVATE", "FLOATING": 1, "STRAIGHT": 1},
        0.0,
    ),
    "maps with broadcasting": (
        "binary",
        {"T": "float", "R": "float", "OP": "ADD", "FINISH": "ACTIVATE", "FLOATING": 1},
        0.0,
    ),
    "chains with broadcasting": ("chain", {"TAKEN": (1 << 32) - 1}, 0.0),
    "copies": ("copy", {"T": "uint"}, 0.0),
    "maps of bytes without broadcasting": ("quantized_binary", {"T": "char", "OP": "ADD", "STRAIGHT": 1}, 0.0),
    "choices without broadcasting": ("select", {"T": "uint", "STRAIGHT": 1}, 0.0),
}
_UNITS = {"sm_80": "mma", "sm_90": "mma", "gfx90a": "mfma", "gfx1100": "wmma", "dg2": "dpas of 8", "pvc": "dpas of 16"}
_PRODUCTS = ("product_local", "quantized_local", "matvec", "inverted_residual")
# Kernels of which none has anything outside registers, on any of the targets: products, convolutions, rows, LSTMs.
_WITHOUT_SPILLS = (
    *("product_local", "quantized_local", "matvec", "gemm", "conv_2d", "hybrid_conv_2d", "quantized_conv_2d"),
    *(
        "attention",
        "attention_local",
        "inverted_residual",
        "winograd_patches",
        "depthwise_conv_2d",
        "quantized_depthwise_conv_2d",
    ),
    *(
        "rows_local",
        "reduce_local",
        "softmax",
        "softmax_16",
        "quantized_softmax",
        "quantized_softmax_local",
        "arg_max",
        "l2_normalization",
    ),
    *(
        "transpose_local",
        "transpose",
        "binary",
        "cast",
        "chain",
        "copy",
        "quantized_binary",
        "select",
        "table",
        "unary",
    ),
    *("lstm_local", "lstm", "integer_lstm", "basic_lstm", "quantize_rows", "svdf"),
)
_TILED = ("product_local", "quantized_local")  # whose bias, residual or stage has edges
# What Intel's GPUs get, whose work-items have half as many registers.
_HALF_TILE = {"BM": 64, "BN": 64, "TM": 8, "TN": 4, "PARTS": 1, "GATHER": 1}
_ON_INTEL = {
    "tiles": ("product_local", _HALF_TILE),
    "tiles of bytes": ("quantized_local", {**_HALF_TILE, "T": "char", "RECTIFIED": 1, **_DOTS}),
    "LSTMs": _KERNELS["LSTMs of several groups"][:2],
    "ends of Winograd's patches": _KERNELS["ends of Winograd's patches"][:2],
}


def _compiled(target: str, kernel: str, defines: dict[str, Any]) -> dict[str, gpu_compile.Figures]:
    if not gpu_compile.can_compile(target):
        pytest.skip(f"no compiler for {target}: gpu_static.sh has one")
    return gpu_compile.compiled(target, kernel, {**MACROS, **defines})


@pytest.mark.parametrize(
    ("name", "target"),
    [(name, target) for name in _KERNELS for target in _TARGETS]
    + [(name, target) for name in _KERNELS if "large" in name for target in _MORE_TARGETS],
)
def test_kernels_of_gpus(name: str, target: str) -> None:
    """All builds, nothing lies outside registers, products load 16 bytes at a time and mostly multiply and add."""
    kernel, defines, least = _KERNELS[name]
    found = _compiled(target, kernel, defines)
    for entry, figures in found.items():
        assert (figures.failures, figures.spill_bytes, figures.scratch_bytes) == (0, 0, 0), entry
        assert figures.registers <= 256
    main = found.get(kernel)
    if main is not None and kernel in _PRODUCTS:
        assert (main.multiply_adds or 0) >= least
        if "SINGLE" not in defines:
            assert main.wide_loads is not None
            assert main.wide_loads >= (0.5 if kernel in _TILED else 0.7)
    if kernel == "depthwise_conv_2d":
        assert (found[kernel].wide_loads or 0) >= 0.6


@pytest.mark.parametrize(("target", "profile"), [("tgllp", "xe_lp"), ("pvc", "xe_hpc")])
@pytest.mark.parametrize("name", _ON_INTEL)
def test_kernels_of_intels_gpus(name: str, target: str, profile: str) -> None:
    """Nothing lies outside registers with the tiles and the lockstep that these GPUs get; bytes have dot products."""
    kernel, defines = _ON_INTEL[name]
    for entry, figures in _compiled(target, kernel, {**AbsentDevice(profile).profile.gpu.macros, **defines}).items():
        assert (figures.failures, figures.spill_bytes, figures.scratch_bytes) == (0, 0, 0), entry
        assert figures.simd == (16 if profile == "xe_hpc" else 8)
        assert kernel != "quantized_local" or (figures.multiply_adds or 0) >= 0.7


@pytest.mark.parametrize("target", _UNITS)
def test_tiles_of_matrix_units(target: str) -> None:
    """All build with nothing outside registers; the inner loop has the instructions of one step."""
    if target.startswith("sm_") and gpu_compile.tool("nvdisasm") is None:
        pytest.skip("no nvdisasm")
    unit = MATRIX_UNITS[_UNITS[target]]
    tile = LocalTile(64, 64, 8, 4, unit)
    for layout in ({"HALF_WEIGHTS": 1, "GATHER": 1, "PARTS": 1}, {"RIGHT_ROWS": 1}):
        macros = {**tile.defines, "ACTIVATION": "ACTIVATION_CLAMP", **layout}
        figures = _compiled(target, "product_local", macros)["product_matrix"]
        assert (figures.failures, figures.spill_bytes, figures.scratch_bytes) == (0, 0, 0)
        if target in gpu_compile.INTEL:
            assert figures.simd == unit.lanes
        else:
            products = 64 * 64 * unit.step // (unit.rows * unit.columns * 16)
            assert figures.matrix == products // (tile.items // unit.lanes)
            assert (figures.wide_loads or 0) >= 0.5


@pytest.mark.parametrize(
    ("target", "gpu"),
    [("gfx1100", Gpu("amd", 32, fp16=True)), ("tgllp", PROFILES["xe_lp"].gpu)],
    ids=["gfx1100", "tgllp"],
)
def test_tiles_of_halves(target: str, gpu: Gpu) -> None:
    """All build with nothing outside registers, two halves an instruction on AMD's GPUs; Intel's, which compute twice
    as many halves as floats only where 16 work-items are in lockstep, get these.
    """
    shapes = ((64, 64, 4, 4), (32, 32, 4, 4)) if gpu.vendor == "intel" else ((64, 64, 8, 8), (64, 64, 8, 4))
    for shape in shapes:
        tile = LocalTile(*shape, gpu.unit)
        parts: dict[str, str | int] = {"HALF_WEIGHTS": 1, "PARTS": 1}
        for layout, lanes in (
            ({**parts, "GATHER": 1}, 16),
            ({"RIGHT_ROWS": 1}, 16),
            ({**parts, "ACTIVATION": "ACTIVATION_SWISH"}, 8),
        ):
            macros = {**gpu.macros, **tile.defines, "ACTIVATION": "ACTIVATION_CLAMP", **layout}
            figures = _compiled(target, "product_local", macros)["product_halves"]
            assert (figures.failures, figures.spill_bytes, figures.scratch_bytes) == (0, 0, 0)
            if target in gpu_compile.INTEL:
                assert figures.simd == lanes
            else:
                assert (figures.multiply_adds or 0) >= 0.8
                assert (figures.wide_loads or 0) >= 0.5


def test_halves_are_loaded_four_at_a_time() -> None:
    """A work-item of an NVIDIA GPU has one load for four weights, not four of two bytes each."""
    if gpu_compile.tool("nvdisasm") is None:
        pytest.skip("no nvdisasm")
    macros = {"ROWS": 1, "COLUMNS": 4, "ITEMS": 64, "HALF_WEIGHTS": 1}
    assert (_compiled("sm_90", "matvec", macros)["matvec"].wide_loads or 0) > 0.3


@pytest.mark.parametrize(
    ("kernel", "defines"),
    [
        ("quantize_rows", {}),
        ("quantized_batch_matmul_16", {"T": "short", "WORDS": 1, "WIDE_SUMS": 1, "FLOORED": 1}),
        ("quantized_depthwise_16", {"T": "short", "WORDS": 1, "WIDE_SUMS": 1, "FLOORED": 1}),
        ("quantized_conv_2d", {"T": "char", "REAL_FACTORS": 1, "MR": 1, "NV": 1, "PANEL": 128, "WIDTH": 4}),
    ],
)
def test_programs_build_without_float64(kernel: str, defines: dict[str, Any]) -> None:
    """A compiler that does not know the word ``double`` takes what computes in float64 elsewhere."""
    found = _compiled("spirv", kernel, defines)
    assert [figures.failures for figures in found.values()] == [0]


@pytest.mark.parametrize("name", ["sm_90", "gfx1100", "mali", "xe_lp"])
def test_local_memory_is_little(name: str) -> None:
    """No tile takes more than the 32 KB that phones' GPUs have."""
    share = local_share(AbsentDevice(name).target(), 1, 4096, 4096, 64)
    assert share is not None
    assert share.tile.local.size_bytes <= 32 << 10


def test_code_is_read() -> None:
    """Of the innermost loop, which holds the most multiply-adds; loads outside loops do not count."""
    text = """
        LDG.E.32 R0
    .L_x_0:
        LDG.E.128 R1
    .L_x_1:
        FFMA R1, R2, R3, R1
        FFMA R1, R2, R3, R1
        FFMA R1, R2, R3, R1
        FFMA R1, R2, R3, R1
        BRA `(.L_x_1)
        LDG.E.32 R1
        BRA `(.L_x_0)
    """
    code = Code([line.strip() for line in text.splitlines()], r"^(\.L_x_\d+):", r"BRA.*`\((\.L_x_\d+)\)")
    assert (code.multiply_adds, code.wide_loads) == (0.8, 0.5)


def test_the_baseline_has_no_faults() -> None:
    """On every target all programs were built; products, convolutions, rows, LSTMs and maps spill nothing."""
    table = json.loads(_BASELINE.read_text())
    assert {*table} >= {"sm_80", "sm_90", "gfx90a", "gfx1100", *gpu_compile.INTEL}
    for target, rows in table.items():
        assert [name for name, row in rows.items() if row["failures"]] == [], target
        own = {name: row for name, row in rows.items() if name.partition(".")[0] in _WITHOUT_SPILLS}
        assert [name for name, row in own.items() if row["spill_bytes"] or row["scratch_bytes"]] == [], target
        if target in gpu_compile.INTEL or target.startswith(("sm_", "gfx")):
            there = {name.partition(".")[0] for name in own}
            assert there >= {"product_local", "quantized_local", "lstm", "integer_lstm", "hybrid_conv_2d"}, target


def test_nothing_is_compiled_without_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of get_local_id and its like would spill registers in any kernel."""
    monkeypatch.setattr(gpu_compile, "clang", lambda: "clang")
    monkeypatch.setattr(gpu_compile, "tool", lambda *names: names[0])
    monkeypatch.setattr(gpu_compile, "_library", lambda target: "")
    assert [gpu_compile.can_compile(target) for target in ("sm_90", "gfx1100", "spirv")] == [False, False, True]
