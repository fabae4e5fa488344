"""Two small models, one with states, and how to run them."""

from typing import Any

import numpy as np

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.unary import EXP, RELU
from litecl.interpreter.ops.unidirectional_sequence_lstm import (
    UNIDIRECTIONAL_SEQUENCE_LSTM,
    UnidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.schema import ActivationFunctionType
from support.build import Graph, model, randn

RNG = np.random.default_rng(11)


def chain() -> Model:
    """Dense, RELU, EXP, ADD: one partition."""
    g = Graph()
    x = g.input((2, 5), signature=(-1, 5))
    dense = g.op(FULLY_CONNECTED, [x, g.const(randn(RNG, 7, 5)), g.const(randn(RNG, 7))], FullyConnectedOptions())
    activated = g.op(RELU, [dense], NoOptions())
    grown = g.op(EXP, [activated], NoOptions())
    return model(g.build(g.op(ADD, [grown, activated], AddOptions())))


def prepared(model_: Model, **options: Any) -> Interpreter:
    """An interpreter with a delegate, allocated."""
    interpreter = Interpreter(model_, delegates=[CLDelegate(**options)])
    interpreter.allocate_tensors()
    return interpreter


def native(model_: Model, **options: Any) -> Interpreter:
    """One with the processor's own back end, which must not fail."""
    return prepared(model_, **{"device": "native", "strict": True, **options})


def reference(model_: Model) -> Interpreter:
    """The same model on the CPU alone."""
    interpreter = Interpreter(model_)
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: Interpreter, x: np.ndarray) -> np.ndarray:
    """One invoke of a model of one input and one output."""
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def lstm() -> Model:
    """An LSTM over 3 steps of 4 numbers, 6 units, whose state stays between invokes."""
    g = Graph()
    x = g.input((1, 3, 4))
    weights = [g.const(randn(RNG, 6, 4, scale=0.4)) for _ in range(4)]
    recurrent = [g.const(randn(RNG, 6, 6, scale=0.4)) for _ in range(4)]
    biases = [g.const(randn(RNG, 6)) for _ in range(4)]
    states = [g.variable((1, 6)), g.variable((1, 6))]
    inputs = [x, *weights, *recurrent, None, None, None, *biases, None, None, *states, None, None, None, None]
    options = UnidirectionalSequenceLSTMOptions(fused_activation_function=ActivationFunctionType.TANH)
    return model(g.build(g.op(UNIDIRECTIONAL_SEQUENCE_LSTM, inputs, options)))
