"""A delegate that keeps its delegation, so that a report can examine it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from litecl.delegate import CLDelegate, DelegationReport
from litecl.delegate.delegation import CLDelegation
from litecl.delegate.region import REGION
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Model, Node, TensorSpec
from litecl.perf.feeds import prepare
from litecl.perf.timeline import Timeline
from litecl.perf.trace_events import Span
from litecl.report.facts import Place


class Watched:
    """An interpreter with one CLDelegate, recording when each of its nodes runs."""

    def __init__(self, model: Model, delegate: CLDelegate, inputs: Any) -> None:
        self._delegate, self._timeline = replace(delegate, warm_up="block"), Timeline()
        self.interpreter = Interpreter(model, delegates=[self], listeners=[self._timeline])
        prepare(self.interpreter, inputs)
        self.interpreter.invoke()  # the first invoke compiles and warms up

    def apply(
        self, model: Model, specs: Sequence[Sequence[TensorSpec]], *, preserve_all_tensors: bool = False
    ) -> CLDelegation:
        """See ``Delegate.apply``."""
        delegation = self._delegate.apply(model, specs, preserve_all_tensors=preserve_all_tensors)
        assert isinstance(delegation, CLDelegation)
        self.delegation = delegation
        return delegation

    def invoke(self) -> list[Span]:
        """Run the model; return the spans of its nodes on the host."""
        self._timeline.spans.clear()
        self.interpreter.invoke()
        return list(self._timeline.spans)

    def report(self) -> DelegationReport:
        """Return the delegation report."""
        return DelegationReport.of(self.interpreter)

    def region_of(self, span: Span) -> int | None:
        """Return a span's region number; None for a CPU node."""
        if span.op != REGION:
            return None
        outputs = self._rewritten(span).outputs
        plans = self.delegation.plans.items()
        return next(n for n, p in plans if p.region.subgraph == span.subgraph and p.region.outputs == outputs)

    def place_of(self, span: Span) -> Place | None:
        """Return a span's node in the original model; None for a region, and for nodes within a failed one."""
        if span.op == REGION or span.node < 0:
            return None
        return self._places.get((span.subgraph, id(self._rewritten(span))))

    @cached_property
    def _places(self) -> dict[tuple[int, int], Place]:
        """The nodes of the original model, by their subgraph and identity."""
        graphs = enumerate(self.delegation.original.subgraphs)
        return {(number, id(node)): (number, i) for number, graph in graphs for i, node in enumerate(graph.nodes)}

    def _rewritten(self, span: Span) -> Node:
        return self.delegation.model.subgraphs[span.subgraph].nodes[span.node]
