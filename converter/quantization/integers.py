"""Quantizes a float model to one that computes with integers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from litecl.converter.quantization.aware import CONVERSION
from litecl.converter.quantization.calibrate import Known
from litecl.converter.quantization.choose import Chosen, choose
from litecl.converter.quantization.data import signatures_of
from litecl.converter.quantization.groups import Scales, assign
from litecl.converter.quantization.options import Quantization
from litecl.converter.quantization.rewrite import Borders, Rewritten, rewrite
from litecl.converter.quantization.rules import Rule
from litecl.converter.quantization.scales import affine
from litecl.interpreter.errors import ConversionError, ModelError
from litecl.interpreter.graph import ABSENT, Model, Signature, Subgraph, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.schema import TensorType

_COARSEST = 1.5  # steps of training that one step of the converted integers may span


@dataclass(frozen=True)
class Quantized:
    """A quantized subgraph, with the choices and scales behind it."""

    known: Known
    chosen: Chosen
    scales: Scales
    rewritten: Rewritten


def quantize_model(
    model: Model,
    how: Quantization,
    known: Mapping[int, Known],
    refused: Mapping[int, Mapping[int, str]] | None = None,
) -> tuple[Model, Mapping[int, Quantized]]:
    """Return the integer model, and the outcome of each subgraph in ``known``.

    Other subgraphs, such as those of loops and branches, stay in float. The model has signatures, even if it had none.
    refused: nodes that stay in float, with the reason, by subgraph and number.
    """
    given = refused or {}
    done = {i: _quantize(model.subgraphs[i], part, how, given.get(i, {})) for i, part in known.items()}
    if how.strict:
        _check(model, done)
    graphs = tuple(done[i].rewritten.graph if i in done else graph for i, graph in enumerate(model.subgraphs))
    signatures = tuple(_renamed(s, done[s.subgraph]) if s.subgraph in done else s for s in signatures_of(model))
    return replace(model, subgraphs=graphs, signatures=signatures), done


def _renamed(signature: Signature, done: Quantized) -> Signature:
    inputs = {name: done.rewritten.inputs[t] for name, t in signature.inputs.items()}
    outputs = {name: done.rewritten.outputs.get(t, t) for name, t in signature.outputs.items()}
    return replace(signature, inputs=inputs, outputs=outputs)


def _quantize(graph: Subgraph, known: Known, how: Quantization, given: Mapping[int, str]) -> Quantized:
    assert how.activations is not None
    type_ = TensorType[how.activations.upper()]
    borders = Borders(TensorType[how.input_type.upper()], TensorType[how.output_type.upper()])
    refused = {**known.refused, **given}
    while True:
        chosen = choose(graph, known.ranges, how, refused)
        assigned = assign(graph, chosen, known, type_)
        scales = _with_borders(graph, assigned, known, type_, borders)
        rewritten = rewrite(graph, chosen, scales, type_, borders, known, how.per_channel)
        refusals = dict(_refusals(rewritten, chosen)) or dict(_coarser(graph, rewritten, chosen))
        if not refusals:
            return Quantized(known, chosen, scales, rewritten)
        refused |= refusals


def _with_borders(graph: Subgraph, scales: Scales, known: Known, type_: TensorType, borders: Borders) -> Scales:
    """Return the scales, including those of integer inputs and outputs that only float nodes read or write."""
    wanted = [*(graph.inputs if borders.inputs != TensorType.FLOAT32 else ())]
    wanted += [*(graph.outputs if borders.outputs != TensorType.FLOAT32 else ())]
    missing = [t for t in wanted if t not in scales.tensors and graph.tensors[t].type == TensorType.FLOAT32]
    for tensor in missing:
        if tensor not in known.ranges:
            raise ConversionError(
                f"quantize: {graph.tensors[tensor].name!r} had no values in the representative data, so it cannot be "
                "an integer input or output"
            )
    added = {t: known.scales.get(t) or affine(known.ranges[t], type_) for t in missing}
    return replace(scales, tensors={**scales.tensors, **added})


def _refusals(rewritten: Rewritten, chosen: Chosen) -> Iterator[tuple[int, str]]:
    """Yield the nodes that no integer kernel accepts, with the reason."""
    graph = rewritten.graph
    for number in rewritten.nodes.keys() & chosen.rules.keys():
        node = graph.nodes[rewritten.nodes[number]]
        assert isinstance(node.op, Op)
        inputs = [None if t == ABSENT else graph.tensors[t] for t in node.inputs]
        outputs = [graph.tensors[t] for t in (*node.outputs, *node.intermediates)]
        unfit = _unfit_step(chosen.rules[number], inputs) or _unfit_result(chosen.rules[number], inputs, outputs)
        if unfit is not None:
            yield number, unfit
            continue
        if any(spec is not None and spec.shape is None for spec in inputs):
            continue
        try:
            node.op.infer(node.options, inputs)
            if node.op.bind is not None:
                node.op.bind(node.options, inputs, outputs)
        except ModelError as error:
            yield number, str(error)


def _coarser(graph: Subgraph, rewritten: Rewritten, chosen: Chosen) -> Iterator[tuple[int, str]]:
    """Yield the nodes whose integers are coarser than those of training that their results are converted to."""
    makers = {tensor: number for number, node in enumerate(graph.nodes) for tensor in node.outputs}
    for number in (n for n, rule in chosen.rules.items() if rule is CONVERSION and n in rewritten.nodes):
        node = rewritten.graph.nodes[rewritten.nodes[number]]
        before, after = (rewritten.graph.tensors[t].quantization for t in (*node.inputs, *node.outputs))
        if before is None or after is None or before.scale[0] <= _COARSEST * after.scale[0]:
            continue
        producer = makers.get(graph.nodes[number].inputs[0])
        while producer is not None and producer in chosen.rules and chosen.rules[producer].moves:
            producer = makers.get(graph.nodes[producer].inputs[0])
        if producer is not None and chosen.rules.get(producer, CONVERSION) is not CONVERSION:
            yield producer, f"its integers have steps of {before.scale[0]:.3g}, those of training {after.scale[0]:.3g}"


def _unfit_step(rule: Rule, inputs: Sequence[TensorSpec | None]) -> str | None:
    """Return why kernels reject the scales of a node's operands; None if they don't."""
    if rule.steps is None:
        return None
    least, limit = rule.steps
    for spec in inputs:
        if spec is None or spec.quantization is None:
            continue
        scale = float(spec.quantization.scale[0])
        if scale >= limit:
            return f"its kernels need scales below {limit:g}, and an operand has {scale:.3g}"
        if scale < least and spec.data is None:
            return f"its kernels need steps of at least {least:g}, and an operand has {scale:.3g}"
    return None


def _unfit_result(rule: Rule, inputs: Sequence[TensorSpec | None], outputs: Sequence[TensorSpec]) -> str | None:
    """Return why kernels reject the scale of a node's result; None if they don't."""
    if not rule.raised:
        return None
    *scales, scale = (
        float(spec.quantization.scale[0]) for spec in (*inputs, *outputs) if spec is not None and spec.quantization
    )
    least = (2 * max(scales)) ** rule.power / 2.0 ** rule.raised[outputs[0].type]
    return (
        None if scale > least else f"its kernels need a result with a scale above {least:.3g}, and it has {scale:.3g}"
    )


def _check(model: Model, done: Mapping[int, Quantized]) -> None:
    """Raise ConversionError that names all operators left in float."""
    lines = [
        f"{model.subgraphs[index].nodes[number].op.name} "
        f"{model.subgraphs[index].tensors[model.subgraphs[index].nodes[number].outputs[0]].name!r}: {reason}"
        for index, quantized in done.items()
        for number, reason in quantized.chosen.reasons.items()
        if model.subgraphs[index].nodes[number].outputs
    ]
    if lines:
        raise ConversionError("quantize: strict, and these operators stay in float:\n  " + "\n  ".join(lines))
