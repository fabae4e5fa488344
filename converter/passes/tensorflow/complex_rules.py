"""Rules for complex operators in terms of real and imaginary parts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from litecl.converter.graph import Node, Value
from litecl.converter.own_ops import UPDATE_SLICE
from litecl.converter.passes.tensorflow.complex_parts import Parts, Rule, Splitter
from litecl.converter.passes.tensorflow.fourier import TRANSFORMS
from litecl.converter.records import Dims
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.schema import TensorType

_FLOAT, _COMPLEX = TensorType.FLOAT32, TensorType.COMPLEX64
# Operators that only move or add up elements, so they apply to each part.
_LINEAR = (
    *("AddN", "BatchToSpaceND", "BroadcastTo", "ConcatV2", "Cumsum", "DynamicStitch", "EnsureShape", "ExpandDims"),
    *("Fill", "Gather", "GatherNd", "GatherV2", "Identity", "MatrixBandPart", "MatrixDiag", "MatrixDiagPart"),
    *("MatrixDiagPartV3", "MatrixDiagV3", "Mean", "MirrorPad", "Neg", "Pack", "Pad", "PadV2", "PreventGradient"),
    *("Reshape", "ReverseSequence", "ReverseV2", "Roll", "ScatterNd", "SegmentSum", "Select", "SelectV2", "Slice"),
    *("Snapshot", "SpaceToBatchND", "Split", "SplitV", "Squeeze", "StopGradient", "StridedSlice", "Sum"),
    *("TensorScatterAdd", "TensorScatterUpdate", "Tile", "Transpose", "Unpack", "UnsortedSegmentSum", "ZerosLike"),
)
_ABOUT_SHAPE = ("Rank", "Shape", "ShapeN", "Size")
_SUMS = {"Add": "AddV2", "AddV2": "AddV2", "Sub": "Sub"}
_PRODUCTS = ("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", "MatMul", "Mul")
_LARGEST_POWER = 9
_ADJOINTS = ("adj_x", "adj_y")


class _Arithmetic:
    """Arithmetic on real tensors in the name of a node; results have the node's output shape by default."""

    def __init__(self, splitter: Splitter, node: Node) -> None:
        self._splitter = splitter
        self._node = node
        self.operands = [splitter.of(value) for value in node.inputs if value is not None]

    def __call__(self, op: str, *inputs: Value, like: Value | None = None, **attrs: Any) -> Value:
        shape = self._node.output.shape if like is None else like.shape
        return self._splitter.emit(op, inputs, shape, self._node.name, **attrs)

    def imaginary(self, parts: Parts) -> Value:
        return self._splitter.imaginary(parts)

    def product(self, x: Parts, y: Parts, op: str = "Mul", **attrs: Any) -> Parts:
        """Return a bilinear operator's result; either operand may be real."""

        def of(a: Value | None, b: Value | None) -> Value | None:
            return None if a is None or b is None else self(op, a, b, **attrs)

        re, crossed = self(op, x.re, y.re, **attrs), of(x.im, y.im)
        left, right = of(x.re, y.im), of(x.im, y.re)
        both = None if left is None or right is None else self("AddV2", left, right)
        return Parts(re if crossed is None else self("Sub", re, crossed), both or left or right)

    def squared(self, x: Parts, like: Value | None = None) -> Value:
        """Return the squared magnitudes."""
        like = x.re if like is None else like
        re = self("Mul", x.re, x.re, like=like)
        return re if x.im is None else self("AddV2", re, self("Mul", x.im, x.im, like=like), like=like)

    def conjugate(self, x: Parts) -> Parts:
        return x if x.im is None else replace(x, im=self("Neg", x.im, like=x.im))

    def each(self, op: str, x: Parts, other: Value) -> Parts:
        """Return an operator applied to each part and a real operand."""
        return Parts(self(op, x.re, other), None if x.im is None else self(op, x.im, other))


