"""A device operator: a claim (can it run there?) and lowerings (which kernels to launch, with which arguments).

Nothing here touches a device. This module has everything that the author of a lowering needs.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from litecl.delegate.launch import Alias as Alias
from litecl.delegate.launch import Arg as Arg
from litecl.delegate.launch import Const as Const
from litecl.delegate.launch import Launch as Launch
from litecl.delegate.launch import Local as Local
from litecl.delegate.launch import Move as Move
from litecl.delegate.launch import Operand as Operand
from litecl.delegate.launch import Record as Record
from litecl.delegate.launch import Scratch as Scratch
from litecl.delegate.launch import Step as Step
from litecl.delegate.launch import Weights as Weights
from litecl.delegate.target import Target as Target
from litecl.delegate.target import own
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Op

Specs = Sequence[TensorSpec | None]
_Target = TypeVar("_Target", bound=Target, covariant=True)


@dataclass(frozen=True)
class Refusal:
    """The reason why a node stays on the CPU, for the delegation report."""

    reason: str


@dataclass(frozen=True)
class Activation:
    """A function that a kernel applies to its result before storing it.

    ``function`` is a macro of common.h's ACTIVATION family: CLAMP (to [low, high], which are run-time arguments, so
    that NONE, RELU, RELU6, RELU_N1_TO_1 and RELU_0_TO_1 share one program), TANH, LOGISTIC, HARD_SWISH, GELU, ...
    """

    function: str = "CLAMP"
    low: float = -np.inf
    high: float = np.inf

    @property
    def defines(self) -> dict[str, str]:
        """The macro that selects the function."""
        return {"ACTIVATION": f"ACTIVATION_{self.function}"}

    @property
    def bounds(self) -> tuple[np.float32, np.float32]:
        """The bounds as kernel arguments."""
        return np.float32(self.low), np.float32(self.high)


@dataclass(frozen=True)
class Pads:
    """Zero padding of an image [n, height, width, channels], in rows and columns."""

    top: int = 0
    bottom: int = 0
    left: int = 0
    right: int = 0


@dataclass(frozen=True, eq=False)
class CallOn(Generic[_Target]):
    """A node to lower for a kind of device.

    inputs: one operand per position, None if absent. outputs: the node's outputs, then one operand for every entry of
    ``op.states``: the state after the node (never the memory that the state is read from).
    activation: the operator's fused activation, or that of the node after it.
    residual: a tensor of the output's shape, added before the activation (only with ``ClOp.fuses_residual``).
    pads: zeros around the first input, in addition to the options' padding (only with ``ClOp.fuses_pads``).
    intermediates: types and quantization of the node's intermediate tensors, which hold no values.
    halves: whether large ``Weights`` will be stored as fp16; all else is float32.
    fresh: whether the node before it computed the first input, which a CPU then has in a cache unless it is large.
    """

    options: Any
    inputs: Sequence[Operand | None]
    outputs: Sequence[Operand]
    target: _Target
    activation: Activation = Activation()
    residual: Operand | None = None
    pads: Pads = Pads()
    intermediates: Sequence[TensorSpec] = ()
    halves: bool = False
    fresh: bool = False

    @property
    def weighted(self) -> tuple[Operand, Operand, Operand | None]:
        """The operands of a product: the input, the weights, and the bias or None."""
        x, weights, bias = (*self.inputs[:3], None)[:3]
        assert x is not None and weights is not None, "an input is absent"
        return x, weights, bias

    @property
    def specs(self) -> list[TensorSpec | None]:
        """Return the specs of the inputs."""
        return [None if operand is None else operand.spec for operand in self.inputs]

    def input(self, position: int) -> Operand:
        """Return an input that the claim guarantees is present."""
        operand = self.inputs[position]
        assert operand is not None, f"input {position} is absent"
        return operand


Call = CallOn[Target]
"""A node to lower for any device."""

Lowering = Callable[[Call], list[Step]]


@dataclass(frozen=True, eq=False)
class ClOp:
    """A device operator.

    claim: options, input specs (all shapes known), specs of outputs and intermediates -> a Refusal, or None to claim.
    lower: a Call -> its steps (a user's is called twice), for CPUs and for all devices without one of their own
        (``Target.own``). The other fields hold for the claim and for all lowerings:
    activates: the Activation equivalent to this node (from its options), if the node before it may apply it instead.
    chains: whether chain.cl has a step of this name, so that the operator may run as part of a chain.
    pads: the Pads equivalent to this node (from its inputs), if the reader of the image may apply them instead.
    fuses_activation, fuses_residual: whether lowerings honour ``Call.activation`` beyond CLAMP, and ``Call.residual``.
    fuses_pads: whether lowerings honour ``Call.pads`` where the options have VALID padding.
    reads_rows, writes_rows: whether lowerings honour ``Operand.row_step`` of float inputs and of a float output.
    float64: whether the kernels compute a claimed node in float64 (options, input specs, output specs).
    of_complex: whether it supports complex tensors; all other operators leave those to the CPU.
    cpu_only: whether GPUs leave the operator to the CPU: its kernels haven't been measured on one.
    joins: for an operator that only copies its inputs (the first, if there are parameters) into its output, the view
        that each fills (options, inputs, a view of the output): the node that computes an input may write it there.
    """

    op: Op
    claim: Callable[[Any, Specs, Sequence[TensorSpec]], Refusal | None]
    lower: Callable[[Any], list[Step]]
    activates: Callable[[Any], Activation | None] | None = None
    chains: bool = False
    pads: Callable[[Specs], Pads | None] | None = None
    fuses_activation: bool = False
    fuses_residual: bool = False
    fuses_pads: bool = False
    reads_rows: bool = False
    writes_rows: bool = False
    of_complex: bool = False
    cpu_only: bool = False
    joins: Callable[[Any, Specs, Array], Sequence[Array]] | None = None
    float64: Callable[[Any, Specs, Sequence[TensorSpec]], bool] = lambda options, inputs, outputs: False

    def steps(self, call: Call) -> list[Step]:
        """Lower a node for its device."""
        return own(call.target, self.lower)(call)

    def select(self, inputs: Specs, outputs: Sequence[TensorSpec]) -> "ClOp":
        """Return the record for a node with these tensors: this one."""
        return self


@dataclass(frozen=True, eq=False)
class Variants:
    """The variants of one operator on the device, selected by a node's tensors.

    special: conditions on input and output specs, each with its variant; the first that holds selects.
    default: the variant for all other nodes.
    """

    op: Op
    special: tuple[tuple[Callable[[Specs, Sequence[TensorSpec]], bool], ClOp], ...]
    default: ClOp

    def select(self, inputs: Specs, outputs: Sequence[TensorSpec]) -> ClOp:
        """Return the record for a node with these tensors."""
        return next((cl_op for applies, cl_op in self.special if applies(inputs, outputs)), self.default)


DeviceOp = ClOp | Variants
