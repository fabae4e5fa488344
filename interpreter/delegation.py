"""The interface of a delegate: it rewrites a model, and says afterwards what it did."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from litecl.interpreter.graph import Array, Model, TensorSpec


class Delegation(Protocol):
    """The outcome of applying a delegate to one model with one set of shapes."""

    @property
    def model(self) -> Model:
        """The model with claimed regions replaced by nodes that run them; tensor indices stay what they were."""

    def input_memory(self, subgraph: int) -> Mapping[int, Array]:
        """Arrays of the delegate's that inputs of an entry subgraph are to be written into, by tensor.

        Its region then gets the same array and need not copy it.
        """

    def report(self) -> Any:
        """Return what ran where and why, including the counters of the last invoke."""


class Delegate(Protocol):
    """Claims parts of a model."""

    def apply(
        self, model: Model, specs: Sequence[Sequence[TensorSpec]], *, preserve_all_tensors: bool = False
    ) -> Delegation:
        """Rewrites a model whose tensors are known as far as ``specs`` (a sequence a subgraph) tells."""
