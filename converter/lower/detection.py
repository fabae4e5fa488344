"""Non-maximum suppression: TFLite's operators return a fixed number of boxes and the number of valid ones."""

from collections.abc import Sequence

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.interpreter.ops.non_max_suppression import NON_MAX_SUPPRESSION_V4, NON_MAX_SUPPRESSION_V5
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.schema import TensorType

_MORE_THAN_ALL = 2.0  # no two boxes overlap by more than 1


def _operands(b: Builder) -> list[Value]:
    """Return boxes, scores, count, and thresholds, which old versions have as attributes or not at all."""
    given = [b.int32(b.node.input(i)) if i == 2 else b.node.input(i) for i in range(len(b.node.inputs))]
    if len(given) < 4:
        given.append(b.const(b.node.attrs["iou_threshold"], np.float32))
    if len(given) < 5:
        given.append(b.const(np.finfo(np.float32).min, np.float32))
    return given


def _suppressed(b: Builder) -> Sequence[Value]:
    """Return the indices, and their number if the version has it."""
    operands = _operands(b)
    wanted = (None if operands[2].data is None else int(operands[2].data),)
    indices, count = b.ops(
        NON_MAX_SUPPRESSION_V4,
        operands,
        None,
        [b.value(TensorType.INT32, wanted), b.value(TensorType.INT32, ())],
    )
    if len(b.node.outputs) == 1:
        return [_first(b, indices, count)]
    return [indices if b.node.attrs["pad_to_max_output_size"] else _first(b, indices, count), count]


def _softly_suppressed(b: Builder) -> Sequence[Value]:
    """Return indices, scores, and their number."""
    operands = _operands(b)
    if np.any(b.known(5, "sigma") > 0):
        # TensorFlow only lowers the scores of overlapping boxes; TFLite also drops those beyond the threshold.
        operands[3] = b.const(_MORE_THAN_ALL, np.float32)
    wanted = (None if operands[2].data is None else int(operands[2].data),)
    types = (TensorType.INT32, TensorType.FLOAT32, TensorType.INT32)
    values = [b.value(type_, shape) for type_, shape in zip(types, (wanted, wanted, ()), strict=True)]
    indices, scores, count = b.ops(NON_MAX_SUPPRESSION_V5, operands, None, values)
    if b.node.attrs["pad_to_max_output_size"]:
        return [indices, scores, count]
    return [_first(b, indices, count), _first(b, scores, count), count]


def _first(b: Builder, values: Value, count: Value) -> Value:
    """Return the first ``count`` values."""
    size = b.reshape(count, [1], (1,))
    return b.op(SLICE, [values, b.const([0], np.int32), size], type=values.type, shape=(None,))


LOWERINGS: dict[str, Lowering] = {
    **dict.fromkeys((f"NonMaxSuppression{version}" for version in ("", "V2", "V3", "V4")), _suppressed),
    "NonMaxSuppressionV5": _softly_suppressed,
}
