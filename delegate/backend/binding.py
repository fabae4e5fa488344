"""The places of a region's inputs and outputs: its arena, memory of its own, and buffers that outlive a run."""

from collections.abc import Collection, Mapping

from litecl.delegate.backend.places import part_of
from litecl.delegate.backend.protocols import Device, Execution, KeepsTensors, TakesBuffers
from litecl.delegate.cl_op import Operand
from litecl.delegate.plan.plan import Plan
from litecl.interpreter.buffers import Buffer
from litecl.interpreter.graph import Array

Placed = Mapping[Operand, Buffer]

_NOTHING: Placed = {}


class Binding:
    """The buffers of one execution.

    alone: the memory of inputs and outputs that have one of their own, which may be a buffer. updated: for each input
    that runs overwrite (``plan.apart``), the outputs that are then in its place. tensors: all of these. buffers: those
    in use, by tensor. sources: what is to be copied before a run, into the memory of inputs that are overwritten
    elsewhere.
    """

    def __init__(self, plan: Plan, execution: Execution, device: Device) -> None:
        self._plan, self._execution = plan, execution
        self._keeper = device if isinstance(device, KeepsTensors) else None
        self._taker = execution if isinstance(execution, TakesBuffers) else None
        self._named = [
            *zip(plan.region.inputs, plan.inputs, strict=True),
            *zip(plan.region.outputs, plan.outputs, strict=True),
        ]
        self.alone = {} if self._taker is None else self._alone()
        self.updated = {operand: self._results(operand) for operand in plan.inputs if operand in plan.apart}
        self._givers = {o: t for t, o in zip(plan.region.inputs, plan.inputs, strict=True) if o in plan.apart}
        self.tensors = {*self.alone, *self._givers.values(), *(t for results in self.updated.values() for t in results)}
        self._own: dict[Operand, Buffer] = {}  # of what lies apart, once a run has needed it
        self._placed: Placed = {}
        self.buffers: Mapping[int, Buffer] = {}
        self.sources: Placed = {}
        self._asked: Mapping[int, Buffer] | None = None
        self._answer: tuple[Placed, Mapping[int, Buffer], Placed] = {}, {}, {}

    @property
    def own_bytes(self) -> int:
        """The bytes that it has allocated."""
        return sum(buffer.size_bytes for buffer in self._own.values())

    @property
    def way(self) -> frozenset[Operand]:
        """The inputs and outputs in buffers that would else be in the arena: a back end may build launches for them."""
        return frozenset(self._placed) - self._plan.apart

    @property
    def is_seen(self) -> bool:
        """True if the host writes inputs, in this run, to where outputs are in buffers."""
        return any(o in self._placed and t not in self.buffers for o, t in self._givers.items())

    @property
    def overwrites(self) -> bool:
        """True if a run writes over an input that was given, in its buffer."""
        return any(self._placed.get(o) is self.buffers.get(t) is not None for o, t in self._givers.items())

    def use(self, buffers: Mapping[int, Buffer]) -> Collection[int]:
        """Let inputs and outputs lie in buffers in the runs that follow; return those that do: others lie elsewhere.

        An input that is overwritten lies where the output lies that takes its place, and is copied there first unless
        that is its own buffer.
        """
        if not buffers:
            self.buffers, self.sources = buffers, _NOTHING
            if self._placed:
                self._place(_NOTHING)
            return ()
        if buffers is not self._asked:
            self._asked, self._answer = buffers, self._found(buffers)
        placed, used, self.sources = self._answer
        if placed is not self._placed:
            self._place(placed)
        self.buffers = used
        return used

    def _found(self, buffers: Mapping[int, Buffer]) -> tuple[Placed, Mapping[int, Buffer], Placed]:
        """Return what lies in buffers, the buffers in use, and what is to be copied before a run."""
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
        return placed, used, sources

    def prepare(self) -> bool:
        """Give memory to what lies apart and is in no buffer; return whether something now lies elsewhere."""
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
        """Queue copies of inputs to where they are overwritten; return how many bytes these are."""
        for operand, buffer in self.sources.items():
            assert self._taker is not None
            self._taker.fill(operand, buffer)
        return sum(operand.size_bytes for operand in self.sources)

    def view(self, operand: Operand) -> Array | None:
        """Return an input's or output's memory as the host sees it, None where it does not."""
        root, start = self._plan.place(operand)
        if root not in self._plan.apart:
            return self._execution.memory.view(operand)
        buffer = self._placed.get(root)
        return None if buffer is None or buffer.host is None else part_of(buffer.host, start, operand)

    def _place(self, placed: Placed) -> None:
        assert self._taker is not None
        self._taker.use(placed)
        self._placed = placed

    def _alone(self) -> dict[int, Operand]:
        plan = self._plan
        roots = [plan.root(operand) for _, operand in self._named]
        return {
            tensor: root
            for (tensor, operand), root in zip(self._named, roots, strict=True)
            if roots.count(root) == 1
            and root in plan.arena.offsets
            and plan.place(operand)[1] == 0
            and root.size_bytes == operand.size_bytes == operand.spec.size * operand.spec.dtype.itemsize
        }

    def _results(self, root: Operand) -> list[int]:
        """Return the outputs that are all of some memory."""
        outputs = zip(self._plan.region.outputs, self._plan.outputs, strict=True)
        size = root.size_bytes
        return [t for t, o in outputs if self._plan.place(o) == (root, 0) and o.size_bytes == size]
