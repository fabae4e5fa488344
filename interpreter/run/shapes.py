"""Shape propagation: from the input shapes to what is known of every tensor before the model runs.

Operators infer their output shapes in order; nodes whose inputs are all constant run at once, so that chains such as
SHAPE -> STRIDED_SLICE -> PACK -> RESHAPE and the expansion of stored weights leave known values. A shape that depends
on values is None ("known at run time"), and so is all that follows from it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from litecl.interpreter import limits
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import FAULTS, LimitError, LiteclError, ModelError, UnsupportedOp, fault, locate
from litecl.interpreter.graph import ABSENT, Array, Model, Node, Shape, Subgraph, TensorSpec, updated_by
from litecl.interpreter.kit.specs import common, same
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops.densify import DENSIFY, densify
from litecl.interpreter.ops.variables import READ_VARIABLE, name_of
from litecl.interpreter.run.resources import agreed
from litecl.interpreter.schema import TensorType

Known = tuple[TensorSpec, ...]

_HANDLES = frozenset((TensorType.RESOURCE, TensorType.VARIANT))
# A loop widens at most once per dimension of its state, and subgraphs nest less deeply than this.
_MAX_DEPTH = 64
# Folding of constants stops at this many bytes, plus this multiple of the bytes of the model's own constants: a few
# bytes of a file can ask for gigabytes.
_LEAST_FOLDED_BYTES = 1 << 24
_FOLDED_PER_STORED = 8


def propagate(
    model: Model,
    entries: Mapping[int, Sequence[Shape]],
    fits: Callable[[str, TensorSpec], bool] = lambda variable, spec: True,
) -> tuple[Known, ...]:
    """Return what is known of every tensor of every subgraph, given input shapes of the entry subgraphs.

    Of a subgraph called with different shapes only their common part is known; one that is never called keeps its
    declared shapes. A resource variable is read in its declared shape if all values assigned to it have that shape, and
    its current value, if any, ``fits``.
    Raises ShapeError if shapes do not fit, with the node named.
    """
    changing: set[str] | None = set()
    while True:
        propagation = _Propagation(model, changing)
        try:
            specs = _from_entries(propagation, model, entries)
        except LiteclError:
            if changing is None or not propagation.believed:
                raise
            changing = None  # perhaps the declared shape of a variable does not fit
        else:
            running = [i for i, subgraph in enumerate(propagation.reached) if subgraph is not None]
            known = agreed(model, specs, running)
            refuted = {name for name, x in propagation.believed.items() if known.get(name) is None or not fits(name, x)}
            if not refuted:
                return specs
            changing = (changing or set()) | refuted
        propagation.forget()


def _from_entries(
    propagation: "_Propagation", model: Model, entries: Mapping[int, Sequence[Shape]]
) -> tuple[Known, ...]:
    for index, shapes in entries.items():
        subgraph = model.subgraphs[index]
        inputs = [
            replace(subgraph.tensors[t], shape=shape, data=None)
            for t, shape in zip(subgraph.inputs, shapes, strict=True)
        ]
        for spec in inputs:
            limits.check(spec)
        propagation.call(index, inputs)
    return tuple(
        subgraph.tensors if known is None else known.specs
        for subgraph, known in zip(model.subgraphs, propagation.reached, strict=True)
    )


def outputs_of(
    node: Node, inputs: Sequence[TensorSpec | None], declared: Sequence[TensorSpec], most_bytes: int
) -> list[TensorSpec]:
    """Return the outputs of one node that runs no subgraphs, as far as its inputs determine them.

    most_bytes: the most bytes of constant outputs to compute here.
    """
    if any(spec is not None and spec.shape is None for spec in inputs):
        return [replace(spec, shape=None) for spec in declared]
    inferred = node.op.infer(node.options, inputs)
    if len(inferred) != len(declared):
        raise ModelError(f"the node has {len(declared)} outputs, expected {len(inferred)}")
    if node.op.declared_types:
        inferred = [replace(known, type=spec.type) for known, spec in zip(inferred, declared, strict=True)]
    elif isinstance(node.op, Op) and node.op.sets_types:
        declared = [replace(spec, type=known.type) for known, spec in zip(inferred, declared, strict=True)]
    if isinstance(node.op, Op) and node.op.declared_shapes:
        inferred = [
            replace(known, shape=spec.shape if known.shape is None else known.shape)
            for known, spec in zip(inferred, declared, strict=True)
        ]
    results = [_merge_declared(known, spec) for known, spec in zip(inferred, declared, strict=True)]
    for spec in results:
        limits.check(spec)
    return _fold(node, inputs, results, most_bytes)


@dataclass(frozen=True, eq=False)
class _Reached:
    inputs: Known
    specs: Known
    outputs: Known


class _Propagation:
    """One pass through the model.

    changing: resource variables that may be read in several shapes, None for all. believed: the others that were read,
    in their declared shapes. reached: by subgraph, None for those that nothing calls.
    """

    def __init__(self, model: Model, changing: Collection[str] | None) -> None:
        self._model, self._changing = model, changing
        self.believed: dict[str, TensorSpec] = {}
        self._depth = 0
        self._budget = limits.active()
        stored = {
            id(spec.data): spec.data.nbytes
            for graph in model.subgraphs
            for spec in graph.tensors
            if spec.data is not None
        }
        self._foldable_bytes = _LEAST_FOLDED_BYTES + _FOLDED_PER_STORED * sum(stored.values())
        self._folded: dict[int, list[Array]] = {}  # by subgraph, the values last folded there
        self.reached: list[_Reached | None] = [None] * len(model.subgraphs)

    def handed_on(self, index: int) -> list[bool]:
        """Return, for each output of a subgraph, whether it is the unchanged input in the same position."""
        graph = self._model.subgraphs[index]
        changed = _updated(graph)
        return [t in graph.inputs[i : i + 1] and t not in changed for i, t in enumerate(graph.outputs)]

    def call(self, index: int, given: Sequence[TensorSpec]) -> Known:
        """Return what is known of a subgraph's outputs, for inputs as general as these and all before."""
        expected = len(self._model.subgraphs[index].inputs)
        if len(given) != expected:
            raise ModelError(f"subgraph {index}: expected {expected} inputs, got {len(given)}")
        self._check_types(index, given)
        before = self.reached[index]
        inputs = tuple(given) if before is None else tuple(map(common, before.inputs, given))
        if before is not None and all(map(same, before.inputs, inputs)):
            return before.outputs
        if self._depth > _MAX_DEPTH:
            raise ModelError(f"subgraph {index}: nested more than {_MAX_DEPTH} deep, or calls itself")
        self._depth += 1
        specs = self._nodes(index, inputs)
        self._depth -= 1
        outputs = tuple(specs[t] for t in self._model.subgraphs[index].outputs)
        self.reached[index] = _Reached(inputs, tuple(specs), outputs)
        return outputs

    def _check_types(self, index: int, given: Sequence[TensorSpec]) -> None:
        graph = self._model.subgraphs[index]
        for position, (tensor, spec) in enumerate(zip(graph.inputs, given, strict=True)):
            declared = graph.tensors[tensor]
            if spec.type != declared.type and not {spec.type, declared.type} & _HANDLES:
                where = f"input {position} of subgraph {index} ({declared.name!r})"
                raise ModelError(f"{where}: expected type {declared.type.name}, got {spec.type.name}")

    def _nodes(self, index: int, inputs: Known) -> list[TensorSpec]:
        subgraph = self._model.subgraphs[index]
        self._forget(index)
        specs, updated = _in_full(subgraph), _updated(subgraph)
        for tensor, spec in zip(subgraph.inputs, inputs, strict=True):
            specs[tensor] = replace(specs[tensor], shape=spec.shape, data=None if tensor in updated else spec.data)
        for position, node in enumerate(subgraph.nodes):
            where = f"while preparing {node.op.name} (subgraph {index}, node {position})"
            try:
                limits.tick()
                for tensor, spec in zip(node.outputs, self._node(node, subgraph, specs), strict=True):
                    specs[tensor] = replace(spec, data=None) if tensor in updated else spec
                self._remember(index, [specs[t].data for t in node.outputs])
            except LiteclError as error:
                locate(error, node.op.name, where)
                raise
            except FAULTS as error:
                wrapped = fault(error)
                locate(wrapped, node.op.name, where)
                raise wrapped from error
        return specs

    def _node(self, node: Node, subgraph: Subgraph, specs: Sequence[TensorSpec]) -> list[TensorSpec]:
        """Return what is known of a node's outputs."""
        if node.version not in node.op.versions:
            known = f"{node.op.versions[0]} to {node.op.versions[-1]}"
            raise UnsupportedOp(f"version {node.version}; known are versions {known}")
        inputs = [None if t == ABSENT else specs[t] for t in node.inputs]
        declared = [subgraph.tensors[t] for t in node.outputs]
        if isinstance(node.op, ControlOp) and node.op.propagate is not None:
            outputs = node.op.propagate(node.options, inputs, self)
            if len(outputs) != len(declared):
                raise ModelError(f"the node has {len(declared)} outputs, expected {len(outputs)}")
            return [_merge_declared(spec, out) for spec, out in zip(outputs, declared, strict=True)]
        outputs = outputs_of(node, inputs, declared, self._foldable_bytes)
        return outputs if node.op is not READ_VARIABLE else [self._read(inputs[0], declared[0])]

    def _read(self, variable: TensorSpec | None, declared: TensorSpec) -> TensorSpec:
        """Return what is known of a resource variable that a node reads."""
        name = None if variable is None or variable.data is None else name_of(variable.data)
        is_open = declared.shape is None or -1 in (declared.shape_signature or ())
        if name is None or is_open or self._changing is None or name in self._changing:
            return replace(declared, shape=None)
        self.believed.setdefault(name, declared)
        return declared

    def forget(self) -> None:
        """Stop counting all folded values."""
        for index in list(self._folded):
            self._forget(index)

    def _remember(self, index: int, values: Sequence[Array | None]) -> None:
        """Count the values that a node was folded to."""
        for value in values:
            if value is not None:
                self._folded.setdefault(index, []).append(value)
                self._foldable_bytes -= value.nbytes
                if self._budget is not None:
                    self._budget.hold(value)

    def _forget(self, index: int) -> None:
        """Stop counting a subgraph's folded values."""
        for value in self._folded.pop(index, ()):
            self._foldable_bytes += value.nbytes
            if self._budget is not None:
                self._budget.drop(value)


