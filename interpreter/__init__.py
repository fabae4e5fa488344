"""TensorFlow Lite models and their meaning: the model graph, its file format and the CPU reference runtime."""

from litecl.interpreter.interpreter import Interpreter

__all__ = ["Interpreter"]
