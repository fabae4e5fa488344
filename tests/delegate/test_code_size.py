"""The number of kernels that a model's layers need, which determines the time of a first answer."""

import numpy as np
import pytest

from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.kit.schedule import rows_of
from litecl.delegate.ops.chain_steps import StepCode
from litecl.interpreter.file.writer import write
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import MUL, MulOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.unary import EXP, RSQRT
from litecl.perf.models.build import Graph, model, randn
from support.by_name import launches

_CPU = CpuTarget(vector_width=16, compute_units=1)


@pytest.mark.parametrize("kernel", ["depthwise_conv_2d", "quantized_depthwise_conv_2d"])
def test_depthwise_convolutions_of_usual_widths_are_one_kernel(kernel: str) -> None:
    assert {rows_of(kernel, _CPU, width) for width in (8, 10, 14, 19, 28, 38, 56, 75, 112, 150)} == {4}


def test_a_short_line_is_computed_at_once() -> None:
    assert rows_of("quantized_depthwise_conv_2d", _CPU, 5) == 5


def test_convolutions_of_few_channels_are_one_kernel_for_all_strides() -> None:
    graph, rng = Graph(), np.random.default_rng(1)
    x = graph.input((1, 96, 96, 2))
    outputs = []
    for stride in (1, 2, 3):
        filter_ = graph.const(randn(rng, 48, 5, 5, 2))
        options = Conv2DOptions(stride_w=stride, stride_h=stride)
        outputs.append(graph.op(CONV_2D, (x, filter_, graph.const(randn(rng, 48))), options))
    found = launches((write(model(graph.build(*outputs))), [randn(rng, 1, 96, 96, 2)]), _CPU)
    assert len(found) == 3
    assert len({(launch.kernel, tuple(sorted(launch.defines.items()))) for launch in found}) == 1


def test_a_chain_is_compiled_with_its_own_steps() -> None:
    """Two chains of the same operators, in whatever order and number, are one kernel, and those of others another."""
    graph, rng = Graph(), np.random.default_rng(1)
    x, y, z = (graph.input((1, 500)) for _ in range(3))
    half = graph.const(np.float32(0.5))

    def exp(of: int) -> int:
        return graph.op(EXP, (of,), NoOptions())

    def halved(of: int) -> int:
        return graph.op(MUL, (of, half), MulOptions())

    outputs = [halved(exp(x)), halved(exp(exp(y))), graph.op(RSQRT, (halved(z),), NoOptions())]
    found = launches((write(model(graph.build(*outputs))), [randn(rng, 1, 500)] * 3), _CPU)
    masks = [int(launch.defines["TAKEN"]) for launch in found if launch.kernel == "chain"]
    expected = [{"EXP", "MUL"}, {"EXP", "MUL"}, {"MUL", "RSQRT"}]
    assert sorted(masks) == sorted(sum(1 << StepCode[name] for name in names) for names in expected)


def test_every_step_has_a_bit() -> None:
    """Of the 64 that the kernel looks at."""
    assert max(StepCode) < 64
