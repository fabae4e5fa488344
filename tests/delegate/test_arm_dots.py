"""Dot products of bytes by ARM's instructions (kernels_cl/arm_dots.h), in what is compiled.

`tools/native_arm.sh` runs such code, on an emulated processor.
"""

import re

import pytest

from litecl.delegate.backend.sources import source_of
from litecl.delegate.export.machines import export_machine
from litecl.delegate.native import compiler, kinds
from litecl.delegate.native.clang import Unit
from litecl.delegate.native.cross import compiler_for
from support.assembly import assembly

FOUND = compiler.found()
pytestmark = pytest.mark.skipif(
    FOUND is None or FOUND.source != "of ziglang", reason="no compiler for all machines: pip install ziglang"
)
FUNCTIONS = """
__attribute__((visibility("default"))) void bytes(__global const int *x, __global const int *w, __global int *sum) {
    *(__global intv_u *)sum = DOT4(*(__global intv_u *)sum, *(__global const intv_u *)x, *(__global const intv_u *)w);
}
"""
MACHINES = {  # the instructions: signed ones are needed a second time, for what is missing
    "aarch64-linux:cortex-a76": ["sdot"] * 2,
    "aarch64-linux:neoverse-v1": ["usdot"],
    "aarch64-macos:apple-m1": ["sdot"] * 2,
    "aarch64-macos:apple-m2": ["usdot"],
    "armv7-linux:cortex-a76": ["vsdot"] * 2,
    "aarch64-linux:cortex-a72": ["smull", "smull2"] * 2,
    "armv7-linux": ["vmull"] * 4,
}


@pytest.mark.parametrize("machine", MACHINES)
def test_instructions(machine: str) -> None:
    text = source_of("native.h") + "#define T uchar\n" + source_of("quantized.h") + FUNCTIONS
    unit = Unit("dots.cl", text, ("-DVW=4", "-DLITECL_REGION=1"))
    made = assembly(compiler_for(kinds.machine(machine)), unit)
    words = [word.partition(".")[0] for word in made.split()]
    assert sorted(word for word in words if re.fullmatch(r"\w*(dot|mull2?)", word)) == sorted(MACHINES[machine])


BOARDS = {  # by the macros of a tile's kernel: the instructions of a loop's step, for sixteen products or sixty-four
    "cortex-m4": ({"MR": 2, "NV": 2, "PANEL": 2, "WIDTH": 1, "VW": 1}, "multiply_run", {"smlad": 8, "sxtb16": 4}),
    "cortex-m55": (
        {"MR": 4, "NV": 1, "PANEL": 4, "WIDTH": 4, "VW": 4, "ACROSS": 1},
        "multiply_rows",
        {"vmlava": 4, "vaddva": 1},
    ),
}


@pytest.mark.parametrize("board", BOARDS)
def test_products_on_boards(board: str) -> None:
    """Rows share what is made of weights; a loop's step has no more of these instructions than it needs."""
    macros, function, instructions = BOARDS[board]
    options = (
        *(f"-D{name}={value}" for name, value in {**macros, "T": "char", "RECTIFIED": 1}.items()),
        "-DLITECL_REGION=1",
    )
    call = """
__attribute__((visibility("default"))) void rows(__global const Gathered *rows, __global const char *w,
                                                 __global const int *stage, __global char *out,
                                                 __global const QuantizedConvolution *c) {
    multiply_rows(rows, w, stage, out, 0, c, 2, 4);
}
"""
    unit = Unit("rows.cl", source_of("native.h") + source_of("quantized_conv_2d.cl") + call, options)
    made = assembly(export_machine(board).compiler(), unit)
    body = made[made.index(f"\n{function}:") :].partition(".fnend")[0]
    words = [word.partition(".")[0] for word in body.split()]
    assert {name: words.count(name) for name in instructions} == instructions


def test_rows_of_a_tile_share_what_is_missing() -> None:
    """Of a tile of 6 rows and 2 vectors: 12 products for four bytes of each row, and 2 for what all rows lack.

    Sixteen bytes of a row are loaded at once where there are as many: its fours are lanes of a vector.
    """
    macros = {"T": "char", "MR": 6, "NV": 2, "PANEL": 8, "WIDTH": 4, "VW": 4, "LITECL_REGION": 1}
    call = """
__attribute__((visibility("default"))) void rows(__global intv *sums, __global const uchar *x, __global const char *w,
                                                 const int bytes) {
    intv tile[MR][NV];
    for (int i = 0; i < MR * NV; ++i) tile[i / NV][i % NV] = sums[i];
    multiply_patches(tile, x, w, 1024, 1, bytes, 0);
    for (int i = 0; i < MR * NV; ++i) sums[i] = tile[i / NV][i % NV];
}
"""
    text = source_of("native.h") + source_of("quantized_conv_2d.cl") + call
    unit = Unit("rows.cl", text, tuple(f"-D{name}={value}" for name, value in macros.items()))
    made = assembly(compiler_for(kinds.machine("aarch64-linux:cortex-a76")), unit)
    body = made.partition("\nrows:")[2].partition(".Lfunc_end")[0]
    assert body.count("sdot") == 5 * (12 + 2)
    assert len(re.findall(r"sdot\t.*\.4b\[\d\]", body)) == 4 * 12
