"""Cross-entropies of logits, and their gradients."""

from collections.abc import Sequence

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.lower.expression import Expression
from litecl.interpreter.ops.log_softmax import LOG_SOFTMAX
from litecl.interpreter.ops.one_hot import ONE_HOT, OneHotOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions


def _cross_entropy(b: Builder, logits: Expression, labels: Expression) -> Sequence[Value]:
    """Return -sum(labels * log(softmax(logits))) per row, and its gradient with respect to the logits."""
    loss = -(labels * logits.unary(LOG_SOFTMAX)).sum([-1])
    gradient = logits.unary(SOFTMAX, SoftmaxOptions(1.0)) - labels
    return [loss.value, gradient.value]


def _of_labels(b: Builder) -> Sequence[Value]:
    return _cross_entropy(b, Expression(b, b.node.input(0)), Expression(b, b.node.input(1)))


def _of_classes(b: Builder) -> Sequence[Value]:
    logits = Expression(b, b.node.input(0))
    classes = b.shape(logits.value)[-1]
    if classes is None:
        raise b.error("the number of its classes must be known; give input_shapes")
    operands = [b.int32(b.node.input(1)), b.const(classes, np.int32), b.scalar(1), b.scalar(0)]
    labels = Expression(b, b.op(ONE_HOT, operands, OneHotOptions(-1), type=logits.type, shape=logits.value.shape))
    return _cross_entropy(b, logits, labels)


LOWERINGS: dict[str, Lowering] = {
    "SoftmaxCrossEntropyWithLogits": _of_labels,
    "SparseSoftmaxCrossEntropyWithLogits": _of_classes,
}
