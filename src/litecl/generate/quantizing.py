"""Quantizes the models of a bundle."""

from collections.abc import Callable
from typing import Any

from litecl.converter import Converter
from litecl.converter.report import ConversionReport
from litecl.generate import litertlm
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ConversionError

_MAIN = "prefill_decode"
_MODELS = (_MAIN, "embedder", "per_layer_embedder")  # that compute in float on this runtime


@dataclass(frozen=True)
class QuantizedSection:
    """A model of a bundle that was quantized. type: such as "embedder". float_bytes, size_bytes: before and after."""

    type: str
    float_bytes: int
    size_bytes: int
    report: ConversionReport


def quantized_bundle(
    content: memoryview, how: Any, progress: Callable[[int, int], None], calibrates: bool
) -> tuple[bytes, list[QuantizedSection]]:
    """Return a ``.litertlm`` bundle whose language model, and its embedders, are quantized; other sections stay.

    how: of ``Converter.from_tflite``. calibrates: whether it measures activations on samples, which are the language
    model's: embedders then stay as they are. Raises ModelError for a damaged bundle, ConversionError.
    """
    sections = litertlm.sections(content)
    if any(each.kind == "weights" for each in sections):
        raise ConversionError("the bundle has its weights in sections of their own, which can't be quantized yet")
    contents, quantized = dict[int, bytes](), list[QuantizedSection]()
    for index, section in enumerate(sections):
        type_ = section.type or _MAIN
        if section.kind != "model" or type_ not in _MODELS or (calibrates and type_ != _MAIN):
            continue
        converter = Converter.from_tflite(bytes(section.content), how, roll_up=False)
        try:
            contents[index] = converter.convert(progress=progress)
        except ConversionError as error:
            error.add_note(f"in the section {type_!r} of the bundle")
            raise
        sizes = len(section.content), len(contents[index])
        quantized.append(QuantizedSection(type_, *sizes, converter.report))
    if _MAIN not in {each.type for each in quantized}:
        raise ConversionError(f"expected a bundle with the model {_MAIN!r}, got {[each.type for each in sections]}")
    return litertlm.replaced(content, contents), quantized
