"""Models that together reach every path of the delegate, with their inputs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from litecl.cases import Case, integer_conv, integer_lstm
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array, Model, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.compare import LESS
from litecl.interpreter.ops.control import CALL_ONCE, CallOnceOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.ops.unary import EXP, LOGISTIC, NEG
from litecl.interpreter.ops.unidirectional_sequence_lstm import (
    UNIDIRECTIONAL_SEQUENCE_LSTM,
    UnidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.ops.variables import ASSIGN_VARIABLE, READ_VARIABLE, VAR_HANDLE, VarHandleOptions
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from support.build import Graph, model, randn
from support.loop_models import FLOAT, INT, below, if_node, int32, next_, plus, subgraph, times, while_node

INVOKES = 3
RNG = np.random.default_rng(3)


@dataclass(frozen=True)
class Subject:
    """A model, its inputs for every invoke, and options of the delegate that it needs."""

    name: str
    model: Model
    feeds: Sequence[Sequence[Array]]
    options: dict[str, Any] = field(default_factory=dict)


def subjects() -> list[Subject]:
    """Every model."""
    rng = np.random.default_rng(5)
    apart = {"deny_ops": ["NEG"]}
    counter = [int32(0), randn(rng, 5)]
    return [
        Subject("image", _image(rng), [[randn(rng, 1, 8, 8, 4)] for _ in range(INVOKES)], apart),
        Subject("lstm", _lstm(rng), [[randn(rng, 1, 3, 4)] for _ in range(INVOKES)]),
        Subject("two LSTMs", _two_lstms(rng), [[randn(rng, 1, 3, 4)] for _ in range(INVOKES)], apart),
        Subject("variables", _variables(rng), [[randn(rng, 1, 5)] for _ in range(INVOKES)], apart),
        Subject("loop", _loop(), [[counter[0], np.float32(k + 1) * counter[1]] for k in range(INVOKES)]),
        Subject("limited loop", _loop(), [[counter[0], counter[1]]] * INVOKES, {"max_loop_iterations": 50}),
        Subject("quantized", *_case(integer_conv.CASES, "INT8 x INT8, 1x1")),
        Subject("integer LSTM", *_case(integer_lstm.CASES, "BASIC")),
    ]


class Session:
    """A model that is loaded, run, and asked for its variables and report, step by step."""

    def __init__(self, subject: Subject, delegates: Sequence[CLDelegate]) -> None:
        self._feeds = subject.feeds
        self.interpreter = Interpreter(subject.model, delegates=delegates)
        tensors = subject.model.subgraphs[0].tensors
        self._variables = [t for t, spec in enumerate(tensors) if spec.is_variable]

    def invoke(self, number: int) -> list[Array]:
        """The outputs of an invoke."""
        graph = self.interpreter.model.subgraphs[0]
        for tensor, value in zip(graph.inputs, self._feeds[number], strict=True):
            self.interpreter.set_tensor(tensor, value)
        self.interpreter.invoke()
        return [self.interpreter.get_tensor(t) for t in graph.outputs]

    def variables(self) -> list[Array]:
        """The values of variable tensors."""
        return [self.interpreter.get_tensor(t) for t in self._variables]

    def steps(self) -> list[Callable[[], list[Array]]]:
        """Return all steps in order; each returns arrays to compare."""
        invokes = [lambda k=k: self.invoke(k) for k in range(len(self._feeds))]
        return [self._allocate, *invokes, self.variables]

    def _allocate(self) -> list[Array]:
        self.interpreter.allocate_tensors()
        return []


@cache
def expected(name: str) -> list[list[Array]]:
    """Return the results of the interpreter alone, step by step."""
    subject = next(s for s in subjects() if s.name == name)
    return [step() for step in Session(subject, []).steps()]


def _image(rng: np.random.Generator) -> Model:
    """A region of two launches, a node of the CPU's, a region of five."""
    g = Graph()
    x = g.input((1, 8, 8, 4))
    first = g.op(CONV_2D, [x, g.const(randn(rng, 8, 3, 3, 4, scale=0.2)), g.const(randn(rng, 8))], _CONV)
    between = g.op(NEG, [g.op(EXP, [first], NoOptions())], NoOptions())
    second = g.op(CONV_2D, [between, g.const(randn(rng, 6, 3, 3, 8, scale=0.2)), g.const(randn(rng, 6))], _CONV)
    turned = g.op(TRANSPOSE, [second, g.const(np.array([0, 3, 1, 2], np.int32))], NoOptions())
    smooth = g.op(LOGISTIC, [turned], NoOptions())
    dense = g.op(FULLY_CONNECTED, [smooth, g.const(randn(rng, 9, 64, scale=0.2)), None], FullyConnectedOptions())
    return model(g.build(g.op(SOFTMAX, [dense], SoftmaxOptions(beta=1.0)), between))


_CONV = Conv2DOptions(stride_w=1, stride_h=1)


