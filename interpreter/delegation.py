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
        """Its position in the subgraph."""

    @property
    def op(self) -> str:
        """Its operator."""

    @property
    def claimed(self) -> bool:
        """True if a delegate runs it."""

    @property
    def reason(self) -> str:
        """Why no delegate runs it, if none does."""


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
        """The device's name, or "none"."""

    @property
    def counters(self) -> Any:
        """The cost of the last invoke."""

    @property
    def claimed(self) -> int:
        """The number of nodes that the delegate runs."""

    @property
    def warnings(self) -> Sequence[str]:
        """One line per problem."""

    def to_json(self) -> str:
        """Return everything as a JSON object."""

    def _repr_html_(self) -> str:
        """Return HTML for notebooks."""


@dataclass(frozen=True)
class Moved:
    """Bytes that the host copied for a call: from its arguments, to its results, and between tensors on the device."""

    given: int = 0
    returned: int = 0
    within: int = 0


class Memory(Protocol):
    """Where a delegation's inputs and outputs lie; as written here, in the host's memory alone."""

    @property
    def memory_bytes(self) -> int:
        """The bytes that it occupies on the device."""
        return 0

    @property
    def usable(self) -> bool:
        """False once its device has failed at run time; the next use of these shapes then applies the delegate anew."""
        return True

    def input_memory(self, subgraph: int) -> Mapping[int, Array]:
        """Return arrays of the delegate to write an entry subgraph's inputs into, by tensor.

        The region that reads such an input gets the same array and need not copy it.
        """
        return {}

    def copied_inputs(self, subgraph: int) -> Collection[int]:
        """Return the inputs of an entry subgraph that a run only copies, at its beginning."""
        return ()

    def use(self, subgraph: int, buffers: Mapping[int, Buffer]) -> Collection[int]:
        """Place inputs and outputs of an entry subgraph in buffers for the following runs, and return those placed.

        All others go back to the delegate's memory. Nobody else reads or writes the returned tensors. Two outputs must
        not share a buffer. An output may share one with the input that it updates; any other input that shares one is
        copied first, and keeps its value. Raises ModelError for another device's buffer.
        """
        return ()

    def updates(self, subgraph: int) -> Mapping[int, int] | None:
        """Return the outputs of an entry subgraph that may overwrite an input, with that input, which nothing else
        reads. None if more than a device fault can end a run early, as numpy's kernels may.
        """
        return None

    def quick(self, subgraph: int, inputs: Mapping[int, Array]) -> InPlace | None:
        """Return a faster way to rerun an entry subgraph on the same buffers, None without one; it raises faults.

        inputs: the arrays of the other inputs.
        """
        return None

    def new_buffer(self, size_bytes: int) -> Buffer | None:
        """Allocate device memory for a tensor that is to stay there; None without any. Raises DelegateError."""
        return None

    def takes(self, buffer: Buffer) -> bool:
        """Return whether tensors may lie in a buffer without a copy."""
        return False

    def count(self, moved: Moved) -> None:
        """Add copies that the host made besides the last invoke to the report, if it counts any."""
        return


class Delegation(Memory, Protocol):
    """The outcome of applying a delegate to one model with one set of shapes."""

    @property
    def model(self) -> Model:
        """The model with claimed regions replaced by nodes that run them; tensor indices don't change."""

    def report(self) -> Report:
        """Return what ran where and why, including the counters of the last invoke."""


@runtime_checkable
class Preliminary(Protocol):
    """A delegation that runs while its successor is being prepared."""

    def successor(self, runs: int) -> Delegation | None:
        """Return the successor, for the same model and shapes, once it is ready; it runs the model from then on.

        runs: the number of invokes so far. Called between two invokes.
        """


class Delegate(Protocol):
    """Claims parts of a model."""

    def apply(
        self, model: Model, specs: Sequence[Sequence[TensorSpec]], *, preserve_all_tensors: bool = False
    ) -> Delegation:
        """Rewrite a model. specs: what is known of its tensors, one sequence per subgraph."""
