"""What a TensorFlow Lite model is and what it means: the model graph, its file format and the CPU reference runtime."""

from litecl.interpreter.interpreter import Interpreter

__all__ = ["Interpreter"]
