"""Graphs for GPU kernels, with expected results computed in float64."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from support.build import Graph, model


@dataclass(frozen=True)
class Net:
    """A graph, its inputs, the expected results, and the kernel that must run it. exact: whether to the last bit."""

    graph: Graph
    output: int
    feeds: Sequence[Array]
    expected: Array
    kernel: str = "product_local"
    exact: bool = False


def check(net: Net, options: dict[str, Any]) -> Interpreter:
    """Run a net twice, because groups leave data for the next run; compare, and return it."""
    interpreter = Interpreter(model(net.graph.build(net.output)), delegates=[CLDelegate(**options)])
    interpreter.allocate_tensors()
    report = interpreter.delegation_report()
    assert all(row.claimed for row in report.nodes)
    assert any(net.kernel in name for row in report.partitions for name in row.kernels), report.partitions
    for detail, feed in zip(interpreter.get_input_details(), net.feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    interpreter.invoke()
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    if net.exact:
        np.testing.assert_array_equal(got, net.expected)
    largest = max(1.0, float(np.abs(net.expected).max()))
    np.testing.assert_allclose(got, net.expected, rtol=1e-5, atol=2e-6 * largest)
    return interpreter


def convolved(x: Array, w: Array, stride: int, groups: int, dilation: int) -> Array:
    """Convolve images with padding SAME."""
    images, height, width, _ = x.shape
    columns, size, _, depth = w.shape
    out = (-(-height // stride), -(-width // stride))
    pads = [max((n - 1) * stride + (size - 1) * dilation + 1 - m, 0) for n, m in zip(out, (height, width), strict=True)]
    around = ((0, 0), *((p // 2, p - p // 2) for p in pads), (0, 0))
    padded = np.pad(x.astype(np.float64), around).reshape(images, height + pads[0], width + pads[1], groups, depth)
    filters = w.astype(np.float64).reshape(groups, columns // groups, size, size, depth)
    y = np.zeros((images, *out, groups, columns // groups))
    for ky in range(size):
        for kx in range(size):
            seen = padded[:, ky * dilation :, kx * dilation :][:, ::stride, ::stride][:, : out[0], : out[1]]
            y += np.einsum("nhwgc,gkc->nhwgk", seen, filters[:, :, ky, kx])
    return y.reshape(images, *out, columns)
