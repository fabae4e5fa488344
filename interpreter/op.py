"""An operator: a record with its name, its options, its shape inference and its numpy kernel.

``interpreter/ops/<name>.py`` defines one or a family of them; ``interpreter/ops/__init__.py`` lists them all. Other
parts (a device kernel, a lowering, a test case) refer to the record itself, never to its name.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.integers import InFloat, Integers
from litecl.interpreter.tensor import Array, TensorSpec

Inputs = Sequence[Array | None]
Specs = Sequence[TensorSpec | None]

Infer = Callable[[Any, Specs], list[TensorSpec]]
Run = Callable[[Any, Inputs], list[Array]]
Bind = Callable[[Any, Specs, Sequence[TensorSpec]], Run | None]
Lowest = Callable[[Any, Specs], int]


@dataclass(frozen=True)
class NoOptions:
    """The options of an operator that has none."""


@dataclass(frozen=True, eq=False)
class Op:
    """An operator that computes its outputs from its inputs.

    name: the BuiltinOperator name of the schema, or the custom code of a custom operator (``custom=True``).
    options: the dataclass of its options, named after its schema table, its fields named after the table's.
    infer: options, input specs -> output specs (type and shape; ``shape=None`` where it depends on values that are not
        constant; ``data`` where the value is known, as SHAPE's is). Called only when all input shapes are known.
        Raises ShapeError where the inputs do not fit.
    run: options, input arrays -> output arrays, followed by one array for every entry of ``states``.
    bind: options, input specs, output specs (and after them those of the node's intermediates) -> a ``run`` made for
        those types and quantization, or None for ``run``. Integer and hybrid kernels thus get their scales once, at
        preparation.
    states: positions of the inputs that are variable tensors, whose new values ``run`` returns.
    pure: False if the result depends on more than the inputs (random numbers), so it is never folded.
    declared_types: True if a model chooses the types of the outputs (CAST, QUANTIZE), so that the declared ones
        count and those of ``infer`` are a default.
    declared_shapes: True if a model chooses the shapes that ``infer`` leaves open.
    sets_types: True if the outputs have the types of ``infer`` whatever the model declares (ADD and its like).
    select: options -> the record to use, if one name covers operators of different operands.
    lowest: options, input specs -> the lowest version that supports the node; None for the first of ``versions``.
    integers: its integer kernels for quantized tensors, or why it stays in float although it could use them; None
        without any.
    """

    name: str
    options: type
    infer: Infer
    run: Run
    bind: Bind | None = None
    states: tuple[int, ...] = ()
    versions: range = range(1, 2)
    pure: bool = True
    custom: bool = False
    declared_types: bool = False
    sets_types: bool = False
    declared_shapes: bool = False
    select: "Callable[[Any], Op] | None" = None
    lowest: Lowest | None = None
    integers: Integers | InFloat | None = None


class Context(Protocol):
    """The executor's services to a running operator, besides its inputs."""

    def call(self, subgraph: int, inputs: Inputs) -> list[Array]:
        """Run a subgraph on arrays, passed by reference, and return its outputs."""

    @property
    def resources(self) -> dict[str, Any]:
        """Return tables and marks of completed one-time work, by name, shared by all subgraphs."""

    def read(self, variable: str) -> Array:
        """Return the value of a resource variable. Raises ModelError if it was never assigned."""

    def assign(self, variable: str, value: Array) -> None:
        """Assign to a resource variable, which all subgraphs share."""


ControlRun = Callable[[Any, Inputs, Context], list[Array]]


class Shapes(Protocol):
    """The services of shape propagation to an operator that runs subgraphs."""

    def call(self, subgraph: int, inputs: Sequence[TensorSpec]) -> Sequence[TensorSpec]:
        """Return what is known of a subgraph's outputs for such inputs (and all that it got before)."""

    def handed_on(self, subgraph: int) -> Sequence[bool]:
        """Return, for each output of a subgraph, whether it is the unchanged input in the same position."""


class InPlace(Protocol):
    """A fast path for a node that makes up a whole model.

    failed: gets an error of ``run`` and raises it, or returns; then this run and all later ones take the normal path.
    Code that passes the path on may replace the function.
    again: a function that repeats the last run, and cannot fail: the values and all else that a run changes are then as
    after that one. None while there is no such function.
    """

    failed: Callable[[Exception], None]
    again: Callable[[], object] | None

    def run(self) -> dict[int, dict[int, Array]]:
        """Return the wanted values by subgraph and tensor, which may be the same objects each time."""


@dataclass(frozen=True, eq=False)
class ControlOp:
    """An operator that runs subgraphs or touches state that outlives it.

    ``run`` gets the executor's ``Context`` besides options and inputs. ``callees`` names the subgraphs that it may run.
    ``infer`` takes what ``Op.infer`` takes and may return ``shape=None``. ``bind`` and ``declared_types`` are ``Op``'s,
    but the function that ``bind`` returns takes a ``Context`` too.
    propagate: options, input specs, ``Shapes`` -> output specs, if these follow from the subgraphs; it replaces
        ``infer``, whatever is known of the inputs. ``in_place`` takes the arrays that every run reads, the outputs that
        are wanted and the context; it returns None if there is only ``run``.
    """

    name: str
    options: type
    infer: Infer
    run: ControlRun
    callees: Callable[[Any], tuple[int, ...]] = lambda options: ()
    propagate: Callable[[Any, Specs, Shapes], Sequence[TensorSpec]] | None = None
    in_place: "Callable[[Inputs, Sequence[int], Context], InPlace | None] | None" = None
    bind: Callable[[Any, Specs, Sequence[TensorSpec]], ControlRun | None] | None = None
    versions: range = range(1, 2)
    custom: bool = False
    declared_types: bool = False
