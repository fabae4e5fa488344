"""Caches stored constants, since a search stores them again and again."""

from collections.abc import Sequence
from dataclasses import replace

from litecl.converter.quantization.formats import Format, stored
from litecl.converter.quantization.gptq import Moments
from litecl.interpreter.graph import Array, TensorSpec

_MOST_BYTES = 1 << 30


class Kept:
    """Stores constants, and caches the results for given arrays, up to a number of bytes.

    If such an array is stored with moments, they must be the same each time.
    """

    def __init__(self, arrays: Sequence[Array]) -> None:
        self._arrays = {id(array): array for array in arrays}
        self._constants: dict[tuple[int, Format, bool], TensorSpec] = {}
        self._bytes = 0

    def __call__(self, spec: TensorSpec, form: Format, moments: Moments | None) -> TensorSpec:
        """Return a constant in a format."""
        key = (id(spec.data), form, moments is not None)
        constant = self._constants.get(key)
        if constant is None:
            constant = stored(spec, form, moments)
            assert constant.data is not None
            if id(spec.data) in self._arrays and self._bytes + constant.data.nbytes <= _MOST_BYTES:
                self._constants[key] = constant
                self._bytes += constant.data.nbytes
        return replace(spec, type=constant.type, data=constant.data, quantization=constant.quantization)
