"""Texts joined, split, hashed and recoded: litecl's own operators."""

import base64
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from litecl.interpreter.arithmetic.farmhash import fingerprint64
from litecl.interpreter.arithmetic.murmurhash import murmur64
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.kit.own import Result, encoded, operator, sparse, texts
from litecl.interpreter.op import NoOptions
from litecl.interpreter.schema import TensorType

_INT64, _STRING, _UINT8 = TensorType.INT64, TensorType.STRING, TensorType.UINT8


@dataclass(frozen=True)
class GramsOptions:
    """separator, left_pad, right_pad: texts. pad_width: the most paddings at an end, -1 for the width minus one."""

    separator: str = ""
    ngram_widths: tuple[int, ...] = ()
    left_pad: str = ""
    right_pad: str = ""
    pad_width: int = -1
    preserve_short_sequences: bool = False


@dataclass(frozen=True)
class ReduceOptions:
    keep_dims: bool = False
    separator: str = ""


@dataclass(frozen=True)
class SeparatorOptions:
    separator: str = ""


@dataclass(frozen=True)
class DelimiterOptions:
    skip_empty: bool = True


@dataclass(frozen=True)
class BucketOptions:
    num_buckets: int = 1


@dataclass(frozen=True)
class PadOptions:
    pad: bool = False


@dataclass(frozen=True)
class RawOptions:
    out_type: int = int(_UINT8)
    little_endian: bool = True


def _grams(options: GramsOptions, words: list[bytes], width: int) -> Iterator[bytes]:
    """Yield runs of words; paddings extend those that begin before the first word or end after the last."""
    most = width - 1 if options.pad_width < 0 else min(options.pad_width, width - 1)
    left, right = ([encoded(pad)] * most for pad in (options.left_pad, options.right_pad))
    row = [*left, *words, *right]
    for first in range(len(row) - width + 1):
        yield encoded(options.separator).join(row[first : first + width])


def _ngrams(options: GramsOptions, data: Array, splits: Array) -> list[Array]:
    rows = []
    for begin, end in itertools.pairwise(splits):
        words = data[begin:end].tolist()
        grams = [gram for width in options.ngram_widths for gram in _grams(options, words, width)]
        if options.preserve_short_sequences and words and not grams:
            grams = list(_grams(options, words, len(words) + 2 * max(options.pad_width, 0)))
        rows.append(grams)
    ends = np.cumsum([0, *map(len, rows)]).astype(splits.dtype)
    return [texts([gram for row in rows for gram in row]), ends]


def _joined_along(options: ReduceOptions, x: Array, axes: Array) -> Array:
    chosen = [int(axis) % x.ndim for axis in axes.reshape(-1)]
    others = [axis for axis in range(x.ndim) if axis not in chosen]
    rows = x.transpose(*others, *chosen).reshape(*(x.shape[axis] for axis in others), -1)
    shape = [1 if axis in chosen else n for axis, n in enumerate(x.shape) if options.keep_dims or axis not in chosen]
    flat = rows.reshape(-1, rows.shape[-1])
    return texts([encoded(options.separator).join(row) for row in flat], tuple(shape))


def _joined_by_segment(options: SeparatorOptions, x: Array, ids: Array, count: Array) -> Array:
    inner = x.reshape(ids.size, -1)
    require.elements((int(count), inner.shape[1]))
    rows: list[list[list[bytes]]] = [[[] for _ in range(inner.shape[1])] for _ in range(int(count))]
    for row, segment in zip(inner, ids.reshape(-1), strict=True):
        if 0 <= segment < len(rows):
            for parts, text in zip(rows[segment], row, strict=True):
                parts.append(text)
    joined = [encoded(options.separator).join(parts) for row in rows for parts in row]
    return texts(joined, (len(rows), *x.shape[ids.ndim :]))


def _split(options: DelimiterOptions, x: Array, delimiter: Array) -> list[Array]:
    """Return the parts between the delimiter's characters as a sparse tensor; without any, every byte is a part."""
    ends, rows = delimiter.item(), []
    for text in x:
        parts = [b""] if ends else [text[k : k + 1] for k in range(len(text))]
        for byte in text if ends else b"":
            if byte in ends:
                parts.append(b"")
            else:
                parts[-1] += bytes([byte])
        rows.append([part for part in parts if part or not options.skip_empty])
    indices, parts, shape = sparse(rows)
    return [indices, texts(parts), shape]