def _linear(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
    operands = [value for value in node.inputs if value is not None]
    parts = {value: splitter.of(value) for value in operands if value.type == _COMPLEX}
    attrs = {name: _real(option) for name, option in node.attrs.items()}

    def apply(choose: Callable[[Parts], Value]) -> list[Value]:
        inputs = [choose(parts[value]) if value in parts else value for value in operands]
        outputs = [Value(_FLOAT, value.shape, value.name) for value in node.outputs]
        return list(splitter.function.add(Node(node.op, inputs, outputs, attrs, node.name)).outputs)

    re = apply(lambda part: part.re)
    if all(part.im is None for part in parts.values()):
        return [Parts(value) for value in re]
    return [Parts(*pair) for pair in zip(re, apply(splitter.imaginary), strict=True)]


def _real(option: Any) -> Any:
    return _FLOAT if option == _COMPLEX else option


def _about_shape(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
    node.rewire([splitter.of(value).re for value in node.inputs if value is not None])
    return node.outputs


def _sum(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
    a = _Arithmetic(splitter, node)
    x, y = a.operands
    op = _SUMS[node.op_name]
    if x.im is None and y.im is None:
        return [Parts(a(op, x.re, y.re))]
    return [Parts(a(op, x.re, y.re), a(op, a.imaginary(x), a.imaginary(y)))]


def _product(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
    a = _Arithmetic(splitter, node)
    attrs = {name: _real(option) for name, option in node.attrs.items()}
    x, y = (
        a.conjugate(operand) if attrs.get(adjoint) else operand
        for operand, adjoint in zip(a.operands, _ADJOINTS, strict=True)
    )
    return [a.product(x, y, "Mul" if node.op == "Mul" else node.op_name, **attrs)]


def _quotient(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
    a = _Arithmetic(splitter, node)
    x, y = a.operands
    op = "DivNoNan" if node.op == "DivNoNan" else "RealDiv"
    if y.im is None:
        return [a.each(op, x, y.re)]
    return [a.each(op, a.product(x, a.conjugate(y)), a.squared(y))]


def _reciprocal(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
    a = _Arithmetic(splitter, node)
    (x,) = a.operands
    return [a.each("RealDiv", a.conjugate(x), a.squared(x))]


def _power(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
    """Return repeated products, for a small whole exponent."""
    a = _Arithmetic(splitter, node)
    x, exponent = a.operands[0], node.input(1).data
    count = 0 if exponent is None or exponent.size != 1 else complex(exponent.reshape(()))
    if count not in range(1, _LARGEST_POWER):
        raise ConversionError(f"{node}: its exponent is not a number from 1 to {_LARGEST_POWER - 1}; use exp and log")
    result = x
    for _ in range(int(count.real) - 1):
        result = a.product(result, x)
    return [result]


def _square(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
    a = _Arithmetic(splitter, node)
    return [a.product(a.operands[0], a.operands[0])]


def _complex(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
    re, im = node.input(0), node.input(1)
    if im.data is not None and not im.data.any() and re.shape == node.output.shape:
        return [Parts(re)]
    # Either may be broadcast to the other.
    a = _Arithmetic(splitter, node)
    return [
        Parts(*(x if x.shape == y.shape else a("AddV2", x, a("ZerosLike", y, like=y)) for x, y in ((re, im), (im, re))))
    ]


def _cast(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
    x, to = splitter.of(node.input(0)), node.output.type
    if to == _COMPLEX:
        return [x if x.re.type == _FLOAT else Parts(_cast_to(splitter, node, x.re, _FLOAT))]
    return [x.re if to == _FLOAT else _cast_to(splitter, node, x.re, to)]


def _cast_to(splitter: Splitter, node: Node, x: Value, to: TensorType) -> Value:
    attrs = {"SrcT": x.type, "DstT": to, "Truncate": False}
    return splitter.function.emit("Cast", [x], (to, node.output.shape), node.name, **attrs)


def _magnitude(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
    a = _Arithmetic(splitter, node)
    (x,) = a.operands
    return [a("Abs", x.re) if x.im is None else a("Sqrt", a.squared(x))]


def _angle(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
    a = _Arithmetic(splitter, node)
    return [a("Atan2", a.imaginary(a.operands[0]), a.operands[0].re)]


def _exponential(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
    a = _Arithmetic(splitter, node)
    (x,) = a.operands
    size = a("Exp", x.re)
    return [Parts(size) if x.im is None else Parts(a("Mul", size, a("Cos", x.im)), a("Mul", size, a("Sin", x.im)))]


def _logarithm(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
    a = _Arithmetic(splitter, node)
    (x,) = a.operands
    half = a("Mul", a("Log", a.squared(x)), splitter.number(0.5))
    return [Parts(half, a("Atan2", a.imaginary(x), x.re))]


def _root(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
    """Return sqrt((|x| + re) / 2) and, with the sign of im, sqrt((|x| - re) / 2)."""
    a = _Arithmetic(splitter, node)
    (x,) = a.operands
    size, half, zero = a("Sqrt", a.squared(x)), splitter.number(0.5), splitter.number(0.0)
    re, im = (a("Sqrt", a("Maximum", a("Mul", a(op, size, x.re), half), zero)) for op in ("AddV2", "Sub"))
    if x.im is None:
        return [Parts(re, im)]
    negative = splitter.function.emit("Less", [x.im, zero], (TensorType.BOOL, x.im.shape), node.name)
    return [Parts(re, a("SelectV2", negative, a("Neg", im), im))]


def _part(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
    x = splitter.of(node.input(0))
    return [x.re if node.op == "Real" else splitter.imaginary(x)]


def _conjugate(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
    a = _Arithmetic(splitter, node)
    return [a.conjugate(a.operands[0])]


def _turned(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
    node.op = "Transpose"
    (parts,) = _linear(splitter, node)
    assert isinstance(parts, Parts)
    return [_Arithmetic(splitter, node).conjugate(parts)]


def _ones(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
    return [Parts(_Arithmetic(splitter, node)("OnesLike", splitter.of(node.input(0)).re))]


def _compare(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
    a = _Arithmetic(splitter, node)
    x, y = a.operands
    like: tuple[TensorType, Dims | None] = (TensorType.BOOL, node.output.shape)
    attrs = {"incompatible_shape_error": True}
    pairs = ((x.re, y.re), (a.imaginary(x), a.imaginary(y)))
    comparisons = [splitter.function.emit(node.op_name, pair, like, node.name, **attrs) for pair in pairs]
    return [splitter.function.emit("LogicalAnd" if node.op == "Equal" else "LogicalOr", comparisons, like, node.name)]


RULES: Mapping[str, Rule] = {
    **dict.fromkeys((*_LINEAR, UPDATE_SLICE.name), _linear),
    **dict.fromkeys(_ABOUT_SHAPE, _about_shape),
    **dict.fromkeys(_SUMS, _sum),
    **dict.fromkeys(_PRODUCTS, _product),
    **dict.fromkeys(("RealDiv", "Div", "DivNoNan"), _quotient),
    **dict.fromkeys(("Real", "Imag"), _part),
    **dict.fromkeys(("Equal", "NotEqual"), _compare),
    **dict.fromkeys(("Reciprocal", "Inv"), _reciprocal),
    "Angle": _angle,
    "Cast": _cast,
    "Complex": _complex,
    "ComplexAbs": _magnitude,
    "Conj": _conjugate,
    "ConjugateTranspose": _turned,
    "Exp": _exponential,
    "Log": _logarithm,
    "OnesLike": _ones,
    "Pow": _power,
    "Sqrt": _root,
    "Square": _square,
    **TRANSFORMS,
}
