"""Saves tensors to files and restores them, by custom operators, since TFLite has none.

``litecl.interpreter.checkpoint_ops`` runs them.
"""

from collections.abc import Sequence

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.records import Dims
from litecl.interpreter.ops.checkpoint import RESTORE, SAVE


def _save(b: Builder) -> Sequence[Value]:
    path, names, *tensors = b.node.inputs
    b.write(SAVE, [path, names, *tensors])
    return ()


def _save_whole(b: Builder) -> Sequence[Value]:
    _only_whole(b)
    path, names, _, *tensors = b.node.inputs
    b.write(SAVE, [path, names, *tensors])
    return ()


def _restore(b: Builder) -> Sequence[Value]:
    names = b.known(1, "tensors' names").reshape(-1)
    results = b.like()
    read = [i for i, value in enumerate(b.node.outputs) if b.is_read(value)]
    outputs = [b.value(results[i].type, _shape(b, b.node.outputs[i])) for i in read]
    for i, value in zip(read, b.ops(RESTORE, [b.node.input(0), b.const(names[read])], None, outputs), strict=True):
        results[i] = value
    return results


def _restore_whole(b: Builder) -> Sequence[Value]:
    _only_whole(b)
    return _restore(b)


def _only_whole(b: Builder) -> None:
    if any(b.known(2, "slices").reshape(-1)):
        raise b.error("it names parts of tensors; save and restore whole ones")


def _shape(b: Builder, value: Value) -> Dims:
    """Return the shape of a restored tensor, by default that of the variable it is assigned to."""
    if value.static_shape is not None:
        return value.static_shape
    for user in value.users:
        variable = user.input(0).variable if user.op == "AssignVariableOp" else None
        if variable is not None:
            return np.shape(variable.data)
    raise b.error("the shape of what it restores is not known; assign it to a variable, or use tf.ensure_shape")


LOWERINGS: dict[str, Lowering] = {
    "Save": _save,
    "SaveV2": _save_whole,
    "Restore": _restore,
    "RestoreV2": _restore_whole,
}
