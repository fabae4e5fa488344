"""The model, the device and the operators for which regions are planned."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from litecl.delegate.cl_op import DeviceOp, Target
from litecl.delegate.plan.graph import RegionGraph
from litecl.delegate.plan.inline import Inlined, Origin, inlined
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Model, TensorSpec
from litecl.interpreter.op import Op


@dataclass(frozen=True, eq=False)
class Request:
    """The model, the specs of each subgraph's tensors, the target and its operators.

    alignment: of memory, in bytes. observe: called with the name of every pass and the graph after it. in_float: nodes
    (subgraph and position) that compute in float32 whatever the target's precision.
    """

    model: Model
    specs: Sequence[Sequence[TensorSpec]]
    target: Target
    alignment: int
    cl_ops: Mapping[Op, DeviceOp]
    observe: Callable[[str, RegionGraph], None] | None = None
    in_float: Collection[Origin] = ()

    def inlined(self, subgraph: int) -> Inlined:
        """Return a subgraph with calls inlined."""
        return inlined(self.model, self.specs, subgraph)

    def target_of(self, origins: Iterable[Origin]) -> Target:
        """Return the target for fused nodes: without half weights if one of them must compute in float32."""
        if any(origin in self.in_float for origin in origins):
            return replace(self.target, half_weights=False)
        return self.target
