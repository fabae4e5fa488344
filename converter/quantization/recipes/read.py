"""Reads recipes from JSON files, plain data or names; errors say where."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

from litecl.converter.quantization.recipes.names import named
from litecl.converter.quantization.recipes.recipe import (
    ALL,
    FORMS,
    INPUT,
    OUTPUT,
    Algorithm,
    Config,
    Entry,
    Mode,
    Operand,
    Recipe,
)
from litecl.interpreter.errors import ConversionError, brief
from litecl.interpreter.file.tables import BUILTIN_OPERATORS
from litecl.interpreter.records import Misfit, Within, record
from litecl.interpreter.schema import TensorType

_BLOCKS = {f"BLOCKWISE_{size}": size for size in (32, 64, 128, 256)}
_Natural = Annotated[int, Within(0)]
_RENAMED = {"CONV_2D_TRANSPOSE": "TRANSPOSE_CONV", "CUSTOM_OP": "CUSTOM"}


def recipe_of(given: Any) -> Recipe:
    """Return a recipe from a list of entries, the path of a JSON file, a name, or a ``Recipe``.

    Raises ConversionError for unknown keys, operators and algorithms, invalid expressions, and what recipes can't
    express.
    """
    if isinstance(given, Recipe):
        return given
    if isinstance(given, str) and (known := named(given)) is not None:
        return recipe_of(known)
    if isinstance(given, str | PathLike):
        return recipe_of(_load(given))
    if isinstance(given, Mapping):
        raise ConversionError(f"recipe: expected a list of entries, got a mapping with {sorted(map(str, given))}")
    if not isinstance(given, Sequence):
        raise ConversionError(f"recipe: expected a list of entries, got {type(given).__name__}")
    entries = [_entry(number, entry) for number, entry in enumerate(given)]
    types = {e.config.activations for e in entries} - {None}
    if len(types) > 1:
        raise ConversionError("recipe: expected activations of one type in all entries, got int8 and int16")
    return Recipe(tuple(_ordered(entries)), tuple(dict(entry) for entry in given))


def _load(path: str | PathLike[str]) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConversionError(
            f"recipe: {brief(str(path))} is neither the name of a recipe nor a file that can be read: {error.strerror}"
        ) from error
    except (ValueError, RecursionError) as error:  # a file that isn't text or JSON
        raise ConversionError(f"recipe: {path}: expected JSON: {error}") from error


def _ordered(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries grouped by regular expression in order of appearance, without replaced ones."""
    scopes: dict[str, dict[str, Entry]] = {}
    for entry in entries:
        scope = scopes.setdefault(entry.regex, {})
        if entry.operation == ALL:
            scope.clear()
        scope[entry.operation] = entry
    return [entry for scope in scopes.values() for entry in scope.values()]


@dataclass(frozen=True, kw_only=True)
class _Parameters:
    max_hadamard_size: _Natural = 0
    compensate: bool = False
    operands: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _Tensor:
    num_bits: Literal[2, 4, 8, 16]
    granularity: Literal[
        "TENSORWISE", "CHANNELWISE", "BLOCKWISE_32", "BLOCKWISE_64", "BLOCKWISE_128", "BLOCKWISE_256"
    ] = "TENSORWISE"
    symmetric: bool = True
    dtype: Literal["INT", "FLOAT"] = "INT"


@dataclass(frozen=True, kw_only=True)
class _Weights(_Tensor, _Parameters):
    """The weights of an operator. algorithm_params: the parameters, unless they are given directly."""

    block_size: Literal[0, 32, 64, 128, 256] = 0
    algorithm_params: _Parameters | None = None


@dataclass(frozen=True, kw_only=True)
class _OpConfig:
    weight_tensor_config: _Weights
    activation_tensor_config: _Tensor | None = None
    compute_precision: Literal["INTEGER", "FLOAT"] = "FLOAT"
    explicit_dequantize: bool = False
    skip_checks: bool = False
    min_weight_elements: _Natural = 0


@dataclass(frozen=True, kw_only=True)
class _Entry:
    regex: str
    operation: str
    algorithm_key: Algorithm = Algorithm.MIN_MAX
    op_config: Mapping[str, Any] | None = None


def _entry(number: int, given: Any) -> Entry:
    where = f"entry {number}"
    try:
        entry = record(_Entry, given, where)
        try:
            re.compile(entry.regex)
        except re.error as error:
            raise Misfit(f"{where}: {entry.regex!r} is no regular expression: {error}") from error
        operation, algorithm = _operation(where, entry.operation), entry.algorithm_key
        if algorithm is Algorithm.NOTHING:
            return Entry(entry.regex, operation, algorithm, Config(), number)
        if entry.op_config is None:
            raise Misfit(f"{where}: expected the key 'op_config'")
        config = record(_OpConfig, entry.op_config, f"{where}.op_config")
        return Entry(entry.regex, operation, algorithm, _config(where, config, algorithm), number)
    except Misfit as error:
        raise ConversionError(f"recipe: {error}") from error


