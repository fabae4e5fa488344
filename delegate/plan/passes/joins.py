"""Places the inputs of joins within the result, so that they are computed there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from litecl.delegate.cl_op import Operand
from litecl.delegate.kit.strided import is_dense, offset, row_step, view_of
from litecl.delegate.plan.graph import Place, RegionGraph, RegionNode
from litecl.delegate.quantized.integers import alike
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.reshape import EXPAND_DIMS, RESHAPE, SQUEEZE
from litecl.interpreter.schema import TensorType

Places = Mapping[int, Place]

_SHORT_ROW = 8
_RENAMING = (RESHAPE, SQUEEZE, EXPAND_DIMS)


def joins(graph: RegionGraph) -> RegionGraph:
    """Assign tensors positions within the results of CONCATENATION, PACK and RESHAPE.

    A tensor may be part of a result if its offset is aligned, and if it is contiguous or all nodes that write or read
    it support rows of a wider tensor.
    """
    places: dict[int, Place] = {}
    views: dict[RegionNode, Sequence[Array]] = {}
    for tensor, rows in _tensors(graph):
        for reader in graph.consumers(tensor):
            if reader.cl_op is None or reader.cl_op.joins is None or _is_only_renamed(graph, tensor, reader, places):
                continue
            if reader not in views:  # a result is placed before its parts
                views[reader] = _views(graph, reader, places)
            place = _place(graph, tensor, reader, views[reader], rows)
            if place is not None and (
                graph.producer(tensor) is not None or not _is_settled(graph, place.whole, places)
            ):
                places[tensor] = place
                break
    return replace(graph, places=places)


def _tensors(graph: RegionGraph) -> Iterator[tuple[int, bool]]:
    """Yield the tensors without a decided position, results before their parts, and whether they may be rows of a wider
    tensor.
    """
    for node in reversed(graph.nodes):
        for i, tensor in enumerate(node.outputs):
            if _is_free(graph, tensor) and not (i == 0 and node.in_place):
                yield tensor, i == 0 and node.writes_rows and not _is_slow(graph, node)
    for tensor in graph.readers:
        if graph.producer(tensor) is None and _is_free(graph, tensor):
            yield tensor, False


def _is_slow(graph: RegionGraph, node: RegionNode) -> bool:
    """Return whether a chain has short rows, so that writing them apart is slower than a dense result and a copy."""
    return bool(node.steps) and graph.specs[node.outputs[0]].static_shape[-1:] < (_SHORT_ROW,)


def _is_free(graph: RegionGraph, tensor: int) -> bool:
    spec = graph.specs[tensor]
    return tensor not in graph.given and spec.data is None and not spec.is_variable


def _is_only_renamed(graph: RegionGraph, tensor: int, reader: RegionNode, places: Places) -> bool:
    """Return whether a result had better be an alias of the tensor, whose producer may alias its own input."""
    (whole,) = reader.outputs
    free = whole not in places and whole not in graph.kept and _is_free(graph, whole)
    return free and reader.node.op in _RENAMING and graph.producer(tensor) is not None


def _is_settled(graph: RegionGraph, tensor: int, places: Places) -> bool:
    """Return whether a tensor lies in decided memory, such as a state's, which a caller does not write to."""
    while tensor in places:
        tensor = places[tensor].whole
    return tensor in graph.given


def _views(graph: RegionGraph, node: RegionNode, places: Places) -> Sequence[Array]:
    """Return a node's inputs as views of its output."""
    assert node.cl_op is not None
    assert node.cl_op.joins is not None
    (whole,) = node.outputs
    step = places[whole].row_step if whole in places else None
    operand = graph.given.get(whole) or Operand(graph.specs[whole], step)
    return node.cl_op.joins(node.node.options, graph.inputs_of(node), view_of(operand))


def _place(graph: RegionGraph, tensor: int, reader: RegionNode, views: Sequence[Array], rows: bool) -> Place | None:
    position, whole, spec = reader.inputs.index(tensor), reader.outputs[0], graph.specs[tensor]
    if reader.inputs.count(tensor) > 1 or position >= len(views):
        return None
    if spec.quantization is not None and alike(graph.specs[whole], spec):
        return None  # it must be requantized, so it is copied
    view = views[position]
    step, start = row_step(view), offset(view) * spec.dtype.itemsize
    if step is None or start % graph.alignment:
        return None
    if is_dense(view):
        return Place(whole, start)
    return Place(whole, start, step) if rows and _all_read_rows(graph, tensor) else None


def _all_read_rows(graph: RegionGraph, tensor: int) -> bool:
    """Return whether every reader of a float tensor can read it as rows of a wider one."""
    known = graph.specs[tensor].type == TensorType.FLOAT32 and tensor not in graph.kept
    return known and all(node.reads_rows(tensor) for node in graph.consumers(tensor))
