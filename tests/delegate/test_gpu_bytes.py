"""Products of bytes in tiles in local memory, on whatever device there is: every tile, layout and edge, bit for bit."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from litecl.cases import Case
from litecl.cases.integers import Integers, T, weighted_case
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding, TensorType
from support import devices, oracle

_integers = Integers(7)


@pytest.fixture(scope="module", params=devices.UNITS)
def options(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Options of delegates for a GPU whose products are cut into tiles of one kind."""
    with devices.in_tiles(request.param, tmp_path_factory.mktemp("programs")) as found:
        yield found


def conv(
    x: tuple[int, ...], columns: int, size: int, stride: int = 1, dilation: int = 1, groups: int = 1, **chosen: Any
) -> Case:
    """A convolution of images; its zero points are not 0."""
    options = Conv2DOptions(
        chosen.pop("padding", Padding.SAME), stride, stride, chosen.pop("activation", _NONE), dilation, dilation
    )
    depth = size * size * x[3] // groups
    return product(CONV_2D, options, x, (columns, size, size, x[3] // groups), depth, **chosen)


def dense(rows: int, depth: int, columns: int, **chosen: Any) -> Case:
    """A product, whose factors are applied in float64."""
    return product(FULLY_CONNECTED, FullyConnectedOptions(), (rows, depth), (columns, depth), depth, **chosen)


def product(
    op: Any,
    options: Any,
    x: tuple[int, ...],
    weights: tuple[int, ...],
    depth: int,
    type_: TensorType = T.INT8,
    zero: int = 128,
) -> Case:
    """A case of a product of two tensors of bytes with a bias. zero: the zero point of unsigned weights."""
    zeros = (3, 0, -5) if type_ == T.INT8 else (131, zero, 120)
    sizes = {"axis": 0, "depth": depth, "per_channel": type_ == T.INT8 and op is CONV_2D, "zero_point": zeros[2]}
    return weighted_case(
        _integers, "", op, options, (type_, x, zeros[0]), (type_, weights, zeros[1]), version=6, **sizes
    )


_NONE, _RELU6 = ActivationFunctionType.NONE, ActivationFunctionType.RELU6
_PRODUCTS = {
    "1x1": lambda: conv((1, 9, 7, 64), 130, 1),
    "1x1, a clamp": lambda: conv((1, 9, 7, 16), 5, 1, activation=_RELU6),
    "1x1, unaligned": lambda: conv((2, 5, 7, 20), 33, 1),
    "1x1, stride 2": lambda: conv((1, 9, 7, 16), 16, 1, stride=2),
    "3x3": lambda: conv((2, 8, 9, 16), 33, 3),
    "3x3, unaligned, stride 2": lambda: conv((2, 8, 9, 12), 20, 3, stride=2),
    "3x3, dilated, nothing around": lambda: conv((1, 12, 12, 32), 40, 3, dilation=2, padding=Padding.VALID),
    "3x3, groups": lambda: conv((1, 8, 9, 48), 48, 3, groups=3),
    "3x3, unaligned groups": lambda: conv((1, 8, 9, 24), 48, 3, groups=3),
    "3x3, unsigned": lambda: conv((1, 8, 9, 16), 20, 3, type_=T.UINT8),
    "rows": lambda: dense(70, 132, 66),
    "one row": lambda: dense(1, 1024, 37),
    "rows, unsigned": lambda: dense(9, 68, 64, type_=T.UINT8),
    "1x1, zero point": lambda: conv((1, 9, 7, 64), 130, 1, type_=T.UINT8, zero=101),
    "3x3, zero point, stride 2": lambda: conv((1, 8, 9, 12), 20, 3, stride=2, type_=T.UINT8, zero=255),
    "rows, zero point": lambda: dense(9, 1028, 64, type_=T.UINT8, zero=0),
}


@pytest.mark.parametrize("name", _PRODUCTS)
def test_products(name: str, options: dict[str, Any]) -> None:
    """Tiles and parts are LiteRT's to the last bit, twice, as groups leave something to the next run."""
    check(_PRODUCTS[name](), options)


@pytest.mark.parametrize("options", [devices.FEW_SUMS], indirect=True)
@pytest.mark.parametrize("name", ["3x3", "rows"])
def test_products_of_few_sums(name: str, options: dict[str, Any]) -> None:
    """Tiles are as large where work-items have fewer registers, and more of them share each."""
    check(_PRODUCTS[name](), options)


def check(case: Case, options: dict[str, Any]) -> None:
    """Run a case twice, and compare with LiteRT."""
    content = write(case.model())
    interpreter = Interpreter(model_content=content, delegates=[CLDelegate(**options)])
    interpreter.allocate_tensors()
    assert interpreter.delegation_report().partitions[0].kernels == ("quantized_local",)
    for detail, feed in zip(interpreter.get_input_details(), case.feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    (expected,) = oracle.run(content, case.feeds, oracle.RESOLVERS[case.kernels])
    for _ in range(2):
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), expected)
