"""What a signature of a model needs to run: tables, constants and one arena, laid out by its plan."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from litecl.delegate.backend.layout import Layout
from litecl.delegate.cl_op import Arg, Operand
from litecl.delegate.claim.region import FOLDED
from litecl.delegate.delegation import CLDelegation
from litecl.delegate.naming import counted
from litecl.delegate.plan.memory import align
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.region_program import RegionProgram, region_program
from litecl.delegate.plan.region_tables import Count, RegionSize, Shift
from litecl.delegate.region import REGION
from litecl.interpreter.buffers import ALIGNMENT
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import DelegateError, KernelBuildError
from litecl.interpreter.graph import Array, Shape, Signature, TensorSpec, acts, reached
from litecl.interpreter.ops.control import CALL_ONCE
from litecl.interpreter.run.executor import Executor, Frame
from litecl.interpreter.run.variables import VariableKey, Variables
from litecl.interpreter.schema import TensorType

_TYPES = frozenset(
    {
        *(TensorType.FLOAT32, TensorType.INT32, TensorType.INT64, TensorType.BOOL, TensorType.INT8),
        *(TensorType.UINT8, TensorType.INT16, TensorType.COMPLEX64),
    }
)
_MOST_REASONS = 20  # in a refusal
_REFUSED = "the model cannot be exported"


@dataclass(frozen=True, eq=False)
class Port:
    """An input or output. name: the signature's. memory: where it lies, with its offset there in bytes."""

    name: str
    tensor: int
    spec: TensorSpec
    memory: Literal["arena", "constants"]
    offset: int

    @property
    def size_bytes(self) -> int:
        """The size of its elements."""
        return _size(self.spec)

    @property
    def quantization(self) -> tuple[float, int] | None:
        """The scale and the zero point, if it has one of each."""
        quantization = self.spec.quantization
        if quantization is None or quantization.scale.size != 1:
            return None
        zero = quantization.zero_point.reshape(-1)
        return float(quantization.scale.reshape(-1)[0]), int(zero[0]) if zero.size else 0


@dataclass(frozen=True, eq=False)
class Kept:
    """A state: a variable that outlives a run.

    offset: where it lies in the arena at first. set_bytes: the distance to its place in the other set; 0 if no run
    changes it. constant: where its first value lies among the constants.
    """

    key: VariableKey
    offset: int
    set_bytes: int
    constant: int
    size_bytes: int


@dataclass(frozen=True, eq=False)
class Image:
    """A signature, ready to be written. program: None if nothing is left to compute.

    shifts: region.cl's, at the start; the distance to the constants is 0 there. turn: the index of the states' two
    shifts, which are swapped after every run; None without states. counts: the number of region.cl's counts.
    is_limited: whether a run may end early, at a loop's limit.
    """

    signature: Signature
    program: RegionProgram | None
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    states: tuple[Kept, ...]
    arena_bytes: int
    shifts: tuple[int, ...]
    turn: int | None
    counts: int
    is_limited: bool


class Constants:
    """The constants of all signatures, equal ones once. content: their bytes."""

    def __init__(self) -> None:
        self.content = bytearray()
        self._offsets: dict[bytes, int] = {}

    def put(self, data: Array) -> int:
        """Add a constant, if there is none of its bytes; return its offset."""
        content = np.ascontiguousarray(data).tobytes() or b"\0"
        digest = hashlib.sha256(content).digest()
        if digest not in self._offsets:
            self.content.extend(bytes(-len(self.content) % ALIGNMENT))
            self._offsets[digest] = len(self.content)
            self.content.extend(content)
        return self._offsets[digest]


def image_of(
    delegation: CLDelegation,
    signature: Signature,
    most_iterations: int | None,
    constants: Constants,
    variables: Variables,
) -> Image:
    """Return the image of a signature of a model that was planned for ``ExportFound``.

    most_iterations: the limit each time a loop runs. constants: gets those of the image. variables: with first values.
    Raises DelegateError, with nodes and reasons, if the host would run a part of it.
    """
    _require_whole(delegation, signature.subgraph)
    plans = [plan for plan in delegation.plans.values() if plan.region.subgraph == signature.subgraph]
    plan = plans[0] if plans else None
    return _Drawing(delegation, signature, plan, most_iterations, constants).image(variables)


def first_variables(delegation: CLDelegation, signatures: Sequence[Signature]) -> Variables:
    """Return the variables as the first runs of signatures find them, after CALL_ONCE."""
    model, variables = delegation.original, Variables()
    for subgraph in {signature.subgraph: None for signature in signatures}:
        once = [node for node in model.subgraphs[subgraph].nodes if node.op is CALL_ONCE]
        if once:
            Frame(Executor(model, delegation.specs, variables), subgraph, {}).run_nodes(once)
    return variables


def _require_whole(delegation: CLDelegation, subgraph: int) -> None:
    """Raise DelegateError unless a region runs all that a subgraph computes."""
    model, specs, original = delegation.model, delegation.specs[subgraph], delegation.original
    nodes = [node for node in model.subgraphs[subgraph].nodes if node.op.name != REGION]
    left = [node for node in nodes if acts(model, node) or any(specs[t].data is None for t in node.outputs)]
    if not left:
        return
    within = {subgraph, *reached(original, original.subgraphs[subgraph].nodes)}
    rows = [row for row in delegation.report().nodes if row.subgraph in within and not row.claimed]
    reasons = [f"subgraph {r.subgraph}, node {r.node}, {r.op}: {r.reason}" for r in rows if r.reason != FOLDED]
    reasons = reasons or [f"{node.op.name} runs on the host" for node in left]
    shown = reasons[:_MOST_REASONS]
    if len(reasons) > _MOST_REASONS:
        shown.append(f"and {len(reasons) - _MOST_REASONS} more")
    count = counted(len(reasons), "node")
    raise DelegateError(f"{_REFUSED}, as Python would run {count}: {'; '.join(shown)}")


