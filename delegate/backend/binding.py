"""The memory of a region's inputs and outputs: its arena, separate allocations, and buffers that outlive a run."""

from collections.abc import Mapping
from dataclasses import field

from litecl.delegate.backend.layout import part_of
from litecl.delegate.backend.protocols import Device, Execution, KeepsTensors, TakesBuffers
from litecl.delegate.cl_op import Operand
from litecl.delegate.plan.plan import Plan
from litecl.interpreter.buffers import Buffer
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array

_NOTHING: Mapping[Operand, Buffer] = {}


@dataclass(frozen=True)
class Places:
    """The buffers of runs. placed: buffers by the operand in them. used: buffers by tensor. sources: buffers to copy
    before each run, by the overwritten operand that gets the copy. is_seen: whether an input array is copied into an
    output's buffer.
    """

    placed: Mapping[Operand, Buffer] = field(default_factory=dict)
    used: Mapping[int, Buffer] = field(default_factory=dict)
    sources: Mapping[Operand, Buffer] = field(default_factory=dict)
    is_seen: bool = False


class Binding:
    """The buffers of one execution.

    alone: inputs and outputs that share memory with no other, and so may lie in a buffer. updated: for each input that
    runs overwrite (``plan.apart``), the outputs that take its place. tensors: all of these. places: the buffers of the
    following runs.
    """

    def __init__(self, plan: Plan, execution: Execution, device: Device) -> None:
        self._plan, self._execution = plan, execution
        self._keeper = device if isinstance(device, KeepsTensors) else None
        self._taker = execution if isinstance(execution, TakesBuffers) else None
        self.alone = {} if self._taker is None else self._alone()
        self.updated = {operand: self._results(operand) for operand in plan.inputs if operand in plan.apart}
        self._givers = {o: t for t, o in zip(plan.region.inputs, plan.inputs, strict=True) if o in plan.apart}
        self.tensors = {*self.alone, *self._givers.values(), *(t for results in self.updated.values() for t in results)}
        self._own: dict[Operand, Buffer] = {}  # for operands apart, allocated on demand
        self._placed = _NOTHING
        self.places = Places()
        self._asked: Mapping[int, Buffer] = {}
        self._answer = Places()

    @property
    def own_bytes(self) -> int:
        """The bytes allocated here, for operands apart."""
        return sum(buffer.size_bytes for buffer in self._own.values())

    @property
    def way(self) -> frozenset[Operand]:
        """The operands in buffers that would otherwise lie in the arena; a back end may build launches for this set."""
        return frozenset(self._placed) - self._plan.apart

    @property
    def overwrites(self) -> bool:
        """True if a run overwrites an input in the caller's own buffer."""
        return any(self._placed.get(o) is self.places.used.get(t) is not None for o, t in self._givers.items())

    def use(self, buffers: Mapping[int, Buffer]) -> bool:
        """Place inputs and outputs in buffers for the following runs, as ``places`` then says.

        An overwritten input lies in the buffer of the output that takes its place, and is copied there first unless it
        is the same buffer. Return whether the buffers changed; another mapping object counts as a change.
        """
        is_new = bool(buffers) and buffers is not self._asked
        if is_new:
            self._asked, self._answer = buffers, self._places_in(buffers)
        self.places = self._answer if buffers else Places()
        if self._placed is not self.places.placed:
            self._place(self.places.placed)
        return is_new

    def prepare(self) -> bool:
        """Allocate memory for operands apart without a buffer; return whether any operand moved."""
        missing = [operand for operand in self.updated if operand not in self._placed]
        if not missing:
            return False
        assert self._keeper is not None
        for operand in missing:
            if operand not in self._own:
                self._own[operand] = self._keeper.new_buffer(operand.size_bytes)
        self._place({**self._placed} | {operand: self._own[operand] for operand in missing})
        return True

    def fill(self) -> int:
        """Queue copies of inputs into the memory that runs overwrite; return the bytes."""
        for operand, buffer in self.places.sources.items():
            assert self._taker is not None
            self._taker.fill(operand, buffer)
        return sum(operand.size_bytes for operand in self.places.sources)

    def view(self, operand: Operand) -> Array | None:
        """Return the memory of an input or output as a host array, None if the host can't access it."""
        root, start = self._plan.place(operand)
        if root not in self._plan.apart:
            return self._execution.memory.view(operand)
        buffer = self._placed.get(root)
        return None if buffer is None or buffer.host is None else part_of(buffer.host, start, operand)

    def _places_in(self, buffers: Mapping[int, Buffer]) -> Places:
        placed = {operand: buffers[tensor] for tensor, operand in self.alone.items() if tensor in buffers}
        used = {tensor: buffers[tensor] for tensor in self.alone if tensor in buffers}
        sources = {}
        for operand, results in self.updated.items():
            given, taken = self._givers[operand], next((t for t in results if t in buffers), None)
            if taken is not None:
                placed[operand] = used[taken] = buffers[taken]
            if given in buffers:
                used[given] = buffers[given]
                if taken is None or buffers[taken] is not buffers[given]:
                    sources[operand] = buffers[given]
        is_seen = any(operand in placed and tensor not in used for operand, tensor in self._givers.items())
        return Places(placed, used, sources, is_seen)

    def _place(self, placed: Mapping[Operand, Buffer]) -> None:
        if self._taker is not None:
            self._taker.use(placed)
        self._placed = placed

    def _alone(self) -> dict[int, Operand]:
        plan, region = self._plan, self._plan.region
        named = [*zip(region.inputs, plan.inputs, strict=True), *zip(region.outputs, plan.outputs, strict=True)]
        roots = [plan.root(operand) for _, operand in named]
        return {
            tensor: root
            for (tensor, operand), root in zip(named, roots, strict=True)
            if roots.count(root) == 1
            and root in plan.arena.offsets
            and plan.place(operand)[1] == 0
            and root.size_bytes == operand.size_bytes == operand.spec.size * operand.spec.dtype.itemsize
        }

    def _results(self, root: Operand) -> list[int]:
        """Return the outputs that fill an operand's memory exactly."""
        outputs = zip(self._plan.region.outputs, self._plan.outputs, strict=True)
        size = root.size_bytes
        return [t for t, o in outputs if self._plan.place(o) == (root, 0) and o.size_bytes == size]
