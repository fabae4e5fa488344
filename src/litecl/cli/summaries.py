"""Views of a model's contents, shared by several subcommands."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from litecl.cli.tables import line, lines, shape, size, table
from litecl.delegate.naming import counted
from litecl.perf.summary import GraphSummary, ModelSummary, SignatureSummary, StoredTensor, TensorLine


def summary_view(name: str, summary: ModelSummary) -> RenderableType:
    """Show a model's interface, and each subgraph's operators and tensors."""
    title = (
        f"{name}: {counted(len(summary.subgraphs), 'subgraph')}, {counted(sum(summary.operators.values()), 'node')}, "
    )
    title += f"{size(summary.constant_bytes)} of constants, {summary.multiply_adds:,} multiply-adds"
    parts: list[RenderableType] = [line(title)]
    if summary.description:
        parts.append(line(f"description: {summary.description}"))
    if summary.metadata:
        parts.append(line(f"metadata: {', '.join(summary.metadata)}"))
    parts += [_signature(signature) for signature in summary.signatures]
    for index, graph in enumerate(summary.subgraphs):
        parts.append(_graph(index, graph))
    return Group(*parts)


def tensors_view(tensors: Sequence[StoredTensor]) -> Table:
    """Return a table of tensors with sizes and, if quantized, scales and zero points."""
    view = table("subgraph", "index", "name", "type", "shape", "bytes", "scale", "zero point", "scales")
    for t in tensors:
        scales = "" if t.dimension is None else f"{t.scales} along dimension {t.dimension}"
        sizes = "?" if t.shape is None else shape(t.shape), "" if t.size_bytes is None else f"{t.size_bytes:,}"
        kind = f"{t.type} constant" if t.constant else t.type
        view.add_row(str(t.subgraph), str(t.tensor), t.name, kind, *sizes, _span(t.scale), _span(t.zero_point), scales)
    return view


def _span(ends: tuple[float, float] | None) -> str:
    """Format a range, or its only value."""
    if ends is None:
        return ""
    return f"{ends[0]:.6g}" if ends[0] == ends[1] else f"{ends[0]:.6g} to {ends[1]:.6g}"


def _signature(signature: SignatureSummary) -> Text:
    arguments, results = ", ".join(signature.inputs), ", ".join(signature.outputs)
    return line(f"signature {signature.key} (subgraph {signature.subgraph}): {arguments} -> {results}")


def _graph(index: int, graph: GraphSummary) -> RenderableType:
    view = table("", "name", "type", "shape")
    for kind, tensors_ in (("input", graph.inputs), ("output", graph.outputs)):
        for tensor in tensors_:
            view.add_row(kind, tensor.name, tensor.type, _tensor_shape(tensor))
    operators = ", ".join(f"{count} {name}" for name, count in graph.operators.items()) or "none"
    tensors = ", ".join(f"{count} {name}" for name, count in graph.tensors.items())
    composites = ", ".join(f"{count} {name}" for name, count in graph.composites.items())
    totals = [f"operators: {operators}", *([f"composites: {composites}"] if composites else []), f"tensors: {tensors}"]
    counts = lines(totals)
    return Group(line(f"subgraph {index} {graph.name}"), view, counts)


def _tensor_shape(tensor: TensorLine) -> str:
    return "?" if tensor.shape is None else shape(tensor.shape)
