"""From TensorFlow to TensorFlow Lite."""

from litecl.converter.converter import Converter

__all__ = ["Converter"]
