"""Facts about TensorFlow's operators that passes rely on, in one table.

Passes see operators by name and work without TensorFlow. For operators without a row, ``importer.effects`` reads from
TensorFlow's definitions whether they have effects, and stores that in their nodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Effects(Enum):
    """Whether results depend on more than the operands, and whether the operator has side effects."""

    PURE = "equal operands give equal results, so it may be computed now, once, or not at all"
    READS = "results depend on a variable or a random seed: not computed now, but left out if nothing reads them"
    WRITES = "it writes a variable or acts outside of the model: kept, in order, or refused"


@dataclass(frozen=True)
class Traits:
    """Facts about one operator.

    like: the operand whose shape the first result has.
    broadcasts: whether the result's shape is that of all operands, broadcast.
    keeps_batch: whether result and operand 0 share dimension 0.
    commutative: whether operands may be swapped.
    """

    effects: Effects = Effects.PURE
    like: int | None = None
    broadcasts: bool = False
    keeps_batch: bool = False
    commutative: bool = False


_UNARY = (
    "Abs",
    "Cast",
    "Cos",
    "Elu",
    "Erf",
    "Erfc",
    "Exp",
    "Floor",
    "Identity",
    "LeakyRelu",
    "Log",
    "LogicalNot",
    "LogSoftmax",
    "Neg",
    "OnesLike",
    "Relu",
    "Relu6",
    "Round",
    "Rsqrt",
    "Selu",
    "Sigmoid",
    "Sin",
    "Softmax",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Square",
    "Tanh",
    "ZerosLike",
)
_LIKE_FIRST = ("AddN", "BiasAdd", "ReverseV2")
_BROADCAST = (
    "Equal",
    "Greater",
    "GreaterEqual",
    "Less",
    "LessEqual",
    "LogicalAnd",
    "LogicalOr",
    "NotEqual",
    "Pow",
    "RealDiv",
    "SelectV2",
    "SquaredDifference",
    "Sub",
)
_COMMUTATIVE = ("Add", "AddV2", "Maximum", "Minimum", "Mul")
_KEEPS_BATCH = (
    "AvgPool",
    "Conv2D",
    "Conv3D",
    "DepthwiseConv2dNative",
    "FusedBatchNormV3",
    "MatMul",
    "MaxPool",
    "ResizeBilinear",
    "ResizeNearestNeighbor",
)
_READERS = (
    "IsVariableInitialized",
    "LookupTableFindV2",
    "LookupTableSizeV2",
    "ReadVariableOp",
    "ReadVariableXlaSplitND",
    "ResourceGather",
    "ResourceGatherNd",
    "Restore",
    "RestoreV2",
    "StatelessRandomGetAlg",
    "VarIsInitializedOp",
    "VariableShape",
)
_WRITERS = ("Assign", "AssignAdd", "AssignSub", "AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableOp")
# These check, promise, print or release something that a .tflite file can't express; no result depends on it.
_LEFT_OUT = ("Assert", "CheckNumerics", "CheckNumericsV2", "GuaranteeConst", "Print", "PrintV2", "TensorArrayCloseV3")
# These pass on a reference to a variable without writing.
_REFERENCES = ("RefEnter", "RefExit", "RefIdentity", "RefMerge", "RefNextIteration", "RefSelect", "RefSwitch")

# These return their operand, or zeros, in new memory, so TensorFlow calls them stateful.
_COPIES = ("DeepCopy", "Empty")

TRAITS: Mapping[str, Traits] = {
    **dict.fromkeys((*_UNARY, *_LIKE_FIRST), Traits(like=0)),
    "Select": Traits(like=1),
    **dict.fromkeys(_BROADCAST, Traits(broadcasts=True)),
    **dict.fromkeys(_COMMUTATIVE, Traits(broadcasts=True, commutative=True)),
    **dict.fromkeys(_KEEPS_BATCH, Traits(keeps_batch=True)),
    **dict.fromkeys((*_READERS, *_LEFT_OUT, *_REFERENCES, *_COPIES), Traits(Effects.READS)),
    **dict.fromkeys(_WRITERS, Traits(Effects.WRITES)),
}

_UNKNOWN = Traits()


def traits_of(op: object) -> Traits:
    """Return the facts about an operator; the defaults if it isn't TensorFlow's or has no row."""
    return TRAITS.get(op, _UNKNOWN) if isinstance(op, str) else _UNKNOWN