def _lstm_node(g: Graph, rng: np.random.Generator, x: int) -> int:
    size = g.tensors[x].static_shape[-1]
    weights = [g.const(randn(rng, 6, size, scale=0.4)) for _ in range(4)]
    recurrent = [g.const(randn(rng, 6, 6, scale=0.4)) for _ in range(4)]
    biases = [g.const(randn(rng, 6)) for _ in range(4)]
    states = [g.variable((1, 6)), g.variable((1, 6))]
    inputs = [x, *weights, *recurrent, None, None, None, *biases, None, None, *states, None, None, None, None]
    options = UnidirectionalSequenceLSTMOptions(fused_activation_function=ActivationFunctionType.TANH)
    return g.op(UNIDIRECTIONAL_SEQUENCE_LSTM, inputs, options)


def _lstm(rng: np.random.Generator) -> Model:
    """One region with two states, enough launches for a kernel of its own."""
    g = Graph()
    hidden = _lstm_node(g, rng, g.input((1, 3, 4)))
    turned = g.op(TRANSPOSE, [hidden, g.const(np.array([0, 2, 1], np.int32))], NoOptions())
    dense = g.op(FULLY_CONNECTED, [turned, g.const(randn(rng, 9, 3)), None], FullyConnectedOptions())
    return model(g.build(g.op(SOFTMAX, [dense], SoftmaxOptions(beta=1.0))))


def _two_lstms(rng: np.random.Generator) -> Model:
    """Two regions with states, around a node of the CPU's."""
    g = Graph()
    between = g.op(NEG, [_lstm_node(g, rng, g.input((1, 3, 4)))], NoOptions())
    return model(g.build(_lstm_node(g, rng, between)))


def _variables(rng: np.random.Generator) -> Model:
    """Two regions that assign to one resource variable, around a node of the CPU's; the second reads another too."""
    g, first = Graph(), Graph("first")
    handle, value = TensorSpec(TensorType.RESOURCE, ()), TensorSpec(FLOAT, (1, 5))
    g.node(CALL_ONCE, (), (), CallOnceOptions(1))
    (a,), (b,) = (g.node(VAR_HANDLE, (), (handle,), VarHandleOptions("", name)) for name in "ab")
    for name in "ab":
        (filled,) = first.node(VAR_HANDLE, (), (handle,), VarHandleOptions("", name))
        first.node(ASSIGN_VARIABLE, (filled, first.const(randn(rng, 1, 5))), (), NoOptions())
    weights = g.const(randn(rng, 5, 5, scale=0.3))
    y = g.input((1, 5))
    for then in (NEG, EXP):
        (old,) = g.node(READ_VARIABLE, (a,), (value,), NoOptions())
        (kept,) = g.node(READ_VARIABLE, (b,), (value,), NoOptions())
        new = g.op(FULLY_CONNECTED, [plus(g, old, plus(g, y, kept)), weights, None], FullyConnectedOptions())
        g.node(ASSIGN_VARIABLE, (a, g.op(LOGISTIC, [new], NoOptions())), (), NoOptions())
        y = g.op(then, [new], NoOptions())
    return model(g.build(y), first.build())


def _loop() -> Model:
    """A loop whose body branches."""
    state = [((), INT), ((5,), FLOAT)]

    def main(g: Graph, x: Sequence[int]) -> Sequence[int]:
        return while_node(g, x, 1, 2)

    def body(g: Graph, x: Sequence[int]) -> Sequence[int]:
        early = g.op(LESS, [x[0], g.const(int32(2))], NoOptions())
        return [next_(g, x[0]), *if_node(g, [early, x[1]], 3, 4, x[1])]

    return model(
        subgraph("main", state, main),
        subgraph("cond", state, below(4)),
        subgraph("body", state, body),
        subgraph("early", state[1:], lambda g, x: plus(g, x[0], x[0])),
        subgraph("late", state[1:], lambda g, x: times(g, x[0], g.const(np.float32([1, -1, 2, 0.5, 3])))),
    )


def _case(cases: Sequence[Case], name: str) -> tuple[Model, list[list[Array]]]:
    (case,) = (case for case in cases if case.name == name)
    made = case.model()
    graph = made.subgraphs[0]
    specs: list[TensorSpec] = [graph.tensors[t] for t in graph.inputs]
    inside = {*case.constants, *case.op.states}
    fed = [x for i, x in enumerate(case.inputs) if x is not None and i not in inside]
    assert [spec.shape for spec in specs] == [x.shape for x in fed]
    return made, [[np.roll(x, k) for x in fed] for k in range(INVOKES)]


def small() -> Model:
    """EXP and ADD: a region of one launch."""
    g = Graph()
    x = g.input((2, 5))
    return model(g.build(g.op(ADD, [g.op(EXP, [x], NoOptions()), x], AddOptions())))


def run(interpreter: Interpreter, x: np.ndarray) -> np.ndarray:
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def prepared(model_: Model, **options: Any) -> Interpreter:
    interpreter = Interpreter(model_, delegates=[CLDelegate(**options)])
    interpreter.allocate_tensors()
    return interpreter


def assert_right(interpreter: Interpreter) -> None:
    x = randn(RNG, 2, 5)
    np.testing.assert_allclose(run(interpreter, x), np.exp(x) + x, rtol=1e-5, atol=1e-6)  # the terms may cancel


def raises(error: BaseException) -> Callable[..., Any]:
    """A function that does nothing else."""

    def fails(*args: Any, **kwargs: Any) -> Any:
        raise error

    return fails