def _in_full(subgraph: Subgraph) -> list[TensorSpec]:
    """Return the tensors, with sparse constants expanded, unless DENSIFY reads them.

    They keep their ``sparsity``, which determines how TensorFlow Lite computes with them.
    """
    specs = list(subgraph.tensors)
    for tensor in {t for node in subgraph.nodes if node.op is not DENSIFY for t in node.inputs if t != ABSENT}:
        spec = specs[tensor]
        if spec.sparsity is not None and spec.data is not None:
            limits.check(spec)
            specs[tensor] = replace(spec, data=densify(spec.data, spec.sparsity, spec.static_shape))
    return specs


def _updated(graph: Subgraph) -> set[int]:
    """Return the tensors that nodes change while the subgraph runs, whose initial values do not last."""
    return {tensor for node in graph.nodes for tensor in updated_by(node)}


def _merge_declared(known: TensorSpec, declared: TensorSpec) -> TensorSpec:
    """Return a tensor's inferred spec, with the name and quantization that the model declares."""
    if known.type != declared.type and declared.type not in _HANDLES:
        raise ModelError(f"output {declared.name!r}: expected type {known.type.name}, got {declared.type.name}")
    return replace(declared, shape=known.shape, data=known.data)


def _fold(
    node: Node, inputs: Sequence[TensorSpec | None], outputs: list[TensorSpec], most_bytes: int
) -> list[TensorSpec]:
    """Run a pure node whose inputs are all constant; a failing node is left to fail when the model runs."""
    op = node.op
    # A variable that a node sets changes again when its owner has run.
    changes = any(out.is_variable for out in outputs)
    if not (isinstance(op, Op) and op.pure and not op.states and inputs) or changes:
        return outputs
    if any(spec is not None and spec.data is None for spec in inputs) or all(out.data is not None for out in outputs):
        return outputs
    if limits.bytes_of(outputs) > most_bytes:
        return outputs
    budget = limits.active()
    if budget is not None:
        budget.require(limits.packed(inputs) + limits.need(inputs, outputs))
    try:
        run = (op.bind and op.bind(node.options, inputs, outputs)) or op.run
        values = run(node.options, [None if spec is None else spec.data for spec in inputs])
    except LimitError:
        raise
    except (LiteclError, *FAULTS):
        return outputs
    return [_with_value(spec, value) for spec, value in zip(outputs, values, strict=True)]


def _with_value(spec: TensorSpec, value: Array) -> TensorSpec:
    return replace(spec, shape=value.shape, data=value)
