"""The launch shapes that a GPU gets, run on whatever device there is: many work-items of a vector each, in groups."""

from collections.abc import Iterable, Iterator

import numpy as np
import pytest

from litecl.cases import (
    Case,
    gather,
    hybrid,
    integer_device,
    integer_lstm,
    integer_pool,
    quantized_rows,
    resize,
    vector_width,
)
from litecl.delegate import CLDelegate
from litecl.delegate.analysis.explicit import explicit
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.claim.partition import partition
from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.ops import CL_OPS
from litecl.delegate.plan.planning import plan
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.run.shapes import propagate
from support import compare, devices, oracle

# A work-item takes a vector of 4, a group 64 work-items: less than a vector, one, one and a bit, two, many; and for
# the kernels that divide large arrays whole groups, whole groups and a bit, many groups.
_VECTORS = vector_width.cases(sizes=(1, 3, 4, 5, 8, 131), shares=(4096, 4097, 65537))
# Tiles that are not filled in one direction or the other, several groups in each, and every program at least once.
_INTEGERS = (
    *("1x1, 33 to 5", "1x1, 17 to 48", "3x3, 64 to 130", "3x3 VALID, RELU6", "8 x 17 x 33", "3 x 130 x 100"),
    *("3x3, 15", "3x3, 16", "3x3, stride 2, 5", "3x3, stride 2, 16", "3x3, stride 2, 24", "5x5 of 8", "9x9"),
    *(
        "dilation 2",
        "two columns of many pixels",
        "3x1, one column",
        "9x1, one column, stride 2",
        "narrower than a piece",
    ),
)
_HYBRID = (
    *(
        "8 bits, one scale",
        "8 bits, 3x3, 5 to 24",
        "8 bits, 3x3, 64 to 130",
        "8 bits, 1 x 64 to 130",
        "8 bits, halves",
        "8 bits, long rows",
    ),
    *("8 bits, groups", "8 bits, large images", "8 bits, multiplier 2, stride 2", "8 bits", "4 bits", "2 bits"),
    *("4 bits, blocks", "4 bits, blocks, rows"),
    *("8 bits, projection, batch first", "8 bits, projection, auxiliary input"),
)
_INTEGER_LSTM = ("BASIC", "batch first, everything", "plain", "8-bit products", "rank 2, no bias")
_LSTMS = tuple(case for case in integer_lstm.CASES if case.name in _INTEGER_LSTM)
# A vector of a pixel's channels, or of a row, a work-item; rows of integers a group.
_PIXELS = tuple(
    case
    for table in (gather, integer_pool, quantized_rows, resize)
    for case in table.CASES
    if case.op.name
    in ("GATHER", "GATHER_ND", "SOFTMAX", "AVERAGE_POOL_2D", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
    and case.device is None
)
_TABLES = (*vector_width.CASES, *integer_device.CASES, *hybrid.CASES, *_LSTMS, *_PIXELS)
_CASES = (
    *_VECTORS,
    *(case for case in integer_device.CASES if case.name.partition(", ")[2] in _INTEGERS),
    *(case for case in hybrid.CASES if case.name in _HYBRID and case.device is None),
    *_LSTMS,
    *_PIXELS,
)


@pytest.fixture(scope="module")
def delegate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CLDelegate]:
    """Return a delegate that takes the first device for a GPU, with a cache of its own so that it opens the device
    anew.
    """
    with pytest.MonkeyPatch.context() as patch:
        options = devices.as_on_a_gpu(patch, tmp_path_factory.mktemp("programs"))
        yield CLDelegate(**options, dynamic_range="reference")


@pytest.mark.parametrize("case", _CASES, ids=repr)
def test_agrees(delegate: CLDelegate, case: Case) -> None:
    """The result is the one that the reference kernels compute."""
    devices.needs_cells(case)
    content = write(case.model())
    interpreter = Interpreter(model_content=content, delegates=[delegate])
    interpreter.allocate_tensors()
    assert all(row.claimed for row in interpreter.delegation_report().nodes)
    for detail, feed in zip(interpreter.get_input_details(), case.feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    for detail, expected in zip(
        interpreter.get_output_details(), oracle.run(content, case.feeds, oracle.RESOLVERS[case.kernels]), strict=True
    ):
        got = np.asarray(interpreter.get_tensor(detail["index"]))
        compare.assert_close(got, expected, compare.DEVICE.get(expected.dtype.name, 0.0))


@pytest.mark.nightly
def test_every_program_of_the_tables_is_run() -> None:
    """The few sizes chosen here reach each kernel with each set of macros that the whole tables reach."""
    assert _programs(_CASES) == _programs(case for case in _TABLES if case.device is None)


def _programs(cases: Iterable[Case]) -> set[tuple[str, str, frozenset[tuple[str, object]]]]:
    """Return file, entry and macros of every launch that a GPU would get."""
    target = GpuTarget(vector_width=4, compute_units=4, max_work_group_size=4096)
    found = set()
    for case in cases:
        model = case.model()
        shapes = [model.subgraphs[0].tensors[t].static_shape for t in model.subgraphs[0].inputs]
        source = explicit(model, propagate(model, {0: shapes}))
        for region in partition(0, source, CLOptions(), preserve=False).regions:
            works = plan(region, source, target, 64, CL_OPS).works
            found |= {(w.launch.kernel, w.launch.entry, frozenset(w.launch.defines.items())) for w in works}
    return found