def _operation(where: str, name: str) -> str:
    renamed = _RENAMED.get(name, name)
    if renamed not in (ALL, INPUT, OUTPUT) and renamed not in BUILTIN_OPERATORS:
        raise Misfit(f"{where}.operation: expected an operator or '*', got {brief(repr(name))}")
    return renamed


def _config(where: str, config: _OpConfig, algorithm: Algorithm) -> Config:
    activations, path = config.activation_tensor_config, f"{where}.op_config"
    mode = _mode(path, config.compute_precision, config.explicit_dequantize, activations is not None)
    weights = _weights(f"{path}.weight_tensor_config", config.weight_tensor_config, algorithm, mode)
    type_ = None if activations is None else _activations(f"{path}.activation_tensor_config", activations)
    if mode is Mode.STATIC and (weights["block"] or weights["bits"] not in (8, 4)):
        raise Misfit(f"{where}: integer activations need weights of 8 or 4 bits without blocks")
    if mode is Mode.STATIC and (algorithm.rotates or algorithm.scales):
        raise Misfit(f"{where}: {algorithm.value} needs float activations")
    return Config(mode, activations=type_, least=config.min_weight_elements, **weights)


def _mode(path: str, precision: str, explicit: bool, activations: bool) -> Mode:
    if precision == "INTEGER" and not explicit:
        return Mode.STATIC if activations else Mode.DYNAMIC
    if precision == "FLOAT" and explicit and not activations:
        return Mode.WEIGHT_ONLY
    raise Misfit(
        f"{path}: expected compute_precision INTEGER without explicit_dequantize, or FLOAT with it and without "
        f"activations, got {precision}, {explicit}"
    )


def _weights(path: str, given: _Weights, algorithm: Algorithm, mode: Mode) -> dict[str, Any]:
    halves = algorithm is Algorithm.HALVES
    size = given.block_size or _BLOCKS.get(given.granularity, 0)
    plain = mode is Mode.WEIGHT_ONLY and algorithm is Algorithm.MIN_MAX and not size
    _require(path, "num_bits", given.num_bits, (16,) if halves else (8, 4, 2))
    _require(path, "symmetric", given.symmetric, (True, False) if plain else (True,))
    _require(path, "dtype", given.dtype, ("FLOAT",) if halves else ("INT",))
    parameters = given if given.algorithm_params is None else given.algorithm_params
    if parameters is not given:
        for each in fields(_Parameters):  # these would have no effect
            if getattr(given, each.name) != getattr(_Parameters(), each.name):
                raise Misfit(f"{path}: unknown keys [{each.name!r}], expected in algorithm_params")
    operands = parameters.operands
    if operands and (mode is not Mode.WEIGHT_ONLY or algorithm.rotates or algorithm.scales):
        raise Misfit("operands: needs weights that are widened, not rotated and not scaled")
    return {
        "bits": given.num_bits,
        "per_channel": given.granularity != "TENSORWISE" or bool(size),
        "block": size,
        "symmetric": given.symmetric,
        "largest_rotation": parameters.max_hadamard_size,
        "compensates": parameters.compensate,
        "operands": tuple(_operand(position, how) for position, how in operands.items()),
    }


def _require(path: str, name: str, value: Any, allowed: Sequence[Any]) -> None:
    """Raise Misfit for a value that the other values rule out."""
    if value not in allowed:
        raise Misfit(f"{path}.{name}: expected one of {[*allowed]}, got {value!r}")


def _operand(position: Any, how: Any) -> Operand:
    """Return how to store the weights at a position."""
    if not (isinstance(position, str) and position.isascii() and position.isdigit()):
        raise Misfit(f"operands: expected positions as texts, got {brief(repr(position))}")
    if not (isinstance(how, str) and how in FORMS):
        raise Misfit(f"operands: expected one of {[*FORMS]}, got {brief(repr(how))}")
    return Operand(int(position), how)


def _activations(path: str, given: _Tensor) -> TensorType:
    # 16-bit activations never have zero points; 8-bit ones always do, even if a recipe asks for none.
    _require(path, "num_bits", given.num_bits, (8, 16))
    _require(path, "granularity", given.granularity, ("TENSORWISE",))
    _require(path, "dtype", given.dtype, ("INT",))
    return TensorType.INT8 if given.num_bits == 8 else TensorType.INT16
