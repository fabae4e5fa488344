"""A device operator: a claim (can it run there?) and a lowering (which kernels are launched, on what).

Nothing here touches OpenCL: a lowering returns launches as data, which ``plan`` puts in order, ``plan/memory`` gives
memory, and a back end binds to a device.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from litecl.delegate.gpu import Gpu, HalfUnit, MatrixUnit
from litecl.delegate.tuning import Tiled, Tuning
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Op

Specs = Sequence[TensorSpec | None]


@dataclass(frozen=True)
class Refusal:
    """The reason why a node stays on the CPU, in words for the delegation report."""

    reason: str


@dataclass(frozen=True)
class Target:
    """The properties of a device that a lowering may know.

    kind: "cpu" needs few work-items, each with a register tile of its own; "gpu" needs many, with coalesced access.
    vector_width: floats in a native vector (1 on a GPU, 8 with AVX2, 16 with AVX-512).
    compute_units: how many work-groups run at once. gpu: more of a GPU; None of a CPU.
    float64: whether kernels can compute in float64. tuning: what was measured on the device.
    half_weights: whether weights of products are fp16, and what ``unit`` multiplies; all else is in float32.
    """

    kind: Literal["cpu", "gpu"]
    vector_width: int
    compute_units: int
    max_work_group_size: int = 1
    local_mem_bytes: int = 0
    float64: bool = True
    half_weights: bool = False
    gpu: Gpu | None = None
    tuning: Tuning = field(default_factory=Tuning)

    @property
    def unit(self) -> MatrixUnit | HalfUnit | None:
        """The unit that multiplies halves, where products may be computed in them."""
        return self.gpu.unit if self.kind == "gpu" and self.gpu is not None and self.half_weights else None


@dataclass(frozen=True, eq=False)
class Operand:
    """A tensor in device memory, row-major as TFLite lays it out. Constants have ``spec.data``.

    row_step: elements from one row (the last dimension) to the next if it is part of a wider tensor; None if it is
        dense. Only operators with ``ClOp.reads_rows`` or ``ClOp.writes_rows`` get such operands.
    """

    spec: TensorSpec
    row_step: int | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, which is always known on the device."""
        return self.spec.static_shape

    @property
    def step(self) -> int:
        """The number of elements from one row to the next."""
        return self.shape[-1] if self.row_step is None else self.row_step

    @property
    def size_bytes(self) -> int:
        """The number of elements from the first to the last, both included."""
        skipped = 0 if self.row_step is None else (self.spec.size // self.shape[-1] - 1) * (self.step - self.shape[-1])
        return (self.spec.size + skipped) * self.spec.dtype.itemsize

    @property
    def data(self) -> Array | None:
        """The value of a constant."""
        return self.spec.data

    @property
    def value(self) -> Array:
        """The value of an operand that the claim has checked to be constant."""
        assert self.spec.data is not None, f"{self.spec.name!r} is not a constant"
        return self.spec.data


@dataclass(eq=False)
class Const:
    """An array that is uploaded once, when the program is built, and then released (None): packed weights, a table."""

    data: Array | None
    size_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.size_bytes = 0 if self.data is None else self.data.nbytes


@dataclass(frozen=True, eq=False)
class Scratch:
    """Device memory that lives from the first to the last launch that names it."""

    size_bytes: int


@dataclass(frozen=True)
class Local:
    """Local memory of a group, of as many bytes."""

    size_bytes: int


class Record:
    """What host and kernels share field by field, a frozen dataclass (``delegate/kit/shared.py``)."""


Arg = Operand | Const | Scratch | Local | np.generic | Record | tuple[Record, ...]
"""What a launch is given. In a plan records, and tuples of one kind of them, have become constants."""


@dataclass(frozen=True, eq=False)
class Launch:
    """One kernel launch.

    kernel: the file, ``kernels_cl/<kernel>.cl``. entry: the ``__kernel`` function in it.
    args: in the order of the kernel's parameters; scalars are numpy scalars of the parameter's exact type
        (``np.int32(3)``, ``np.float32(0.5)``). global_size is a multiple of local_size in every dimension.
    defines: ``-D`` macros. Every distinct set means another program to build, so pass dimensions as arguments instead.
    flops: arithmetic operations, for the report. unit: what does them, if not floats. tiled: its tile, if it has one.
    apart: whether a work-item needs nothing of its group but ``ITEM_INDEX``: neither a barrier nor local memory.
    """

    kernel: str
    entry: str
    args: tuple[Arg, ...]
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] = (1,)
    defines: Mapping[str, str | int | float] = field(default_factory=dict)
    flops: int = 0
    apart: bool = False
    unit: Literal["", "matrix", "halves"] = ""
    tiled: Tiled | None = None


@dataclass(frozen=True, eq=False)
class Alias:
    """``output`` is ``source`` with another shape: no launch, no copy."""

    output: Operand
    source: Operand


