"""Code points of texts, in any encoding that Python has a codec for."""

import codecs
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit.own import Result, operator, texts
from litecl.interpreter.schema import TensorType

_INT32, _INT64, _STRING = TensorType.INT32, TensorType.INT64, TensorType.STRING
_LAST, _SURROGATES, _CONTROLS = 0x10FFFF, range(0xD800, 0xE000), range(0x20)


@dataclass(frozen=True)
class DecodeOptions:
    """errors: the treatment of invalid bytes: "strict", "replace" or "ignore"."""

    input_encoding: str = "UTF-8"
    errors: str = "replace"
    replacement_char: int = 0xFFFD
    replace_control_characters: bool = False
    Tsplits: int = int(_INT64)


@dataclass(frozen=True)
class EncodeOptions:
    output_encoding: str = "UTF-8"
    errors: str = "replace"
    replacement_char: int = 0xFFFD


@dataclass(frozen=True)
class TranscodeOptions:
    input_encoding: str = "UTF-8"
    output_encoding: str = "UTF-8"
    errors: str = "replace"
    replacement_char: int = 0xFFFD
    replace_control_characters: bool = False


def _codec(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError as error:
        raise ModelError(f"expected an encoding that Python knows, got {name!r}") from error


def _points(options: DecodeOptions | TranscodeOptions, data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the code points of a text, and the positions where their bytes begin."""
    codec, offset = _codec(options.input_encoding), 0
    while offset < len(data):
        wrong = None
        try:
            text = data[offset:].decode(codec)
        except UnicodeDecodeError as error:
            text, wrong = data[offset : offset + error.start].decode(codec), (offset + error.start, offset + error.end)
        for letter in text:
            is_control = options.replace_control_characters and ord(letter) in _CONTROLS
            yield options.replacement_char if is_control else ord(letter), offset
            offset += len(letter.encode(codec))
        if wrong is None:
            return
        if options.errors == "strict":
            raise ModelError(f"expected {options.input_encoding}, got other bytes at {wrong[0]} of {data[:40]!r}")
        if options.errors == "replace":
            yield options.replacement_char, wrong[0]
        offset = wrong[1]


def _text(options: EncodeOptions | TranscodeOptions, points: Sequence[int]) -> bytes:
    letters = []
    for point in points:
        if 0 <= point <= _LAST and point not in _SURROGATES:
            letters.append(chr(point))
        elif options.errors == "strict":
            raise ModelError(f"expected a code point, got {point:#x}")
        elif options.errors == "replace":
            letters.append(chr(options.replacement_char))
    return "".join(letters).encode(_codec(options.output_encoding), "replace")


def _decode(options: DecodeOptions, x: Array) -> list[Array]:
    rows = [list(_points(options, data)) for data in x.reshape(-1)]
    splits = np.cumsum([0, *map(len, rows)]).astype(TensorType(options.Tsplits).dtype)
    pairs = np.array([pair for row in rows for pair in row], np.int64).reshape(-1, 2)
    return [splits, pairs[:, 0].astype(np.int32), pairs[:, 1]]


def _encode(options: EncodeOptions, values: Array, splits: Array) -> Array:
    rows = [values[begin:end].tolist() for begin, end in itertools.pairwise(splits)]
    return texts([_text(options, row) for row in rows])


def _transcode(options: TranscodeOptions, x: Array) -> Array:
    rows = [[point for point, _ in _points(options, data)] for data in x.reshape(-1)]
    return texts([_text(options, row) for row in rows], x.shape)


def _of_points(options: DecodeOptions, inputs: list[TensorSpec]) -> list[Result]:
    (x,) = inputs
    return [(TensorType(options.Tsplits), (1 + x.size,)), (_INT32, None), (_INT64, None)]


UNICODE_DECODE = operator(
    "litecl.UnicodeDecode", DecodeOptions, lambda o, x: _decode(o, x)[:2], lambda o, i: _of_points(o, i)[:2]
)
UNICODE_DECODE_WITH_OFFSETS = operator("litecl.UnicodeDecodeWithOffsets", DecodeOptions, _decode, _of_points)
UNICODE_ENCODE = operator(
    "litecl.UnicodeEncode", EncodeOptions, _encode, lambda o, i: [(_STRING, (i[1].static_shape[0] - 1,))]
)
UNICODE_TRANSCODE = operator(
    "litecl.UnicodeTranscode", TranscodeOptions, _transcode, lambda o, i: [(_STRING, i[0].shape)]
)
