"""Lowers TensorFlow operators to litecl's own, whose options are named like the attributes."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.interpreter.op import Op
from litecl.interpreter.ops import (
    crossings,
    ctc_beam,
    examples,
    factorizations,
    random_counts,
    special,
    stateless_random,
    text_parts,
    unicode,
    waves,
)
from litecl.interpreter.schema import TensorType


def own(op: Op, count: int | None = None) -> Lowering:
    """Return the lowering to an operator with the same operands, or the first ``count``."""

    def lower(b: Builder) -> Sequence[Value]:
        given = {f.name: _plain(b.node.attrs[f.name]) for f in fields(op.options) if f.name in b.node.attrs}
        return b.ops(op, b.node.inputs[:count], op.options(**given), b.like())

    return lower


def _plain(value: Any) -> Any:
    """Return an attribute as options store it: enumerations as numbers."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _parse_example(b: Builder) -> Sequence[Value]:
    attrs = b.node.attrs
    shapes = attrs["dense_shapes"] or ()
    if any(dims is None for dims in shapes):
        raise b.error("the ranks of its dense features must be known")
    types = {name: _plain(attrs[name] or ()) for name in ("sparse_types", "ragged_value_types", "ragged_split_types")}
    options = examples.ExampleOptions(
        dense_ranks=tuple(map(len, shapes)),
        dense_dims=tuple(-1 if d is None else d for dims in shapes for d in dims),
        **types,
    )
    return b.ops(examples.PARSE_EXAMPLE, b.node.inputs, options, b.like())


def _key(b: Builder) -> Sequence[Value]:
    """Return key and counter for a seed, and Philox' number."""
    parts = b.ops(stateless_random.STATELESS_KEY, b.node.inputs, None, b.like()[:2])
    return [*parts, b.const(1, "int32")] if len(b.node.outputs) == 3 else parts


DRAWS: Mapping[str, Op] = {
    "StatelessRandomUniformV2": stateless_random.STATELESS_UNIFORM,
    "StatelessRandomNormalV2": stateless_random.STATELESS_NORMAL,
    "StatelessTruncatedNormalV2": stateless_random.STATELESS_TRUNCATED_NORMAL,
    "StatelessRandomUniformIntV2": stateless_random.STATELESS_INTEGERS,
    "StatelessRandomUniformFullIntV2": stateless_random.STATELESS_INTEGERS,
}


def _draw(op: Op) -> Lowering:
    def lower(b: Builder) -> Value:
        options = stateless_random.DrawOptions(int(b.node.output.type))
        return b.op(op, [b.int32(b.node.input(0)), *b.node.inputs[1:]], options)

    return lower


def _multinomial(b: Builder) -> Value:
    logits, _, seed = b.node.inputs
    key, counter = b.ops(
        stateless_random.STATELESS_KEY, [seed], None, [b.value(TensorType.UINT64, (n,)) for n in (1, 2)]
    )
    options = stateless_random.DrawOptions(int(b.node.output.type))
    return b.op(stateless_random.STATELESS_MULTINOMIAL, [logits, b.int32(b.node.input(1)), key, counter], options)


_BESSEL = ("I0", "I1", "I0e", "I1e", "J0", "J1", "K0", "K1", "K0e", "K1e")
OPERATORS: Mapping[str, Op] = {
    "CTCBeamSearchDecoder": ctc_beam.CTC_BEAM_SEARCH_DECODER,
    "UnicodeDecode": unicode.UNICODE_DECODE,
    "UnicodeDecodeWithOffsets": unicode.UNICODE_DECODE_WITH_OFFSETS,
    "UnicodeEncode": unicode.UNICODE_ENCODE,
    "UnicodeTranscode": unicode.UNICODE_TRANSCODE,
    "StringNGrams": text_parts.STRING_NGRAMS,
    "ReduceJoin": text_parts.REDUCE_JOIN,
    "UnsortedSegmentJoin": text_parts.SEGMENT_JOIN,
    "StringSplit": text_parts.STRING_SPLIT_AT,
    "StringToHashBucket": text_parts.STRING_TO_BUCKET,
    "Fingerprint": text_parts.FINGERPRINT,
    "EncodeBase64": text_parts.ENCODE_BASE64,
    "DecodeBase64": text_parts.DECODE_BASE64,
    "ShardedFilename": text_parts.SHARDED_FILENAME,
    "ShardedFilespec": text_parts.SHARDED_FILESPEC,
    "DecodeRaw": text_parts.DECODE_RAW,
    "DecodeWav": waves.DECODE_WAV,
    "EncodeWav": waves.ENCODE_WAV,
    "SparseCross": crossings.SPARSE_CROSS,
    "SparseCrossV2": crossings.SPARSE_CROSS_TEXTS,
    "SparseCrossHashed": crossings.SPARSE_CROSS_HASHED,
    "RandomGamma": random_counts.RANDOM_GAMMA,
    "RandomPoissonV2": random_counts.RANDOM_POISSON,
    "Svd": factorizations.SVD,
    "Qr": factorizations.QR,
    "Lu": factorizations.LU,
    "SelfAdjointEigV2": factorizations.SELF_ADJOINT_EIG,
    "MatrixSquareRoot": factorizations.MATRIX_SQUARE_ROOT,
    "MatrixSolveLs": factorizations.MATRIX_SOLVE_LS,
    "TridiagonalSolve": factorizations.TRIDIAGONAL_SOLVE,
    "Igamma": special.IGAMMA,
    "Igammac": special.IGAMMAC,
    "Betainc": special.BETAINC,
    "Zeta": special.ZETA,
    "Polygamma": special.POLYGAMMA,
    **{f"Bessel{name}": getattr(special, f"BESSEL_{name.upper()}") for name in _BESSEL},
}

LOWERINGS: dict[str, Lowering] = {
    **{name: own(op) for name, op in OPERATORS.items()},
    **{name: _draw(op) for name, op in DRAWS.items()},
    "StatelessMultinomial": _multinomial,
    "ParseExampleV2": _parse_example,
    "StatelessRandomGetKeyCounter": _key,
    "StatelessRandomGetKeyCounterAlg": _key,
    "StatelessRandomGetAlg": lambda b: b.const(1, "int32"),
}
