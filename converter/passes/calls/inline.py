"""Inlines called functions; functions that stand for an operation stay whole."""

from collections.abc import Mapping, Sequence

from litecl.converter.fusions.fusion import Fusion, mark_of
from litecl.converter.graph import Function, Module, Node
from litecl.converter.own_ops import COMPOSITE, LSTM
from litecl.converter.passes.splice import splice
from litecl.converter.records import Callee
from litecl.converter.report import FusionRecord
from litecl.interpreter.errors import ConversionError

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_MAX_DEPTH = 100


def inline_calls(module: Module, fusions: Sequence[Fusion] = ()) -> list[FusionRecord]:
    """Inline every call in every function, except composites that a fusion takes.

    These become nodes that own their bodies. The returned records list other composites.
    """
    inliner = _Inliner(module.functions, fusions)
    for function in (module.main, *module.functions.values()):
        inliner.inline(function, 0)
    return inliner.records


class _Inliner:
    def __init__(self, library: Mapping[str, Function], fusions: Sequence[Fusion]) -> None:
        self._library = library
        self._fusions = fusions
        self._done: set[str] = set()
        self.records: list[FusionRecord] = []

    def inline(self, function: Function, depth: int) -> None:
        """Inline calls, innermost first."""
        if depth > _MAX_DEPTH:
            raise ConversionError(f"function {function.name!r} calls itself, which a .tflite file cannot express")
        if function.name in self._done:
            return
        nodes, function.nodes = list(function.nodes), []
        for node in nodes:
            callee = _callee(node, self._library)
            if callee is None:
                function.add(node)
                continue
            self.inline(callee, depth + 1)
            if not self._keeps(function, node, callee):
                splice(function, node, callee.clone())
        if function.name in self._library:
            self._done.add(function.name)

    def _keeps(self, function: Function, node: Node, callee: Function) -> bool:
        """Turn a call into a composite if there is a fusion for it; return whether it was kept."""
        mark = mark_of(callee)
        if mark is None:
            return False
        if mark.name == LSTM.name:
            node.become(LSTM, node.inputs, mark.attrs)
            function.add(node)
            return True
        fusion = next((fusion for fusion in self._fusions if fusion.takes(mark.name, mark.attrs)), None)
        if fusion is None:
            self.records.append(FusionRecord(mark.name, node.name, "no fusion is registered under this name"))
            return False
        node.become(COMPOSITE, node.inputs, {"name": mark.name, "attrs": mark.attrs, "fusion": fusion})
        node.bodies = (callee.clone(),)
        function.add(node)
        return True


def _callee(node: Node, library: Mapping[str, Function]) -> Function | None:
    if node.op in _CALLS:
        target = node.attrs["f"]
        assert isinstance(target, Callee)
        return library[target.name]
    return library.get(node.op) if isinstance(node.op, str) else None
