"""The arithmetic of an LSTM's step, as a pattern over any graph's operators."""

from collections.abc import Callable

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.match import AnyTensor, Pattern, Tree

LSTM_GATES = ("input", "forget", "cell", "output")
"""The gates' names, in the order of Keras' and TensorFlow Lite's weights."""


@dataclass(frozen=True)
class Operators:
    """What a graph calls the operators of a step."""

    add: object
    mul: object
    sigmoid: object
    split: object


def lstm_step(operators: Operators, activation: object, gate: Callable[[str], Tree], *, first: bool = False) -> Pattern:
    """Return ``h`` = sigmoid(output) f(state), where ``state`` = sigmoid(forget) before + sigmoid(input) f(cell).

    activation: the operator f. gate: describes a gate's sum. first: the step starts from a state of zeros, so nothing
    is kept of it.
    """

    def product(name: str, factor: Tree, result: str = "") -> Pattern:
        return Pattern(operators.mul, [Pattern(operators.sigmoid, [gate(name)]), factor], name=result)

    update = product("input", Pattern(activation, [gate("cell")]), "state" if first else "")
    state = update if first else Pattern(operators.add, [product("forget", AnyTensor("before")), update], name="state")
    return product("output", Pattern(activation, [state]), "h")


def part_of(operators: Operators, axis: Tree) -> Callable[[str], Pattern]:
    """Return what describes a gate's sum as one of four parts of ``z``, the sums of all gates."""
    return lambda name: Pattern(operators.split, [axis, AnyTensor("z")], LSTM_GATES.index(name))