def _bucket(options: BucketOptions, x: Array) -> Array:
    buckets = [murmur64(text) % options.num_buckets for text in x.reshape(-1)]
    return np.array(buckets, np.int64).reshape(x.shape)


def _fingerprint(options: NoOptions, x: Array, method: Array) -> Array:
    """Return the fingerprints of a row's bytes, or of texts, as eight bytes each."""
    if method.item() != b"farmhash64":
        raise ModelError(f"expected the method farmhash64, got {method.item()!r}")
    rows = [np.ascontiguousarray(row).tobytes() for row in x.reshape(len(x), -1)] if x.dtype != object else list(x)
    return np.array([fingerprint64(row) for row in rows], "<u8").view(np.uint8).reshape(len(rows), 8)


def _each(function: Any) -> Any:
    return lambda options, x: texts([function(options, text) for text in x.reshape(-1)], x.shape)


def _written(options: PadOptions, text: bytes) -> bytes:
    encoded = base64.urlsafe_b64encode(text)
    return encoded if options.pad else encoded.rstrip(b"=")


def _read(options: NoOptions, text: bytes) -> bytes:
    try:
        return base64.b64decode(text.rstrip(b"=") + b"=" * (-len(text.rstrip(b"=")) % 4), b"-_", validate=True)
    except ValueError as error:
        raise ModelError(f"expected web-safe base64, got {text[:40]!r}") from error


def _shard(options: NoOptions, name: Array, shard: Array, count: Array) -> Array:
    return texts([b"%s-%05d-of-%05d" % (name.item(), shard.item(), count.item())], ())


def _shards(options: NoOptions, name: Array, count: Array) -> Array:
    return texts([b"%s-?????-of-%05d" % (name.item(), count.item())], ())


def _raw(options: RawOptions, x: Array) -> Array:
    """Return the numbers that texts of equal length hold as bytes."""
    lengths = {len(text) for text in x.reshape(-1)}
    dtype = TensorType(options.out_type).dtype
    if len(lengths) > 1 or any(n % dtype.itemsize for n in lengths):
        raise ModelError(f"expected texts of one length, a multiple of {dtype.itemsize}, got {sorted(lengths)}")
    stored = dtype.newbyteorder("<" if options.little_endian else ">")
    numbers = np.frombuffer(b"".join(x.reshape(-1)), stored).astype(dtype)
    return numbers.reshape(*x.shape, -1) if numbers.size else numbers.reshape(*x.shape, 0)


def _like(options: Any, inputs: list[TensorSpec]) -> list[Result]:
    require.types(inputs[0], (_STRING,))
    return [(_STRING, inputs[0].shape)]


def _of_splits(options: GramsOptions, inputs: list[TensorSpec]) -> list[Result]:
    data, splits = inputs
    require.types(data, (_STRING,))
    return [(_STRING, None), (splits.type, splits.shape)]


def _sparse(options: DelimiterOptions, inputs: list[TensorSpec]) -> list[Result]:
    require.rank(inputs[0], exactly=1)
    return [(_INT64, None), (_STRING, None), (_INT64, (2,))]


STRING_NGRAMS = operator("litecl.StringNGrams", GramsOptions, _ngrams, _of_splits)
REDUCE_JOIN = operator("litecl.ReduceJoin", ReduceOptions, _joined_along, lambda o, i: [(_STRING, None)])
SEGMENT_JOIN = operator(
    "litecl.UnsortedSegmentJoin", SeparatorOptions, _joined_by_segment, lambda o, i: [(_STRING, None)]
)
STRING_SPLIT_AT = operator("litecl.StringSplitAt", DelimiterOptions, _split, _sparse)
STRING_TO_BUCKET = operator("litecl.StringToBucket", BucketOptions, _bucket, lambda o, i: [(_INT64, i[0].shape)])
FINGERPRINT = operator(
    "litecl.Fingerprint", NoOptions, _fingerprint, lambda o, i: [(_UINT8, (i[0].static_shape[0], 8))]
)
ENCODE_BASE64 = operator("litecl.EncodeBase64", PadOptions, _each(_written), _like)
DECODE_BASE64 = operator("litecl.DecodeBase64", NoOptions, _each(_read), _like)
SHARDED_FILENAME = operator("litecl.ShardedFilename", NoOptions, _shard, _like)
SHARDED_FILESPEC = operator("litecl.ShardedFilespec", NoOptions, _shards, _like)
DECODE_RAW = operator("litecl.DecodeRaw", RawOptions, _raw, lambda o, i: [(TensorType(o.out_type), None)])
