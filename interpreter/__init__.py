"""What a TensorFlow Lite model is and what it means: the model graph, its file format and the CPU reference runtime."""

from litecl.interpreter.interpreter import Interpreter
from litecl.interpreter.loading import Delegate, load_delegate
from litecl.interpreter.registered import InterpreterWithCustomOps
from litecl.interpreter.resolver import OpResolverType
from litecl.interpreter.signature import SignatureRunner

__all__ = ["Delegate", "Interpreter", "InterpreterWithCustomOps", "OpResolverType", "SignatureRunner", "load_delegate"]
