"""Views of a model's content, shared by several subcommands."""

from rich.console import Group, RenderableType
from rich.text import Text

from litecl.perf.cli.tables import shape, size, table
from litecl.perf.measure.summary import GraphSummary, ModelSummary, SignatureSummary, TensorLine


def summary_view(name: str, summary: ModelSummary) -> RenderableType:
    """Return a model: its interface, and per subgraph its operators and tensors."""
    title = f"{name}: {len(summary.subgraphs)} subgraphs, {sum(summary.operators.values())} nodes, "
    parts: list[RenderableType] = [Text(title + f"{size(summary.constant_bytes)} of constants")]
    if summary.description:
        parts.append(Text(f"description: {summary.description}"))
    if summary.metadata:
        parts.append(Text(f"metadata: {', '.join(summary.metadata)}"))
    parts += [_signature(signature) for signature in summary.signatures]
    for index, graph in enumerate(summary.subgraphs):
        parts.append(_graph(index, graph))
    return Group(*parts)


def _signature(signature: SignatureSummary) -> Text:
    arguments, results = ", ".join(signature.inputs), ", ".join(signature.outputs)
    return Text(f"signature {signature.key} (subgraph {signature.subgraph}): {arguments} -> {results}")


def _graph(index: int, graph: GraphSummary) -> RenderableType:
    made = table("", "name", "type", "shape")
    for kind, lines in (("input", graph.inputs), ("output", graph.outputs)):
        for tensor in lines:
            made.add_row(kind, tensor.name, tensor.type, _tensor_shape(tensor))
    operators = ", ".join(f"{count} {name}" for name, count in graph.operators.items()) or "none"
    tensors = ", ".join(f"{count} {name}" for name, count in graph.tensors.items())
    counts = Text(f"operators: {operators}\ntensors: {tensors}")
    return Group(Text(f"subgraph {index} {graph.name}"), made, counts)


def _tensor_shape(tensor: TensorLine) -> str:
    return "?" if tensor.shape is None else shape(tensor.shape)
