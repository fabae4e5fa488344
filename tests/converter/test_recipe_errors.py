"""Recipes that say what cannot be, or change nothing."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.converter import Quantization
from litecl.converter.emit import emit
from litecl.converter.graph import Function, Module, constant
from litecl.converter.quantization.recipes.names import entry, named
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.writer import write
from support.recipes import by_recipe, entries_of, network


def _changed(**fields: Any) -> list[dict[str, Any]]:
    return [entry(8) | fields]


def _config(**fields: Any) -> list[dict[str, Any]]:
    return [entry(8) | {"op_config": entry(8)["op_config"] | fields}]


def _weights(**fields: Any) -> list[dict[str, Any]]:
    return _config(weight_tensor_config=entry(8)["op_config"]["weight_tensor_config"] | fields)


ERRORS: Sequence[tuple[Any, str]] = (
    ("missing.json", "missing.json is neither the name of a recipe nor a file"),
    ({"default": []}, r"expected a list of entries, got a mapping with \['default'\]"),
    (7, "expected a list of entries, got int"),
    ([3], r"entry 0: expected a mapping with .*, got 3"),
    (_changed(colour="red"), r"entry 0: expected only .*'regex'.*, got \['colour'\]"),
    (_changed(regex="("), r"entry 0: '\(' is no regular expression: missing \)"),
    (_changed(regex=1), "entry 0.regex: expected a text, got 1"),
    (_changed(operation="CONV"), r"entry 0.operation: expected an operator or '\*', got 'CONV'"),
    (_changed(algorithm_key="magic"), "entry 0.algorithm_key: expected one of .*'GPTQ'.*, got 'magic'"),
    (_changed(op_config=[]), r"entry 0.op_config: expected a mapping, got \[\]"),
    (_config(speed=1), r"entry 0.op_config: expected only .*, got \['speed'\]"),
    (_config(compute_precision="FLOAT"), "expected compute_precision INTEGER without explicit_dequantize, or FLOAT"),
    (_config(min_weight_elements=-1), "entry 0.op_config.min_weight_elements: expected a number of at least 0, got -1"),
    (_weights(num_bits=3), r"weight_tensor_config.num_bits: expected one of \[2, 4, 8, 16\], got 3"),
    (_weights(granularity="ROWWISE"), "weight_tensor_config.granularity: expected one of .*, got 'ROWWISE'"),
    (_weights(symmetric=False), r"weight_tensor_config.symmetric: expected one of \[True\], got False"),
    (_weights(colour=1), r"entry 0.op_config.weight_tensor_config: expected only .*, got \['colour'\]"),
    (_weights(num_bits=16), r"weight_tensor_config.num_bits: expected one of \[8, 4, 2\], got 16"),
    (_weights(num_bits=True), r"weight_tensor_config.num_bits: expected one of .*, got True"),
    (_weights(symmetric=1), "weight_tensor_config.symmetric: expected true or false, got 1"),
    (_weights(max_hadamard_size=-1), "weight_tensor_config.max_hadamard_size: expected a number of at least 0, got -1"),
    (_weights(compensate=True, algorithm_params={}), r"weight_tensor_config: unknown keys \['compensate'\]"),
    (_weights(algorithm_params={"compensate": "yes"}), "algorithm_params.compensate: expected true or false"),
    (_weights(algorithm_params=3), "algorithm_params: expected a mapping"),
    (_config(min_weight_elements=10.5), "op_config.min_weight_elements: expected an integer, got 10.5"),
    (_config(skip_checks=None), "op_config.skip_checks: expected true or false, got None"),
    (_changed(algorithm_key=["GPTQ"]), r"entry 0.algorithm_key: expected one of .*, got \['GPTQ'\]"),
    ([entry(8, activations=8), entry(8, activations=16)], "expected activations of one type in all entries"),
    ([entry(2, activations=8)], "integer activations need weights of 8 or 4 bits"),
    ([entry(4, 32, activations=8)], "integer activations need weights of 8 or 4 bits without blocks"),
    ([entry(4, algorithm="OSCAR", activations=8)], "OSCAR needs float activations"),
)


@pytest.mark.parametrize(("recipe", "message"), ERRORS, ids=[m[:30] for _, m in ERRORS])
def test_errors(recipe: Any, message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        by_recipe(network(), recipe)


def test_a_recipe_that_needs_data() -> None:
    for recipe in ("static_wi8_ai8", [entry(4, algorithm="GPTQ")]):
        with pytest.raises(ConversionError, match="this recipe needs representative data"):
            by_recipe(network(), recipe)
    with pytest.raises(ConversionError, match="skip: no effect with a recipe"):
        Quantization(recipe="dynamic_wi8_afp32", skip=("CONV_2D",))


def test_notes() -> None:
    of = network()
    _, report = by_recipe(of, entries_of(("nowhere", "*", 8), ("", "DEPTHWISE_CONV_2D", 4), ("", "CONV_2D", 4)))
    assert [note.split("dynamic")[-1] for note in report.notes] == [
        " int8) fits no operator",
        " int4) counts for none of the 1 DEPTHWISE_CONV_2D that it fits: later entries do, or there are no kernels of "
        "such weights",
    ]
    assert str(report).startswith("note: entry 0")
    after, report = by_recipe(of, [])
    assert report.notes == ("the recipe quantizes nothing of this model",) and len(write(after)) == len(write(of))
    with pytest.raises(ConversionError, match="strict, and the recipe cannot be followed"):
        by_recipe(of, [], strict=True)


def test_a_recipe_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(named("dynamic_wi8_afp32")))
    for given in (path, str(path)):
        assert write(by_recipe(network(), given)[0]) == write(by_recipe(network(), "dynamic_wi8_afp32")[0])
    for damaged in ("[{]", "[" * 100_000):
        path.write_text(damaged)
        with pytest.raises(ConversionError, match=r"recipe.json: expected JSON"):
            by_recipe(network(), path)


def test_names_of_tensors_are_unique() -> None:
    """The peer refuses a file in which two tensors have one name."""
    values = [constant(np.full(2, i, np.float32), name) for i, name in enumerate(["a", "a", "a_1", "a", "b", "a_1"])]
    module = Module(Function("main", [], list(values)), [], [f"y{i}" for i in range(len(values))])
    (graph,) = emit({"serving_default": module}).subgraphs
    assert [spec.name for spec in graph.tensors] == ["a", "a_1", "a_1_1", "a_2", "b", "a_1_2"]
