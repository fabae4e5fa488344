"""A back end in numpy that records calls, can fail at any of them, and computes with the interpreter.

Its memory is laid out as a plan says, and queued commands run only when they are waited for: code that reads too early,
or overwrites live data, gets wrong numbers.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from litecl.delegate.backend.protocols import Description, FoundDevice
from litecl.delegate.cl_op import Const, Operand, Target
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.steps import Loop, Work
from litecl.delegate.report import Counters, LaunchTime, Manner
from litecl.delegate.tuning import Demand, Tuning
from litecl.interpreter.buffers import Buffer
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.ops.variables import VAR_HANDLE
from litecl.interpreter.run.executor import Executor
from litecl.interpreter.run.shapes import propagate
from litecl.interpreter.run.variables import Variables

_GARBAGE = 0xFF  # NaN in floats


@dataclass(eq=False)
class FakeDevice:
    """A device, found and open in one, for the regions of one model.

    shared: whether the host sees its memory. fail: asked for every call by its number and name; raises what it likes.
    calls: the names of all calls, in order. queues: what each region has queued and nobody has waited for yet.
    """

    model: Model
    shared: bool = False
    fail: Callable[[int, str], None] = lambda number, name: None
    name: str = "fake"
    needs_runtime: bool = True
    needs_threads: bool = False
    gpu: bool = False
    calls: list[str] = field(default_factory=list)
    queues: list[list[Callable[[], None]]] = field(default_factory=list)

    @property
    def identity(self) -> Sequence[str]:
        return ("fake", self.name)

    def call(self, name: str) -> None:
        """Record a call, which may fail."""
        self.calls.append(name)
        self.fail(len(self.calls) - 1, name)

    def describe(self) -> Description:
        return Description("numpy", "1", "GPU" if self.gpu else "other", 1, 1 << 30, 1 << 30)

    def target(self, directory: Path | None = None) -> Target:
        return (GpuTarget if self.gpu else CpuTarget)(vector_width=8, compute_units=2)

    def open(self, *, profile: bool, directory: Path | None) -> "OpenFake":
        self.call("open")
        return OpenFake(self, profile)


@dataclass(eq=False)
class OpenFake:
    """The device, open."""

    found: FakeDevice
    profile: bool
    alignment: int = 64
    cache_hits: int = 0

    @property
    def name(self) -> str:
        return self.found.name

    @property
    def identity(self) -> Sequence[str]:
        return self.found.identity

    @property
    def needs_runtime(self) -> bool:
        return self.found.needs_runtime

    @property
    def needs_threads(self) -> bool:
        return self.found.needs_threads

    @property
    def target(self) -> Target:
        return self.found.target()

    def bind(self, plan: Plan, options: CLOptions) -> "FakeExecution":
        self.found.call("bind")
        return FakeExecution(plan, self)

    def check(self) -> None:
        self.found.call("check")

    def save(self) -> None:
        self.found.calls.append("save")


class FakeMemory:
    """An arena of bytes. queue: the commands to run, in order."""

    def __init__(self, plan: Plan, device: FakeDevice) -> None:
        self._plan, self._device = plan, device
        device.call("allocate")
        self._arena = np.full(plan.arena.size_bytes, _GARBAGE, np.uint8)
        self.queue: list[Callable[[], None]] = []
        device.queues.append(self.queue)
        constants = {arg for work in plan.works for arg in work.launch.args if isinstance(arg, Const)}
        self.constant_bytes = sum(const.data.nbytes for const in constants if const.data is not None)
        for const in constants:
            const.data = None

    def view(self, operand: Operand, turned: bool = False) -> Array | None:
        return self.part(operand, turned) if self._device.shared and self._plan.root(operand).data is None else None

    def upload(self, operand: Operand, value: Array, turned: bool = False) -> None:
        self._device.call("upload")
        self.queue.append(lambda: np.copyto(self.part(operand, turned), value))

    def download(self, operand: Operand, into: Array, turned: bool = False) -> None:
        self._device.call("download")
        self.queue.append(lambda: np.copyto(into, self.part(operand, turned)))

    def copy(self, state: Operand, turned: bool) -> None:
        self._device.call("copy")
        self.queue.append(lambda: np.copyto(self.part(state, turned), self.part(state, not turned)))

    def part(self, operand: Operand, turned: bool = False) -> Array:
        """Return where an operand lies."""
        root, start = self._plan.place(operand)
        size, shape = operand.spec.size * operand.spec.dtype.itemsize, operand.shape
        if root.data is not None:
            return root.data.reshape(-1).view(np.uint8)[start : start + size].view(operand.spec.dtype).reshape(shape)
        slot = self._plan.slots.get(root)
        if slot is None:
            start += self._plan.arena.offsets[root]
        else:
            start += self._plan.arena.offsets[slot.sets] + slot.offset + (slot.written != turned) * slot.set_bytes
        return self._arena[start : start + size].view(operand.spec.dtype).reshape(shape)


class FakeExecution:
    """A region that runs on the interpreter, with its tensors in the memory."""

    def __init__(self, plan: Plan, device: OpenFake) -> None:
        self._plan, self._device = plan, device.found
        self._profile = device.profile
        self.memory = FakeMemory(plan, device.found)
        self.manner = Manner("one kernel")
        self.at_once = None
        self._turned = False
        self._executor = _executor(device.found.model, plan)

    def loop(self, loop: Loop) -> str:
        return "by the interpreter"

    def turn(self, turned: bool) -> None:
        self._turned = turned

    def run(self, counters: Counters) -> None:
        self._device.call("run")
        counters.kernel_launches += len(self._plan.works)
        self.memory.queue.append(self._compute)

    def finish(self) -> None:
        self._device.call("finish")
        while self.memory.queue:
            self.memory.queue.pop(0)()

    def times(self) -> Sequence[tuple[Work, LaunchTime]]:
        self._device.call("times")
        return [(work, LaunchTime(1.0)) for work in self._plan.works] if self._profile else []

    def _compute(self) -> None:
        plan, part, variables, turned = self._plan, self.memory.part, self._executor.variables, self._turned
        subgraph = plan.region.subgraph
        for state in plan.states:
            variables.set(state.key, part(state.before, turned).copy())
        results = self._executor.call(subgraph, [part(operand).copy() for operand in plan.inputs])
        for operand, result in zip(plan.outputs, results, strict=True):
            if plan.root(operand).data is None:
                part(operand)[...] = result
        for state in plan.states:
            if state.after is not None:
                part(state.after, turned)[...] = variables.newest(state.key)


def _executor(model: Model, plan: Plan) -> Executor:
    """Return what runs the nodes of a region and nothing else."""
    region = plan.region
    graph = model.subgraphs[region.subgraph]
    nodes = tuple(node for i, node in enumerate(graph.nodes) if i in region.nodes or node.op is VAR_HANDLE)
    graphs = list(model.subgraphs)
    graphs[region.subgraph] = replace(graph, nodes=nodes, inputs=region.inputs, outputs=region.outputs)
    alone = replace(model, subgraphs=tuple(graphs), signatures=())
    shapes = {region.subgraph: [operand.shape for operand in plan.inputs]}
    return Executor(alone, propagate(alone, shapes), Variables())


@dataclass
class FakeBackend:
    """A back end with some devices, in order of preference."""

    found: Sequence[FakeDevice]

    def devices(self, directory: Path | None = None) -> Sequence[FoundDevice]:
        return self.found

    def candidates(
        self,
        demand: Demand,
        tuned: Callable[[FoundDevice], Tuning],
        directory: Path | None = None,
        platform: str = "",
    ) -> Iterator[FoundDevice]:
        yield from () if platform else self.found

    def of(self, device: object) -> FoundDevice | None:
        return None

    def buffer(self, handle: object) -> Buffer | None:
        return None
