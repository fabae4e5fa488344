"""Composites that a runtime knows by name: custom operators with attributes as FlexBuffers.

``tfl_fusable_op`` marks any function as one. ``TFLite_Detection_PostProcess`` and ``addons:MaxUnpooling2D`` have their
own contracts (tensorflow/compiler/mlir/lite/transforms/prepare_composite_functions_tf.cc).
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from flatbuffers import flexbuffers

from litecl.converter.composites import Composite
from litecl.converter.fusions.fusion import Fusion, expect
from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.options import CustomOptions, unknown_op
from litecl.interpreter.schema import Padding

_FUSABLE = "tfl_fusable_op"


def custom_op(name: str, outputs: Sequence[Value], *, custom: bool = True) -> Op:
    """Return the record of an operator that litecl knows only by name; its results are as declared."""
    known = [TensorSpec(value.type, value.static_shape) for value in outputs]

    def infer(options: object, inputs: Specs) -> list[TensorSpec]:
        return known

    def run(options: object, inputs: Inputs) -> list[Any]:
        return unknown_op(name, custom).run(options, inputs)

    return Op(name, CustomOptions, infer, run, versions=range(1, 2**31), pure=False, custom=custom)


def _custom(b: Builder, composite: Composite, name: str, data: bytes) -> Sequence[Value]:
    return b.ops(custom_op(name, composite.outputs), composite.inputs, CustomOptions(data), b.like())


def _fusable(name: str, attrs: Mapping[str, Any]) -> bool:
    return attrs.get(_FUSABLE) is True


def _check_fusable(composite: Composite) -> str | None:
    for name, value in composite.attrs.items():
        if not isinstance(value, bool | int | float | str):
            return f"its attribute {name!r} is {value!r}, expected a number, a truth or a text"
    return None


def _rewrite_fusable(b: Builder, composite: Composite) -> Sequence[Value]:
    attrs = {name: composite.attrs[name] for name in sorted(composite.attrs) if name != _FUSABLE}
    return _custom(b, composite, composite.name, bytes(flexbuffers.Dumps(attrs)))


_DETECTION: Mapping[str, type] = {
    "max_detections": int,
    "max_classes_per_detection": int,
    "num_classes": int,
    "nms_score_threshold": float,
    "nms_iou_threshold": float,
    "y_scale": float,
    "x_scale": float,
    "h_scale": float,
    "w_scale": float,
    "use_regular_nms": bool,
}


def _check_detection(composite: Composite) -> str | None:
    missing = [name for name, kind in _DETECTION.items() if not isinstance(composite.attrs.get(name), kind)]
    return f"its attribute {missing[0]!r} is missing" if missing else expect(composite, range(3, 4), range(4, 5))


def _rewrite_detection(b: Builder, composite: Composite) -> Sequence[Value]:
    attrs = {name: composite.attrs[name] for name in sorted(composite.attrs) if name != _FUSABLE}
    return _custom(b, composite, composite.name, bytes(flexbuffers.Dumps(attrs)))


def _check_unpooling(composite: Composite) -> str | None:
    wrong = expect(composite, range(2, 3), range(1, 2))
    if wrong is not None:
        return wrong
    for name in ("pool_size", "strides"):
        if len(composite.attrs.get(name) or ()) != 2:
            return f"expected two numbers as {name!r}, got {composite.attrs.get(name)!r}"
    padding = composite.attrs.get("padding")
    return None if padding in ("SAME", "VALID") else f"expected the padding SAME or VALID, got {padding!r}"


def _rewrite_unpooling(b: Builder, composite: Composite) -> Sequence[Value]:
    """Pack TfLitePoolParams as options: padding, strides and filter (width first), activation, four paddings."""
    height, width = composite.attrs["pool_size"]
    down, right = composite.attrs["strides"]
    padding = 1 + Padding[composite.attrs["padding"]]
    data = struct.pack("<10i", padding, right, down, width, height, *[0] * 5)
    return _custom(b, composite, "MaxUnpooling2D", data)


FUSABLE = Fusion(_FUSABLE, _rewrite_fusable, _check_fusable, _fusable)
DETECTION = Fusion("TFLite_Detection_PostProcess", _rewrite_detection, _check_detection)
MAX_UNPOOLING = Fusion("addons:MaxUnpooling2D", _rewrite_unpooling, _check_unpooling)
