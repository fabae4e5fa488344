"""Lowers string operators to litecl's own."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.interpreter.errors import ModelError
from litecl.interpreter.kit import regular
from litecl.interpreter.op import Op
from litecl.interpreter.ops import strings


def _own(op: Op, options: Callable[..., Any], *names: str) -> Lowering:
    """Return the lowering to an operator whose options are named like the attributes."""

    def lower(b: Builder) -> Sequence[Value]:
        record = options(**{name: b.node.attrs[name] for name in names})
        return b.ops(op, b.node.inputs, record, b.like())

    return lower


def _pattern(b: Builder, text: str) -> str:
    try:
        regular.pattern(text)
    except ModelError as error:
        raise b.error(str(error)) from error
    return text


def _static_replace(b: Builder) -> Value:
    attrs = b.node.attrs
    pattern = _pattern(b, attrs["pattern"])
    options = strings.ReplaceOptions(pattern, attrs["rewrite"], bool(attrs["replace_global"]))
    return b.op(strings.REGEX_REPLACE, b.node.inputs, options)


def _replace(b: Builder) -> Value:
    pattern, rewrite = (b.known(i, "pattern").item().decode("utf-8", "surrogateescape") for i in (1, 2))
    options = strings.ReplaceOptions(_pattern(b, pattern), rewrite, bool(b.node.attrs["replace_global"]))
    return b.op(strings.REGEX_REPLACE, b.node.inputs[:1], options)


def _static_match(b: Builder) -> Value:
    options = strings.MatchOptions(_pattern(b, b.node.attrs["pattern"]))
    return b.op(strings.REGEX_FULL_MATCH, b.node.inputs, options)


def _match(b: Builder) -> Value:
    pattern = b.known(1, "pattern").item().decode("utf-8", "surrogateescape")
    return b.op(strings.REGEX_FULL_MATCH, b.node.inputs[:1], strings.MatchOptions(_pattern(b, pattern)))


def _hash(b: Builder) -> Value:
    key = tuple(int(part) for part in b.node.attrs.get("key", ()))
    options = strings.HashOptions(int(b.node.attrs["num_buckets"]), key)
    return b.op(strings.STRING_TO_HASH_BUCKET, b.node.inputs, options)


def _number(b: Builder) -> Value:
    return b.op(strings.STRING_TO_NUMBER, b.node.inputs, strings.NumberOptions(int(b.node.output.type)))


_OPTIONS: Mapping[str, Lowering] = {
    "StringLower": _own(strings.STRING_LOWER, strings.CaseOptions, "encoding"),
    "StringUpper": _own(strings.STRING_UPPER, strings.CaseOptions, "encoding"),
    "StringStrip": _own(strings.STRING_STRIP, strings.STRING_STRIP.options),
    "StringLength": _own(strings.STRING_LENGTH, strings.UnitOptions, "unit"),
    "StringJoin": _own(strings.STRING_JOIN, strings.JoinOptions, "separator"),
    "StringSplitV2": _own(strings.STRING_SPLIT, strings.SplitOptions, "maxsplit"),
    "Substr": _own(strings.SUBSTR, strings.UnitOptions, "unit"),
    "AsString": _own(
        strings.AS_STRING, strings.AsStringOptions, "precision", "scientific", "shortest", "width", "fill"
    ),
}

LOWERINGS: dict[str, Lowering] = {
    **_OPTIONS,
    "StaticRegexReplace": _static_replace,
    "RegexReplace": _replace,
    "StaticRegexFullMatch": _static_match,
    "RegexFullMatch": _match,
    "StringToHashBucketFast": _hash,
    "StringToHashBucketStrong": _hash,
    "StringToNumber": _number,
}
