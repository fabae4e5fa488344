"""The interface of a delegate: it rewrites a model, and reports on it afterwards."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from litecl.interpreter.buffers import Buffer
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, Model, TensorSpec
from litecl.interpreter.op import InPlace


class NodeReport(Protocol):
    """Where one node of a model runs."""

    @property
    def subgraph(self) -> int:
        """Its subgraph."""

    @property
    def node(self) -> int:
        """Its position there."""

    @property
    def op(self) -> str:
        """Its operator."""

    @property
    def claimed(self) -> bool:
        """True if a delegate runs it."""

    @property
    def reason(self) -> str:
        """Why not, if so."""


class Report(Protocol):
    """A delegate's report on a model. ``litecl.delegate.DelegationReport.of`` returns CLDelegate's."""

    @property
    def nodes(self) -> Sequence[NodeReport]:
        """Every node of every subgraph as loaded."""

    @property
    def partitions(self) -> Sequence[Any]:
        """Every region on the device."""

    @property
    def device(self) -> str:
        """The device's name; "none" where there is none."""

    @property
    def counters(self) -> Any:
        """The cost of the last invoke."""

    @property
    def claimed(self) -> int:
        """Number of nodes that the delegate runs."""

    @property
    def warnings(self) -> Sequence[str]:
        """A line for everything that went wrong."""

    def to_json(self) -> str:
        """Return everything as a JSON object."""

    def _repr_html_(self) -> str:
        """Return HTML, which notebooks show."""


@dataclass(frozen=True)
class Moved:
    """The bytes that the host has copied for a call: from its arguments, to its results, and from one tensor that stays
    on the device to another.
    """

    given: int = 0
    returned: int = 0
    within: int = 0


class Delegation(Protocol):
    """The outcome of applying a delegate to one model with one set of shapes."""

    @property
    def model(self) -> Model:
        """The model with claimed regions replaced by nodes that run them; tensor indices stay what they were."""

    @property
    def memory_bytes(self) -> int:
        """The bytes that it holds on the device."""

    @property
    def usable(self) -> bool:
        """False once its device has failed at run time, so that it is made anew when these shapes come again."""

    def input_memory(self, subgraph: int) -> Mapping[int, Array]:
        """Arrays of the delegate that inputs of an entry subgraph are to be written into, by tensor.

        Its region then gets the same array and need not copy it.
        """

    def copied_inputs(self, subgraph: int) -> Collection[int]:
        """Inputs of an entry subgraph that are read only to be copied at the beginning of a run."""

    def use(self, subgraph: int, buffers: Mapping[int, Buffer]) -> Collection[int]:
        """Let inputs and outputs of an entry subgraph lie in buffers in the runs that follow, all others again in the
        delegate's memory; return the tensors that now do, which nobody else reads or writes.

        Two outputs must not share a buffer. An output and an input may, if that is the input that the output updates;
        otherwise such an input is copied first, and keeps its value. Raises ModelError for another device's buffer.
        """

    def updates(self, subgraph: int) -> Mapping[int, int]:
        """Return the outputs of an entry subgraph that may be written over an input, with that input: it is read by
        nothing else, and nothing but a fault of the device ends a run early.
        """

    def surely_ends(self, subgraph: int) -> bool:
        """Return whether nothing but a fault of the device ends a run of an entry subgraph early."""

    def quick(self, subgraph: int, inputs: Mapping[int, Array]) -> InPlace | None:
        """Return a shorter way to run an entry subgraph again on the same buffers, if there is one; it raises faults.

        inputs: where the others lie.
        """

    def new_buffer(self, size_bytes: int) -> Buffer | None:
        """Allocate memory for a tensor that is to stay on the device, if there is one. Raises DelegateError."""

    def takes(self, buffer: Buffer) -> bool:
        """Return whether tensors may lie in a buffer without a copy."""

    def count(self, moved: Moved) -> None:
        """Count what the host has copied beside the last invoke, for the report."""

    def report(self) -> Report:
        """Return what ran where and why, including the counters of the last invoke."""


class OnTheHost:
    """The answers of a delegation that has no memory but the host's."""

    memory_bytes = 0
    usable = True

    def input_memory(self, subgraph: int) -> Mapping[int, Array]:
        """See ``Delegation``, as for the others."""
        return {}

    def copied_inputs(self, subgraph: int) -> Collection[int]:
        """See ``Delegation``: there are none."""
        return ()

    def use(self, subgraph: int, buffers: Mapping[int, Buffer]) -> Collection[int]:
        """See ``Delegation``: there are none."""
        return ()

    def updates(self, subgraph: int) -> Mapping[int, int]:
        """See ``Delegation``: there are none."""
        return {}

    def surely_ends(self, subgraph: int) -> bool:
        """Return False: numpy's kernels may raise."""
        return False

    def quick(self, subgraph: int, inputs: Mapping[int, Array]) -> InPlace | None:
        """See ``Delegation``: there are none."""
        return None

    def new_buffer(self, size_bytes: int) -> Buffer | None:
        """See ``Delegation``: there are none."""
        return None

    def takes(self, buffer: Buffer) -> bool:
        """Return False: all is copied."""
        return False

    def count(self, moved: Moved) -> None:
        """Nothing is counted."""


@runtime_checkable
class Preliminary(Protocol):
    """A delegation that another one takes over from, which is being prepared meanwhile."""

    def successor(self, runs: int) -> Delegation | None:
        """Return that one, for the same model and shapes, once it is there: it runs the model from now on.

        runs: how many invokes this one has run. Called between two invokes.
        """


class Delegate(Protocol):
    """Claims parts of a model."""

    def apply(
        self, model: Model, specs: Sequence[Sequence[TensorSpec]], *, preserve_all_tensors: bool = False
    ) -> Delegation:
        """Rewrite a model whose tensors are known as far as ``specs`` (a sequence a subgraph) tells."""
