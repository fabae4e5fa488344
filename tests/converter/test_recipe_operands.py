"""Searches in recurrent layers, whose operands have forms of their own, and in weights that nodes share."""

from typing import Any

import numpy as np
import pytest

from litecl.converter import Quantization
from litecl.converter.quantization.quantize import quantize
from litecl.converter.quantization.recipes.names import entry
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model
from litecl.interpreter.ops.unidirectional_sequence_lstm import (
    UNIDIRECTIONAL_SEQUENCE_LSTM,
    UnidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.schema import ActivationFunctionType
from support import oracle
from support.build import model, randn
from support.quantize_models import Net, run, samples_of


def _recurrent(depth: int, units: int, **options: Any) -> Model:
    g = Net()
    x = g.input((1, 6, depth), **options)
    inputs = [g.const(randn(g.rng, units, depth, scale=0.2)) for _ in range(4)]
    hidden = [g.const(randn(g.rng, units, units, scale=0.2)) for _ in range(4)]
    biases = [g.const(randn(g.rng, units, scale=0.1)) for _ in range(4)]
    states = [g.variable((1, units)) for _ in range(2)]
    operands = [x, *inputs, *hidden, *[None] * 3, *biases, None, None, *states, *[None] * 4]
    options = UnidirectionalSequenceLSTMOptions(fused_activation_function=ActivationFunctionType.TANH)
    return model(g.build(g.op(UNIDIRECTIONAL_SEQUENCE_LSTM, operands, options)))


def _assert_recipe_and_litert_agree(of: Model, after: Model, report: Any, data: Any) -> None:
    recipe = [dict(entry) for entry in report.frontier.recipe]
    again, second = quantize(of, Quantization(recipe=recipe, data=data, strict=True))
    assert write(again) == write(after) and second.notes == ()
    for kernels in ((), (oracle.WITH_OPTIMISED_KERNELS,)):
        (wanted,) = oracle.run(write(after), data[0], *kernels)
        got = run(Interpreter(write(after)), data[0])[0]
        np.testing.assert_allclose(got, wanted, atol=1e-5 * np.abs(wanted).max())


def test_a_budget_that_no_size_comes_near_is_said() -> None:
    """States next to an open dimension leave a layer two ways; of both, no file is nearer than those that are named."""
    of = _recurrent(24, 40, signature=(-1, 6, 24))
    data = samples_of(of)
    sizes = [len(write(of)), len(write(quantize(of, Quantization(recipe="dynamic_wi8_afp32", data=data))[0]))]
    budget = sum(sizes) // 2
    after, report = quantize(of, Quantization(budget=budget, data=data))
    assert len(write(after)) == min(sizes) and len(report.frontier.sensitivity) == 2
    expected = f"{min(sizes)} of {budget} bytes: no combination of ways comes nearer; the next larger has {max(sizes)}"
    assert report.frontier.note == expected and expected in str(report)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_operands_of_a_recurrent_layer_have_forms_of_their_own(share: float) -> None:
    """Where the layer dominates: the recipe names the operands, of widened weights alone."""
    of = _recurrent(48, 80)
    data, budget = samples_of(of, 3), int(share * len(write(of)))
    after, report = quantize(of, Quantization(budget=budget, data=data))
    assert len(write(after)) <= budget
    assert len(write(after)) >= 0.99 * budget or report.frontier.note
    ((_, way),) = report.frontier.ways
    assert " of 8 operands" in way
    _assert_recipe_and_litert_agree(of, after, report, data)


def test_recipes_of_operands_are_checked() -> None:
    of = _recurrent(24, 40)
    for operands, message in (
        ({"1": "int3"}, "expected one of \\['float32', 'float16', 'int8'"),
        ({"1": ["int8", 4, "int4"]}, "expected one of \\['float32', 'float16', 'int8'"),
        ({"x": "int8"}, "expected positions as texts"),
        ([1], "operands: expected a mapping"),
    ):
        recipe = [entry(8, widened=True)]
        recipe[0]["op_config"]["weight_tensor_config"]["algorithm_params"] = {"operands": operands}
        with pytest.raises(ConversionError, match=message):
            quantize(of, Quantization(recipe=recipe))
    recipe = [entry(8)]
    recipe[0]["op_config"]["weight_tensor_config"]["algorithm_params"] = {"operands": {"1": "int8"}}
    with pytest.raises(ConversionError, match="operands: needs weights that are widened"):
        quantize(of, Quantization(recipe=recipe))
