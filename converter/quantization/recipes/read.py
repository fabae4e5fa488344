"""Reading recipes: from JSON files, plain data or names, with errors that say where."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

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
from litecl.interpreter.schema import TensorType

_BLOCKS = {f"BLOCKWISE_{size}": size for size in (32, 64, 128, 256)}
_RENAMED = {"CONV_2D_TRANSPOSE": "TRANSPOSE_CONV", "CUSTOM_OP": "CUSTOM"}


def recipe_of(given: Any) -> Recipe:
    """Return a recipe, given as a list of entries, the path of a JSON file with one, a name, or a ``Recipe``.

    Raises ConversionError for anything that a recipe cannot say: unknown keys, operators, algorithms, expressions.
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
    except ValueError as error:  # a file that is no text, or no JSON
        raise ConversionError(f"recipe: {path}: expected JSON: {error}") from error


def _ordered(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries by regular expression, in the order in which these come first, without those replaced."""
    scopes: dict[str, dict[str, Entry]] = {}
    for entry in entries:
        scope = scopes.setdefault(entry.regex, {})
        if entry.operation == ALL:
            scope.clear()
        scope[entry.operation] = entry
    return [entry for scope in scopes.values() for entry in scope.values()]


class _Fields:
    """The keys of a mapping in a recipe, each of which is taken once."""

    def __init__(self, where: str, given: Any) -> None:
        if not isinstance(given, Mapping):
            raise ConversionError(f"recipe: {where}: expected a mapping, got {brief(repr(given))}")
        self._where, self._left = where, dict(given)

    def take(self, key: str, check: Callable[[Any], bool], expected: str, *default: Any) -> Any:
        """Return the value of a key, or the default where there is one."""
        if key not in self._left:
            if default:
                return default[0]
            raise ConversionError(f"recipe: {self._where}: expected the key {key!r}")
        value = self._left.pop(key)
        if not check(value):
            raise ConversionError(f"recipe: {self._where}: expected {key} {expected}, got {brief(repr(value))}")
        return value

    def one_of(self, key: str, allowed: Sequence[Any], *default: Any) -> Any:
        """Return the value of a key, which is one of some."""
        return self.take(key, lambda value: value in allowed, f"one of {list(allowed)}", *default)

    def flag(self, key: str, default: bool) -> bool:
        """Return a truth value."""
        return bool(self.one_of(key, (True, False), default))

    def within(self, key: str) -> "_Fields | None":
        """Return the mapping of a key, if it is there."""
        value = self._left.pop(key, None)
        return None if value is None else _Fields(f"{self._where}, {key}", value)

    def refuse_others(self) -> None:
        """Raise ConversionError for keys that were not taken."""
        if self._left:
            raise ConversionError(f"recipe: {self._where}: unknown keys {sorted(map(str, self._left))}")


def _entry(number: int, given: Any) -> Entry:
    where = f"entry {number}"
    fields = _Fields(where, given)
    regex = fields.take("regex", lambda value: isinstance(value, str), "a text")
    try:
        re.compile(regex)
    except re.error as error:
        raise ConversionError(f"recipe: {where}: {regex!r} is no regular expression: {error}") from error
    operation = _operation(where, fields.take("operation", lambda value: isinstance(value, str), "a text"))
    algorithm = Algorithm(fields.one_of("algorithm_key", [a.value for a in Algorithm], Algorithm.MIN_MAX.value))
    config = fields.within("op_config")
    fields.refuse_others()
    if algorithm is Algorithm.NOTHING:
        return Entry(regex, operation, algorithm, Config(), number)
    if config is None:
        raise ConversionError(f"recipe: {where}: expected the key 'op_config'")
    return Entry(regex, operation, algorithm, _config(where, config, algorithm), number)


def _operation(where: str, name: str) -> str:
    renamed = _RENAMED.get(name, name)
    if renamed not in (ALL, INPUT, OUTPUT) and renamed not in BUILTIN_OPERATORS:
        raise ConversionError(f"recipe: {where}: expected operation an operator or '*', got {brief(repr(name))}")
    return renamed


def _config(where: str, fields: _Fields, algorithm: Algorithm) -> Config:
    weights, activations = fields.within("weight_tensor_config"), fields.within("activation_tensor_config")
    if weights is None:
        raise ConversionError(f"recipe: {where}, op_config: expected the key 'weight_tensor_config'")
    precision = fields.one_of("compute_precision", ("INTEGER", "FLOAT"), "FLOAT")
    explicit = fields.flag("explicit_dequantize", False)
    fields.flag("skip_checks", False)
    least = fields.take("min_weight_elements", lambda n: isinstance(n, int) and n >= 0, "a number of at least 0", 0)
    fields.refuse_others()
    mode = _mode(where, precision, explicit, activations is not None)
    made = _weights(weights, algorithm, mode)
    type_ = None if activations is None else _activations(activations)
    if mode is Mode.STATIC and (made["block"] or made["bits"] not in (8, 4)):
        raise ConversionError(f"recipe: {where}: integer activations need weights of 8 or 4 bits without blocks")
    if mode is Mode.STATIC and (algorithm.rotates or algorithm.scales):
        raise ConversionError(f"recipe: {where}: {algorithm.value} needs float activations")
    return Config(mode, activations=type_, least=least, **made)


def _mode(where: str, precision: str, explicit: bool, activations: bool) -> Mode:
    if precision == "INTEGER" and not explicit:
        return Mode.STATIC if activations else Mode.DYNAMIC
    if precision == "FLOAT" and explicit and not activations:
        return Mode.WEIGHT_ONLY
    raise ConversionError(
        f"recipe: {where}, op_config: expected compute_precision INTEGER without explicit_dequantize, or FLOAT with it "
        f"and without activations, got {precision}, {explicit}"
    )


def _weights(fields: _Fields, algorithm: Algorithm, mode: Mode) -> dict[str, Any]:
    halves = algorithm is Algorithm.HALVES
    bits = fields.one_of("num_bits", (16,) if halves else (8, 4, 2))
    granularity = fields.one_of("granularity", ("TENSORWISE", "CHANNELWISE", *_BLOCKS), "TENSORWISE")
    size = fields.one_of("block_size", (0, *_BLOCKS.values()), 0) or _BLOCKS.get(granularity, 0)
    plain = mode is Mode.WEIGHT_ONLY and algorithm is Algorithm.MIN_MAX and not size
    symmetric = fields.one_of("symmetric", (True, False) if plain else (True,), True)
    fields.one_of("dtype", ("FLOAT",) if halves else ("INT",), "INT")
    parameters = fields.within("algorithm_params") or fields
    largest = parameters.take("max_hadamard_size", lambda n: isinstance(n, int) and n >= 0, "a number of at least 0", 0)
    compensates = parameters.flag("compensate", False)
    operands = parameters.take("operands", lambda given: isinstance(given, Mapping), "a mapping", {})
    if operands and (mode is not Mode.WEIGHT_ONLY or algorithm.rotates or algorithm.scales):
        raise ConversionError("recipe: operands: needs weights that are widened, not rotated and not scaled")
    parameters.refuse_others()
    fields.refuse_others()
    return {
        "bits": bits,
        "per_channel": granularity != "TENSORWISE" or bool(size),
        "block": size,
        "symmetric": symmetric,
        "largest_rotation": largest,
        "compensates": compensates,
        "operands": tuple(_operand(position, how) for position, how in operands.items()),
    }


def _operand(position: Any, how: Any) -> Operand:
    """Return the form in which the weights at a position are stored."""
    if not (isinstance(position, str) and position.isascii() and position.isdigit()):
        raise ConversionError(f"recipe: operands: expected positions as texts, got {brief(repr(position))}")
    if not (isinstance(how, str) and how in FORMS):
        raise ConversionError(f"recipe: operands: expected one of {[*FORMS]}, got {brief(repr(how))}")
    return Operand(int(position), how)


def _activations(fields: _Fields) -> TensorType:
    bits = fields.one_of("num_bits", (8, 16))
    # Those of 16 bits never have zero points; a recipe that asks for 8 bits without gets a zero point all the same.
    fields.flag("symmetric", True)
    fields.one_of("granularity", ("TENSORWISE",), "TENSORWISE")
    fields.one_of("dtype", ("INT",), "INT")
    fields.refuse_others()
    return TensorType.INT8 if bits == 8 else TensorType.INT16
