"""The model, the device and the operators for which regions are planned."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from litecl.delegate.cl_op import DeviceOp, Target
from litecl.delegate.plan.graph import RegionGraph
from litecl.delegate.plan.inline import Inlined, Origin, inlined
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Model, TensorSpec
from litecl.interpreter.op import Op


@dataclass(frozen=True, eq=False)
class Request:
    """The model, the specs of each subgraph's tensors, the target and its operators.

    alignment: of memory, in bytes. observe: called with the name of every pass and the graph after it. halves: whether
    large weights of products are fp16, except those of the nodes (subgraph and position) ``in_float``.
    """

    model: Model
    specs: Sequence[Sequence[TensorSpec]]
    target: Target
    alignment: int
    cl_ops: Mapping[Op, DeviceOp]
    observe: Callable[[str, RegionGraph], None] | None = None
    in_float: Collection[Origin] = ()
    halves: bool = False

    def inlined(self, subgraph: int) -> Inlined:
        """Return a subgraph with calls inlined."""
        return inlined(self.model, self.specs, subgraph)

    def in_halves(self, origins: Iterable[Origin]) -> bool:
        """Return whether large weights of fused nodes are fp16, as none of them must compute in float32."""
        return self.halves and not any(origin in self.in_float for origin in origins)