class _Drawing:
    """An image under construction. plan: None if nothing is left to compute."""

    def __init__(
        self,
        delegation: CLDelegation,
        signature: Signature,
        plan: Plan | None,
        most_iterations: int | None,
        constants: Constants,
    ) -> None:
        self._signature, self._plan, self._most, self._constants = signature, plan, most_iterations, constants
        self._specs = delegation.specs[signature.subgraph]
        self._layout = None if plan is None else Layout(plan, ALIGNMENT)
        self._arena_bytes = 0 if plan is None else plan.arena.size_bytes

    def image(self, variables: Variables) -> Image:
        """Return the image."""
        plan, program, shifts = self._plan, None, [0] * Shift.SETS
        if plan is not None:
            program = region_program(plan.steps, self._address, self._most, has_local=True)
            if program is None:
                raise KernelBuildError("a launch has groups of several work-items, or arguments that cannot be passed")
            shifts += [0] * 2 * (plan.turns + 1)
            for slot in plan.slots.values():
                shifts[Shift.SETS + 2 * slot.loop + 1] = slot.set_bytes
        inputs = tuple(self._input(name, tensor) for name, tensor in self._signature.inputs.items())
        outputs = tuple(self._output(name, tensor, inputs) for name, tensor in self._signature.outputs.items())
        return Image(
            self._signature,
            program if program is not None and program.works else None,
            inputs,
            outputs,
            self._states(variables),
            self._arena_bytes,
            tuple(shifts),
            None if plan is None or not plan.states else Shift.SETS + 2 * plan.turns,
            Count.LOOPS + (0 if plan is None else len(plan.loops)),
            bool(plan and plan.loops) and self._most is not None,
        )

    def _address(self, arg: Arg) -> int:
        """Return an argument's address as region.cl encodes it."""
        assert self._layout is not None
        root, _ = self._layout.root(arg)
        if root in self._layout.constants:
            assert root.data is not None
            return self._constants.put(root.data) | Shift.CONSTANTS << RegionSize.OFFSET_BITS
        return self._layout.address(arg)

    def _input(self, name: str, tensor: int) -> Port:
        plan = self._plan
        if plan is not None and tensor in plan.region.inputs:
            return self._port(name, tensor, plan.inputs[plan.region.inputs.index(tensor)])
        spec = self._checked(name, tensor)  # nothing reads it, but it may be an output too
        offset, self._arena_bytes = self._arena_bytes, self._arena_bytes + align(_size(spec), ALIGNMENT)
        return Port(name, tensor, spec, "arena", offset)

    def _output(self, name: str, tensor: int, inputs: Sequence[Port]) -> Port:
        plan = self._plan
        if plan is not None and tensor in plan.region.outputs:
            return self._port(name, tensor, plan.outputs[plan.region.outputs.index(tensor)])
        spec = self._checked(name, tensor)
        if spec.data is not None:
            return Port(name, tensor, spec, "constants", self._constants.put(spec.data))
        for port in inputs:
            if port.tensor == tensor:
                return replace(port, name=name)
        raise DelegateError(f"{_REFUSED}: output {name!r} is a variable")

    def _port(self, name: str, tensor: int, operand: Operand) -> Port:
        plan, layout = self._plan, self._layout
        assert plan is not None and layout is not None
        root, start = plan.place(operand)
        spec = replace(self._checked(name, tensor, operand.shape), data=None)
        if root.data is not None:
            return Port(name, tensor, spec, "constants", self._constants.put(root.data) + start)
        return Port(name, tensor, spec, "arena", layout.start(root) + start)

    def _checked(self, name: str, tensor: int, shape: Shape | None = None) -> TensorSpec:
        """Return a tensor's spec. shape: as planned, if that is known. Raises DelegateError for a type or shape that
        no file declares.
        """
        spec = self._specs[tensor]
        if spec.type not in _TYPES:
            raise DelegateError(f"{_REFUSED}: {name!r} has type {spec.type.name}")
        if shape is None and spec.shape is None:
            raise DelegateError(f"{_REFUSED}: {name!r} has a shape that is known only at run time")
        return spec if shape is None else replace(spec, shape=shape)

    def _states(self, variables: Variables) -> tuple[Kept, ...]:
        plan, layout = self._plan, self._layout
        if plan is None or layout is None:
            return ()
        kept = []
        for state in plan.states:
            value = variables.newest(state.key)
            if value is None and not isinstance(state.key, str):
                value = variables.get(state.key, state.before.spec)
            if value is None and not state.read:
                continue  # the region assigns it first
            if not isinstance(value, np.ndarray) or not variables.fits(state.key, state.before.spec):
                expected = f"{state.before.spec.type.name} {[*state.before.shape]}"
                raise DelegateError(f"{_REFUSED}: nothing assigns variable {state.key!r} a first value, {expected}")
            root, start = plan.place(state.before)
            set_bytes = plan.slots[root].set_bytes if root in plan.slots else 0
            at = layout.start(root) + start
            kept.append(Kept(state.key, at, set_bytes, self._constants.put(value), value.nbytes))
        return tuple(kept)


def _size(spec: TensorSpec) -> int:
    return spec.size * spec.dtype.itemsize
