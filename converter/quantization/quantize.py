"""Quantizes a finished model, in any way."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from litecl.converter.quantization.aware import is_trained, trained, without_grids
from litecl.converter.quantization.bias_correction import correct_biases
from litecl.converter.quantization.calibrate import Known, calibrate
from litecl.converter.quantization.choose import check_names
from litecl.converter.quantization.constants import with_constant_weights
from litecl.converter.quantization.data import Sample, samples, signatures_of
from litecl.converter.quantization.divisors import small_divisors
from litecl.converter.quantization.dynamic_range import dynamic_range
from litecl.converter.quantization.equalization import equalize
from litecl.converter.quantization.halves import halves
from litecl.converter.quantization.integers import Quantized, quantize_model
from litecl.converter.quantization.lookups import with_softsigns, without_softsigns
from litecl.converter.quantization.masks import with_near_masks
from litecl.converter.quantization.measure import as_stored, compared, measure
from litecl.converter.quantization.observers import observer
from litecl.converter.quantization.options import Quantization
from litecl.converter.quantization.recipes.apply import Selection, moments_of, selections, with_narrow_weights
from litecl.converter.quantization.recipes.choices import borders
from litecl.converter.quantization.recipes.notes import unused
from litecl.converter.quantization.recipes.priced import Priced, Progress, silent
from litecl.converter.quantization.recipes.read import recipe_of
from litecl.converter.quantization.recipes.recipe import Recipe
from litecl.converter.quantization.recipes.search import Search
from litecl.converter.quantization.report import QuantizationReport
from litecl.converter.quantization.substitute import with_integer_kernels, with_wide_constants
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import Model, Signature, Subgraph, reached
from litecl.interpreter.schema import TensorType


def quantize(
    model: Model, how: Quantization | None, progress: Progress = silent
) -> tuple[Model, QuantizationReport | None]:
    """Return the quantized model, and a report, which is None if all that changed is the type of weights.

    how: None only drops grids. progress: of a bit search. A model from quantization-aware training computes with
    integers even if only int8 weights were asked for.
    """
    if how is None:
        return without_grids(model), None
    if how.signatures:
        return _in_part(model, how)
    wide = with_wide_constants(model)
    if how.searches:
        return _searched(wide, how, progress, signed=bool(model.signatures))
    if how.recipe is not None:
        return _by_recipe(wide, how, recipe_of(how.recipe), signed=bool(model.signatures))
    if how.activations is None and how.weights == "int8" and is_trained(wide, most_bits=8):
        how = replace(how, activations="int8")
    if how.activations is None:
        narrow = replace(wide, subgraphs=tuple(_with_narrow_weights(graph, how) for graph in wide.subgraphs))
        note = f"no weights became {how.weights}: they have too few elements, or are not in float32"
        unchanged = _types(narrow) == _types(wide)
        return without_grids(narrow), QuantizationReport(notes=(note,)) if unchanged else None
    quantized, report = _on_integers(wide, how)
    return replace(without_grids(quantized), signatures=quantized.signatures if model.signatures else ()), report


def _in_part(model: Model, how: Quantization) -> tuple[Model, QuantizationReport | None]:
    """Quantize only what some signatures run; return the model and the report.

    Inner subgraphs that other signatures run too stay in float. Raises ConversionError for unknown keys, and if another
    signature runs a chosen signature's subgraph.
    """
    known = [signature.key for signature in model.signatures]
    if unknown := {*how.signatures} - {*known}:
        raise ConversionError(f"quantize: there are no signatures {sorted(unknown)}; the model has {known}")
    chosen = tuple(s for s in model.signatures if s.key in how.signatures)
    others = tuple(s for s in model.signatures if s.key not in how.signatures)
    taken = {*_run_by(model, chosen)} - {*_run_by(model, others)}
    if kept := sorted(s.key for s in chosen if s.subgraph not in taken):
        raise ConversionError(f"quantize: signatures {kept} have a subgraph that signatures run which stay in float")
    nothing = Subgraph((), (), (), ())
    graphs = tuple(graph if i in taken else nothing for i, graph in enumerate(model.subgraphs))
    quantized, report = quantize(replace(model, subgraphs=graphs, signatures=chosen), replace(how, signatures=()))
    floats, by_key = without_grids(model), {s.key: s for s in quantized.signatures}
    merged = tuple(quantized.subgraphs[i] if i in taken else graph for i, graph in enumerate(floats.subgraphs))
    signatures = tuple(by_key.get(s.key, s) for s in model.signatures)
    return replace(floats, subgraphs=merged, signatures=signatures), report


def _run_by(model: Model, signatures: Sequence[Signature]) -> Iterator[int]:
    """Yield the subgraphs of signatures, and those that they run."""
    for signature in signatures:
        yield signature.subgraph
        yield from reached(model, model.subgraphs[signature.subgraph].nodes)


def _types(model: Model) -> list[TensorType]:
    return [spec.type for graph in model.subgraphs for spec in graph.tensors]


def _with_narrow_weights(graph: Subgraph, how: Quantization) -> Subgraph:
    if how.weights == "float16":
        return halves(graph)
    return dynamic_range(graph, how.per_channel, narrow=how.weights == "int4", block=how.block)


def _searched(model: Model, how: Quantization, progress: Progress, *, signed: bool) -> tuple[Model, QuantizationReport]:
    """Return a model with bits per layer chosen for a size or an error, and the report."""
    floats = with_constant_weights(without_grids(model))
    search = Search(Priced(floats, samples(how, floats), how.measured, how.weight_only, progress))
    budget = how.budget_bytes
    frontier = search.for_ratio(how.min_sqnr_db or 0.0) if budget is None else search.for_size(budget)
    plain = replace(how, recipe=list(frontier.recipe), budget=None, min_sqnr_db=None, weight_only=False, strict=False)
    quantized, report = _by_recipe(floats, plain, recipe_of(plain.recipe), signed=signed)
    return quantized, replace(report, frontier=frontier, notes=())


def _by_recipe(model: Model, how: Quantization, recipe: Recipe, *, signed: bool) -> tuple[Model, QuantizationReport]:
    """Quantize to integers where a recipe wants that, store weights as it says elsewhere; return model and report."""
    if recipe.measures and how.data is None:
        raise ConversionError("quantize: this recipe needs representative data: Quantization(data=...) or --calibrate")
    whole = with_constant_weights(model)
    quantized, report = whole, QuantizationReport()
    if recipe.activations is not None:
        chosen = selections(quantized, recipe)
        entering, leaving = borders(quantized, recipe)
        types = {"input_type": how.input_type, "output_type": how.output_type}
        asked = {
            name: type_ for name, type_ in zip(types, (entering, leaving), strict=True) if types[name] == "float32"
        }
        static = replace(how, recipe=None, activations=recipe.activations.name.lower(), **asked)  # type: ignore[arg-type]
        quantized, report = _on_integers(quantized, static, chosen)
    used = samples(how, model) if how.data is not None else []
    quantized, rows, notes = with_narrow_weights(quantized, recipe, [as_stored(quantized, sample) for sample in used])
    notes = (*unused(whole, recipe), *notes)
    if how.strict and notes:
        raise ConversionError("quantize: strict, and the recipe cannot be followed:\n  " + "\n  ".join(notes))
    done = replace(without_grids(quantized), signatures=quantized.signatures if signed else ())
    if used and recipe.activations is None:
        outputs = compared(model, quantized, used[: how.measured])
        report = replace(report, outputs=outputs, samples=len(used), measured=min(how.measured, len(used)))
    return done, replace(report, weights=rows, notes=notes)


def _on_integers(
    model: Model, how: Quantization, chosen: Sequence[Selection] | None = None
) -> tuple[Model, QuantizationReport]:
    """Return the integer model. chosen: the only nodes to quantize, by subgraph."""
    assert how.activations is not None
    type_ = TensorType[how.activations.upper()]
    joined = with_softsigns(model) if type_ == TensorType.INT8 and chosen is None else model
    floats = with_integer_kernels(with_constant_weights(joined), type_, chosen)
    floats = equalize(floats) if how.equalize else floats
    used = [] if is_trained(model) and how.data is None else samples(how, floats)
    floats = with_near_masks(floats, type_, used)
    known = _measured(floats, how, used, trained(floats, type_))
    if chosen is not None:
        known = _selected(floats, known, chosen, used)
    check_names([floats.subgraphs[i] for i in known], how.skip)
    rounded = correct_biases(floats, used, per_channel=how.per_channel) if how.bias_correction and used else floats
    quantized, done = _with_safe_divisions(rounded, how, known, used)
    return without_softsigns(quantized), measure(floats, quantized, done, how, used)


def _selected(
    model: Model, known: Mapping[int, Known], chosen: Sequence[Selection], used: Sequence[Sample]
) -> Mapping[int, Known]:
    """Add weight formats and the nodes that stay in float to what is known."""
    moments = moments_of(model, chosen, used)
    return {
        i: replace(part, forms=chosen[i].forms, moments=moments[i], refused=chosen[i].refused(model.subgraphs[i]))
        for i, part in known.items()
    }


def _with_safe_divisions(
    model: Model, how: Quantization, known: Mapping[int, Known], used: Sequence[Sample]
) -> tuple[Model, Mapping[int, Quantized]]:
    """Return the integer model; divisions whose divisors would round to zero stay in float."""
    refused: dict[int, dict[int, str]] = {index: {} for index in known}
    while True:
        quantized, done = quantize_model(model, how, known, refused)
        unsafe = small_divisors(model, quantized, done, used)
        if not unsafe:
            return quantized, done
        for index, reasons in unsafe.items():
            refused[index] |= reasons


def _measured(
    model: Model, how: Quantization, used: Sequence[Sample], learned: Mapping[int, Known]
) -> Mapping[int, Known]:
    """Return the facts about each entry subgraph; ranges of training take precedence over measured ones."""
    if not used:
        return {s.subgraph: learned[s.subgraph] for s in signatures_of(model)}
    ranges = calibrate(model, used, observer(how))
    entries = {signature.subgraph for signature, _ in used}
    without = [s.key for s in signatures_of(model) if s.subgraph not in entries]
    if without:
        raise ConversionError(
            f"quantize: the representative data has no samples for signatures {without}: pass pairs of key and sample"
        )
    return {i: Known({**ranges[i], **learned[i].ranges}, learned[i].scales) for i in entries}
