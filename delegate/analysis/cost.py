"""A rough estimate of a model's arithmetic, to choose a device by."""

from collections.abc import Sequence

from litecl.interpreter.graph import ABSENT, Model, TensorSpec


def work_flops(model: Model, specs: Sequence[Sequence[TensorSpec]]) -> float:
    """Estimate the floating-point operations of one pass through every subgraph, from weights and output sizes."""
    return sum(
        node_flops(node.inputs, node.outputs, known)
        for graph, known in zip(model.subgraphs, specs, strict=True)
        for node in graph.nodes
    )


def mostly_integers(model: Model, specs: Sequence[Sequence[TensorSpec]]) -> bool:
    """Return whether most of the operations that ``work_flops`` estimates yield quantized integers."""
    nodes = [(node, known) for graph, known in zip(model.subgraphs, specs, strict=True) for node in graph.nodes]
    rows = [
        (node_flops(node.inputs, node.outputs, known), known[node.outputs[0]]) for node, known in nodes if node.outputs
    ]
    integers = [spec.quantization is not None and spec.dtype.kind in "iu" for _, spec in rows]
    return sum(flops if of_integers else -flops for (flops, _), of_integers in zip(rows, integers, strict=True)) > 0


def node_flops(inputs: Sequence[int], outputs: Sequence[int], known: Sequence[TensorSpec]) -> float:
    """Estimate the operations of a node from its tensor indices and the specs of all tensors.

    With constants of rank 2 or more: two operations per element of the largest one and output position (output elements
    over output channels). Otherwise: one per output element.
    """
    results = [known[t] for t in outputs if known[t].shape is not None]
    weights = [
        spec for t in inputs if t != ABSENT and (spec := known[t]).data is not None and len(spec.static_shape) >= 2
    ]
    if not weights or not results:
        return float(sum(spec.size for spec in results))
    largest = max(weights, key=lambda spec: spec.size)
    channels = results[0].static_shape[-1:] or (1,)
    return 2.0 * largest.size * results[0].size / max(1, channels[0])
