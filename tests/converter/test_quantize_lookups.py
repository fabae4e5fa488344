"""Functions that integers look up in a table: within a step of the float model, for inputs of any range."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from litecl.converter import Quantization
from litecl.converter.quantization.quantize import quantize
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, DIV, AddOptions, DivOptions
from litecl.interpreter.ops.unary import ABS
from litecl.interpreter.schema import TensorType
from support.conversion import invoke, operators, runtimes

_FLOAT = TensorType.FLOAT32


def _softsign(shape: tuple[int, ...], one: float = 1.0, more: tuple[int, ...] = ()) -> Model:
    """Return x / (|x| + one); ``more`` are further outputs, of tensors 1 (|x|) and 2 (the divisor)."""
    names = ("x", "size", "divisor", "y")
    tensors = [*(TensorSpec(_FLOAT, shape, name) for name in names), TensorSpec(_FLOAT, (), "one", np.float32(one))]
    nodes = (
        Node(ABS, (0,), (1,), NoOptions()),
        Node(ADD, (1, 4), (2,), AddOptions()),
        Node(DIV, (0, 2), (3,), DivOptions()),
    )
    return Model((Subgraph(tuple(tensors), (0,), (3, *more), nodes),))


def _how(low: float, high: float, shape: tuple[int, ...], **options: Any) -> Quantization:
    def data() -> Iterator[list[Array]]:
        random = np.random.default_rng(6)
        for _ in range(8):
            value = random.uniform(low, high, shape)
            yield [np.resize([low, 0, high, *value.reshape(-1)], shape).astype(np.float32)]

    return Quantization(activations=options.pop("activations", "int8"), data=data, **options)


@pytest.mark.parametrize(("low", "high"), [(-1000, 1000), (-2, 2), (0, 50), (-1e6, 10), (-0.01, 0.01)], ids=str)
@pytest.mark.parametrize("shape", [(4, 7), (40,), (1, 2, 5, 4)], ids=str)
def test_softsign(low: float, high: float, shape: tuple[int, ...]) -> None:
    how = _how(low, high, shape, strict=True, input_type="int8", output_type="int8")
    model, report = quantize(_softsign(shape), how)
    assert operators(model) == {"CAST": 1, "ADD": 1, "GATHER": 1}
    assert report is not None
    assert [layer.op for layer in report.layers] == ["SOFTSIGN"]
    graph = model.subgraphs[0]
    of_x, of_y = (graph.tensors[t].quantization for t in (*graph.inputs, *graph.outputs))
    assert of_x is not None and of_y is not None
    every = np.resize(np.arange(-128, 128, dtype=np.int8), (10, *shape))
    for runtime in runtimes(write(model)):
        for codes in every:
            (got,) = invoke(runtime, [codes])
            x = (codes.astype(np.float64) - of_x.zero_point[0]) * of_x.scale[0]
            wanted = (x / (np.abs(x) + 1)) / of_y.scale[0] + of_y.zero_point[0]
            assert np.abs(got - np.clip(wanted, -128, 127)).max() <= 0.5 + 1e-3


@pytest.mark.parametrize("options", [{"activations": "int16"}, {"skip": ("y",)}], ids=["int16", "skipped"])
def test_softsign_in_float_is_as_before(options: dict[str, Any]) -> None:
    model, _ = quantize(_softsign((5, 8)), _how(-1000, 1000, (5, 8), **options))
    found = operators(model)
    assert {"ABS", "ADD", "DIV"} <= set(found) and "GATHER" not in found
    x = np.random.default_rng(1).uniform(-1000, 1000, (5, 8)).astype(np.float32)
    for runtime in runtimes(write(model)):
        np.testing.assert_allclose(invoke(runtime, [x])[0], x / (np.abs(x) + 1), atol=0.02)


@pytest.mark.parametrize("model", [_softsign((5, 8), 0.5), _softsign((5, 8), 1, (2,))], ids=["no softsign", "read"])
def test_other_divisions_stay(model: Model) -> None:
    assert "GATHER" not in operators(quantize(model, _how(-1000, 1000, (5, 8)))[0])
    with pytest.raises(ConversionError, match=r"DIV .*divisor would be rounded to zero"):
        quantize(model, _how(-1000, 1000, (5, 8), strict=True))
