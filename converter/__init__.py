"""Convert TensorFlow and PyTorch models to TensorFlow Lite.

``Quantization`` declares how to quantize; ``Fusion``, ``Composite``, ``Builder`` and ``Value`` serve your own fusions.
"""

from litecl.converter.converter import Converter
from litecl.converter.fusions import Composite, Fusion
from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder
from litecl.converter.quantization.options import Quantization
from litecl.converter.report import ConversionReport, ConversionWarning

__all__ = [
    "Builder",
    "Composite",
    "ConversionReport",
    "ConversionWarning",
    "Converter",
    "Fusion",
    "Quantization",
    "Value",
]
