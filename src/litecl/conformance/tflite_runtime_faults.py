"""Known faults of tflite_runtime, LiteRT's predecessor: many of LiteRT's, and its own."""

from dataclasses import replace
from functools import partial

from litecl.conformance import litert_faults
from litecl.conformance.known import Known
from litecl.interpreter.graph import ABSENT, Model
from litecl.interpreter.schema import TensorType

PACKAGE = "tflite_runtime"
NEWEST = "2.14.0"
"""The only version tried, and the last one."""


def _of(model: Model, op: str, position: int, type_: TensorType, *, channels: bool = False) -> bool:
    """Return whether a node of an operator has an input of a type. channels: with more than one scale."""
    for graph in model.subgraphs:
        for node in graph.nodes:
            if node.op.name != op or node.inputs[position] == ABSENT:
                continue
            spec = graph.tensors[node.inputs[position]]
            scales = 0 if spec.quantization is None else spec.quantization.scale.size
            if spec.type == type_ and (scales > 1 or not channels):
                return True
    return False


_has_channels = partial(_of, op="FULLY_CONNECTED", position=1, type_=TensorType.INT8, channels=True)
_is_exp_of_bytes = partial(_of, op="EXP", position=0, type_=TensorType.INT8)
_own = partial(Known, runtimes=(PACKAGE,), first=NEWEST, last=NEWEST, package=PACKAGE)
_OWN = (
    _own("hybrid FULLY_CONNECTED with scales of channels gives the bias alone", shows=_has_channels),
    _own("CONV_2D with 4-bit weights gives NaN", checks=("CONV_2D/4 bits",)),
    _own("activations are rounded differently beside 4-bit weights", checks=("FULLY_CONNECTED/4 bits*",), most=0.01),
    _own("EXP of INT8 beyond 127 becomes -128", shows=_is_exp_of_bytes),
    _own("EQUAL of INT16 compares the stored integers, whatever their scales", checks=("EQUAL/INT16 *",)),
    _own("some results are not written", checks=("BATCH_MATMUL/many rows, both adjoint",)),
    _own("halves of a step are rounded differently", checks=("FAKE_QUANT/a half *",), most=0.005),
    _own("PRELU reads past a single slope", checks=("PRELU/one slope",)),
    _own("infinities and numbers beyond int32 are quantized to the lowest one", checks=("*/known: QUANTIZE",)),
    _own("REVERSE_V2 reverses along the first of several axes alone", checks=("REVERSE_V2/two axes",)),
    _own("boxes of equal scores come in another order", checks=("TFLite_Detection_PostProcess/uint8 regular",)),
    _own("TANH of NaN is 1 or -1", checks=("chain/NaN and infinities*",)),
)
_SHARED = tuple(
    replace(fault, runtimes=(PACKAGE,), first=NEWEST, last=NEWEST, package=PACKAGE)
    for fault in litert_faults.FAULTS
    if fault.earlier
)
FAULTS: tuple[Known, ...] = (*_OWN, *_SHARED)
