"""TensorFlow Lite models: the model graph, its file format and the CPU reference runtime."""

from litecl.interpreter.details import OpDetails, TensorDetails
from litecl.interpreter.device_tensor import DeviceTensor, DeviceTensors
from litecl.interpreter.interpreter import Interpreter
from litecl.interpreter.loading import Delegate, load_delegate
from litecl.interpreter.ops.checkpoint import checkpoint_ops
from litecl.interpreter.registered import InterpreterWithCustomOps
from litecl.interpreter.resolver import OpResolverType
from litecl.interpreter.signature import SignatureRunner

__all__ = [
    "Delegate",
    "DeviceTensor",
    "DeviceTensors",
    "Interpreter",
    "InterpreterWithCustomOps",
    "OpDetails",
    "OpResolverType",
    "SignatureRunner",
    "TensorDetails",
    "checkpoint_ops",
    "load_delegate",
]
