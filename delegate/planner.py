"""Partitions one model's subgraphs for one device, and plans their regions."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from litecl.delegate.analysis import halves
from litecl.delegate.analysis.explicit import Explicit, explicit
from litecl.delegate.analysis.list_writes import learned, with_lists_in_place
from litecl.delegate.backend.protocols import Device, KeepsTensors
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.claim.partition import partition
from litecl.delegate.claim.region import Partitioning, Region
from litecl.delegate.devices import tuning_of
from litecl.delegate.plan.dump import dump_of
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.planning import plan
from litecl.interpreter.graph import Model, Node, TensorSpec, entries

_LARGE_BYTES = 1 << 16


class Planner:
    """The partitionings and plans of a model. in_float: nodes that compute in float32 whatever the precision.

    planned: the model to plan regions from, with the original's node positions. loaded: the same without
    ``with_lists_in_place``. learns: whether that rewrote any subgraph.
    """

    def __init__(
        self,
        model: Model,
        specs: Sequence[Sequence[TensorSpec]],
        options: CLOptions,
        device: Device,
        in_float: Collection[tuple[int, int]],
        *,
        preserve: bool,
    ) -> None:
        self._model, self._specs, self._options, self._device = model, specs, options, device
        self._in_float, self._preserve = in_float, preserve
        self._tuned = replace(device.target, tuning=tuning_of(options, device))
        shapes = {i: [specs[i][t].static_shape for t in model.subgraphs[i].inputs] for i in entries(model)}
        rewritten, known = with_lists_in_place(model, specs, shapes)
        self._changed = {i for i, graph in enumerate(model.subgraphs) if rewritten.subgraphs[i] is not graph}
        self.planned = halves.widened(explicit(rewritten, known))
        self.loaded = halves.widened(explicit(model, specs)) if self._changed else self.planned

    @property
    def learns(self) -> bool:
        """Return whether some values are known only because of rewritten subgraphs."""
        return bool(self._changed)

    def partition(self, index: int) -> Partitioning:
        """Return the regions of a subgraph, and the reasons for its other nodes."""
        basis, target = self._basis(index), self._device.target
        return partition(index, basis, self._options, preserve=self._preserve, target=target)

    def learned(self, index: int) -> tuple[Node, ...]:
        """Return the node, if any, that provides the values of a subgraph which only the planned model knows."""
        return learned(self._model.subgraphs[index], self._specs[index], self._basis(index).specs[index])

    def plan(self, region: Region, number: int) -> Plan:
        """Return the plan of a region. number: names its folder in ``dump_passes``."""
        options, device, basis = self._options, self._device, self._basis(region.subgraph)
        observe = dump_of(options.dump_passes, number)
        owned = large_inputs(region, basis.specs) if isinstance(device, KeepsTensors) else ()
        how = self._tuned, device.alignment, options.cl_ops, observe, owned, self._in_float, options.halves
        return plan(region, basis, *how)

    def _basis(self, index: int) -> Explicit:
        """Return the model to plan a subgraph's regions from: as loaded if ``with_lists_in_place`` rewrote it."""
        return self.loaded if index in self._changed else self.planned


def large_inputs(region: Region, specs: Sequence[Sequence[TensorSpec]]) -> list[int]:
    """Return the large inputs, which a region may overwrite as it gets copies of them: that costs no more than a copy
    within the region, but more than writing the input straight into its memory.
    """
    inputs = {t: specs[region.subgraph][t] for t in region.inputs}
    return [t for t, spec in inputs.items() if spec.size * spec.dtype.itemsize >= _LARGE_BYTES]
