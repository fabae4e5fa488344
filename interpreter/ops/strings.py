"""litecl's own operators on texts: TFLite has none. Each computes the same as TensorFlow's of the same name.

Texts are arrays of bytes objects. For a file with these operators, LiteRT reports which one it lacks.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from litecl.interpreter.arithmetic.farmhash import fingerprint64
from litecl.interpreter.arithmetic.siphash import siphash
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import regular, require
from litecl.interpreter.kit.own import decoded, encoded, sparse, texts
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs
from litecl.interpreter.schema import TensorType

_STRING, _INT32, _INT64, _BOOL = TensorType.STRING, TensorType.INT32, TensorType.INT64, TensorType.BOOL
_NUMBERS = (TensorType.FLOAT32, TensorType.FLOAT64, _INT32, _INT64)


@dataclass(frozen=True)
class CaseOptions:
    encoding: str = ""


@dataclass(frozen=True)
class UnitOptions:
    unit: str = "BYTE"


@dataclass(frozen=True)
class JoinOptions:
    separator: str = ""


@dataclass(frozen=True)
class ReplaceOptions:
    pattern: str = ""
    rewrite: str = ""
    replace_global: bool = True


@dataclass(frozen=True)
class MatchOptions:
    pattern: str = ""


@dataclass(frozen=True)
class HashOptions:
    num_buckets: int = 1
    key: tuple[int, ...] = ()


@dataclass(frozen=True)
class SplitOptions:
    maxsplit: int = -1


@dataclass(frozen=True)
class NumberOptions:
    out_type: int = int(TensorType.FLOAT32)


@dataclass(frozen=True)
class AsStringOptions:
    precision: int = -1
    scientific: bool = False
    shortest: bool = False
    width: int = -1
    fill: str = ""


def _each(name: str, options: type, function: Callable[[Any, bytes], Any], type_: TensorType = _STRING) -> Op:
    """Return an operator that applies a function to every text."""

    def infer(options: Any, inputs: Specs) -> list[TensorSpec]:
        (x,) = require.typed(inputs, _STRING)
        return [TensorSpec(type_, x.shape)]

    def run(options: Any, inputs: Inputs) -> list[Array]:
        (x,) = require.arrays(inputs, 1)
        results = [function(options, text) for text in x.reshape(-1)]
        return [texts(results, x.shape) if type_ == _STRING else np.array(results, type_.dtype).reshape(x.shape)]

    return Op(name, options=options, infer=infer, run=run, custom=True)


def _is_unicode(encoding: str) -> bool:
    if encoding not in ("", "utf-8"):
        raise ModelError(f"expected the encoding '' or 'utf-8', got {encoding!r}")
    return encoding == "utf-8"


def _lower(options: CaseOptions, text: bytes) -> bytes:
    return encoded(decoded(text).lower()) if _is_unicode(options.encoding) else text.lower()


def _upper(options: CaseOptions, text: bytes) -> bytes:
    return encoded(decoded(text).upper()) if _is_unicode(options.encoding) else text.upper()


def _length(options: UnitOptions, text: bytes) -> int:
    return len(text) if options.unit == "BYTE" else len(decoded(text))


def _replaced(options: ReplaceOptions, text: bytes) -> bytes:
    result = regular.replaced(decoded(text), options.pattern, options.rewrite, everywhere=options.replace_global)
    return encoded(result)


def _matches(options: MatchOptions, text: bytes) -> bool:
    return regular.pattern(options.pattern).fullmatch(decoded(text)) is not None


def _hashed(options: HashOptions, text: bytes) -> int:
    if len(options.key) == 2:
        low, high = (part % (1 << 64) for part in options.key)
        return siphash((low, high), text) % options.num_buckets
    return fingerprint64(text) % options.num_buckets


def _infer_join(options: JoinOptions, inputs: Specs) -> list[TensorSpec]:
    specs = require.typed(inputs, *[_STRING] * len(inputs))
    shapes = {spec.static_shape for spec in specs if spec.static_shape}
    if len(shapes) > 1:
        raise ShapeError(f"expected texts of one shape, got {sorted(map(list, shapes))}")
    return [TensorSpec(_STRING, next(iter(shapes), ()))]


def _run_join(options: JoinOptions, inputs: Inputs) -> list[Array]:
    parts = np.broadcast_arrays(*require.arrays(inputs, len(inputs)))
    separator = encoded(options.separator)
    return [texts([separator.join(row) for row in zip(*(p.flat for p in parts), strict=True)], parts[0].shape)]


def _infer_split(options: SplitOptions, inputs: Specs) -> list[TensorSpec]:
    x, _ = require.typed(inputs, _STRING, _STRING)
    require.rank(x, exactly=1)
    return [TensorSpec(_INT64, None), TensorSpec(_STRING, None), TensorSpec(_INT64, (2,))]


def _run_split(options: SplitOptions, inputs: Inputs) -> list[Array]:
    """Return the parts of every text as a sparse tensor: indices [n,2], parts [n], and the dense shape."""
    x, separator = require.arrays(inputs, 2)
    by = separator.item() or None  # white space
    rows = [text.split(by, options.maxsplit) for text in x]
    indices, parts, shape = sparse(rows)
    return [indices, texts(parts), shape]


def _infer_number(options: NumberOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.typed(inputs, _STRING)
    if options.out_type not in _NUMBERS:
        raise ShapeError(f"expected a type of numbers, got {options.out_type}")
    return [TensorSpec(TensorType(options.out_type), x.shape)]


def _run_number(options: NumberOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    dtype = TensorType(options.out_type).dtype
    try:
        numbers = [int(text) if dtype.kind == "i" else float(text) for text in x.flat]
        return [np.array(numbers, dtype).reshape(x.shape)]
    except (ValueError, OverflowError) as error:
        raise ModelError(f"a text is not a number: {error}") from error


def _infer_as_string(options: AsStringOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    require.types(x, (*_NUMBERS, _BOOL, TensorType.INT8, TensorType.INT16, TensorType.UINT8))
    return [TensorSpec(_STRING, x.shape)]


def _run_as_string(options: AsStringOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    width = str(options.width) if options.width > -1 else ""
    precision = f".{options.precision}" if options.precision > -1 else ""
    kind = "e" if options.scientific else "g" if options.shortest else "f"
    form = f"%{options.fill}{width}d" if x.dtype.kind in "iu" else f"%{options.fill}{width}{precision}{kind}"
    if x.dtype.kind == "b":
        form = f"%{options.fill}{width}s"
        return [texts([(form % str(bool(v)).lower()).encode() for v in x.flat], x.shape)]
    return [texts([(form % v).encode() for v in x.reshape(-1).tolist()], x.shape)]


def _infer_part(options: UnitOptions, inputs: Specs) -> list[TensorSpec]:
    x, position, size = require.present(inputs, 3)
    require.types(x, (_STRING,))
    return [TensorSpec(_STRING, require.broadcast(x, position, size))]


def _run_part(options: UnitOptions, inputs: Inputs) -> list[Array]:
    x, positions, sizes = np.broadcast_arrays(*require.arrays(inputs, 3))
    return [texts([_part(options, *row) for row in zip(x.flat, positions.flat, sizes.flat, strict=True)], x.shape)]


def _part(options: UnitOptions, data: bytes, position: int, size: int) -> bytes:
    units: Any = data if options.unit == "BYTE" else decoded(data)
    if not -len(units) <= position <= len(units):
        raise ModelError(f"position {position} of a text of {len(units)}")
    first = position if position >= 0 else len(units) + position
    part = units[first : first + max(int(size), 0)]
    return part if isinstance(part, bytes) else encoded(part)


def _own(name: str, options: type, infer: Any, run: Any) -> Op:
    return Op(name, options=options, infer=infer, run=run, custom=True)


STRING_LOWER = _each("litecl.StringLower", CaseOptions, _lower)
STRING_UPPER = _each("litecl.StringUpper", CaseOptions, _upper)
STRING_STRIP = _each("litecl.StringStrip", NoOptions, lambda options, text: text.strip())
STRING_LENGTH = _each("litecl.StringLength", UnitOptions, _length, _INT32)
REGEX_REPLACE = _each("litecl.RegexReplace", ReplaceOptions, _replaced)
REGEX_FULL_MATCH = _each("litecl.RegexFullMatch", MatchOptions, _matches, _BOOL)
STRING_TO_HASH_BUCKET = _each("litecl.StringToHashBucket", HashOptions, _hashed, _INT64)
STRING_TO_NUMBER = _own("litecl.StringToNumber", NumberOptions, _infer_number, _run_number)
STRING_JOIN = _own("litecl.StringJoin", JoinOptions, _infer_join, _run_join)
STRING_SPLIT = _own("litecl.StringSplit", SplitOptions, _infer_split, _run_split)
SUBSTR = _own("litecl.Substr", UnitOptions, _infer_part, _run_part)
AS_STRING = _own("litecl.AsString", AsStringOptions, _infer_as_string, _run_as_string)