@dataclass(frozen=True, eq=False)
class Move:
    """A copy of the elements of ``source`` in the view ``at`` to those of ``into`` in the view ``to`` (kit/strided.py);
    there is no launch if they are there already, or can be read where they are.
    """

    source: Operand
    at: Array
    into: Operand
    to: Array


Step = Launch | Alias | Move


@dataclass(frozen=True)
class Activation:
    """A function that a producer applies to its result before storing it.

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
    """Zeros around an image [n, height, width, channels]: rows and columns of them."""

    top: int = 0
    bottom: int = 0
    left: int = 0
    right: int = 0


@dataclass(frozen=True, eq=False)
class Call:
    """A node to be lowered. inputs: one operand per position, None if absent. outputs: the node's outputs, then one
    operand for every entry of ``op.states``, the state after the node (never the memory that the state is read from).
    activation: the operator's fused activation, or that of the node after it.
    residual: a tensor of the output's shape, added before the activation (only where ``ClOp.fuses_residual``).
    pads: zeros around the first input, beside those that the options ask for (only where ``ClOp.fuses_pads``).
    intermediates: types and quantization of the node's intermediate tensors, which hold no values.
    """

    options: Any
    inputs: Sequence[Operand | None]
    outputs: Sequence[Operand]
    target: Target
    activation: Activation = Activation()
    residual: Operand | None = None
    pads: Pads = Pads()
    intermediates: Sequence[TensorSpec] = ()

    @property
    def weighted(self) -> tuple[Operand, Operand, Operand | None]:
        """The operands of a product: what is multiplied, the weights, and the bias, if there is one."""
        x, weights, bias = (*self.inputs[:3], None)[:3]
        assert x is not None and weights is not None, "an input is absent"
        return x, weights, bias

    @property
    def specs(self) -> list[TensorSpec | None]:
        """Return the specs of the inputs."""
        return [None if operand is None else operand.spec for operand in self.inputs]

    def input(self, position: int) -> Operand:
        """Return an operand that the claim has checked to be present."""
        operand = self.inputs[position]
        assert operand is not None, f"input {position} is absent"
        return operand


@dataclass(frozen=True, eq=False)
class ClOp:
    """A device operator.

    claim: options, input specs (all shapes known), specs of outputs and intermediates -> a Refusal, or None: it runs.
    lower: a Call -> its steps (a user's is called twice). The other fields describe this claim and this lowering only:
    activates: the Activation that this operator is (with the node's options), if a producer may apply it instead.
    chains: whether it is a step of chain.cl by its name, so that it may run as part of a chain.
    pads: the Pads that this operator is (with the node's inputs), if the reader of the image may apply them instead.
    fuses_activation, fuses_residual: whether ``lower`` honours ``Call.activation`` beyond CLAMP, and ``Call.residual``.
    fuses_pads: whether ``lower`` honours ``Call.pads``, of an operator whose options have a VALID padding.
    reads_rows, writes_rows: whether ``lower`` honours ``Operand.row_step`` of float inputs and of a float output.
    float64: whether its kernels compute in float64, of a node that it claims (options, input specs, output specs).
    on_gpu: a lowering for GPUs that is asked first, and honours all that ``lower`` does; None where that suits better.
    joins: for an operator that only puts its inputs (the first, if there are parameters) into its output, the views
        that they fill (options, inputs, a view of the output): whatever computes an input may write it there itself.
    """

    op: Op
    claim: Callable[[Any, Specs, Sequence[TensorSpec]], Refusal | None]
    lower: Callable[[Call], list[Step]]
    activates: Callable[[Any], Activation | None] | None = None
    chains: bool = False
    pads: Callable[[Specs], Pads | None] | None = None
    fuses_activation: bool = False
    fuses_residual: bool = False
    fuses_pads: bool = False
    reads_rows: bool = False
    writes_rows: bool = False
    joins: Callable[[Any, Specs, Array], Sequence[Array]] | None = None
    float64: Callable[[Any, Specs, Sequence[TensorSpec]], bool] = lambda options, inputs, outputs: False
    on_gpu: Callable[[Call], list[Step] | None] | None = None

    def select(self, inputs: Specs, outputs: Sequence[TensorSpec]) -> "ClOp":
        """Return the record of the kernel that runs a node with these tensors: this one."""
        return self


@dataclass(frozen=True, eq=False)
class Variants:
    """The variants of one operator on the device, selected by a node's tensors.

    special: conditions on input and output specs, each with the operator of nodes for which it is the first to hold.
    default: the operator of all other nodes.
    """

    op: Op
    special: tuple[tuple[Callable[[Specs, Sequence[TensorSpec]], bool], ClOp], ...]
    default: ClOp

    def select(self, inputs: Specs, outputs: Sequence[TensorSpec]) -> ClOp:
        """Return the record of the kernel that runs a node with these tensors."""
        return next((cl_op for applies, cl_op in self.special if applies(inputs, outputs)), self.default)


DeviceOp = ClOp | Variants
