"""The audio front end of TensorFlow Lite Micro: windows and spectra (``signal_bank``, ``signal_frames``: the rest).

All arithmetic is that of its fixed-point library, https://github.com/tensorflow/tflite-micro/tree/main/signal/src.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.arithmetic import fixed_math, kiss_fft
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.op import Inputs, NoOptions, Op, Run, Specs
from litecl.interpreter.schema import TensorType

_INT16, _UINT32, _UINT64 = TensorType.INT16, TensorType.UINT32, TensorType.UINT64
_WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class WindowOptions:
    shift: int = 0


@dataclass(frozen=True)
class RfftOptions:
    T: int = 0
    fft_length: int = 0


@dataclass(frozen=True)
class EnergyOptions:
    start_index: int = 0
    end_index: int = 0


def _infer_window(options: WindowOptions, inputs: Specs) -> list[TensorSpec]:
    x, window = require.typed(inputs, _INT16, _INT16)
    require.bits(shift=options.shift)
    if x.static_shape[-1:] != window.static_shape:
        raise ShapeError(f"a window of {list(window.static_shape)} for {list(x.static_shape)}")
    return [TensorSpec(_INT16, x.shape)]


def _run_window(options: WindowOptions, inputs: Inputs) -> list[Array]:
    x, window = require.arrays(inputs, 2)
    product = (x.astype(np.int64) * window) >> options.shift
    return [np.clip(product, -(1 << 15), (1 << 15) - 1).astype(np.int16)]


def _infer_scale(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.typed(inputs, _INT16)
    return [TensorSpec(_INT16, x.shape), TensorSpec(TensorType.INT32, ())]


def _run_scale(options: NoOptions, inputs: Inputs) -> list[Array]:
    """Shift to the left until the largest element uses all bits; the second output is the shift."""
    (x,) = require.arrays(inputs, 1)
    largest = np.minimum(np.abs(x.astype(np.int64)).max(initial=0), (1 << 15) - 1)
    shift = max(0, 15 - int(fixed_math.bit_length(np.asarray(largest))))
    return [(x.astype(np.int64) << shift).astype(np.int16), np.array(shift, np.int32)]


def _length(options: RfftOptions) -> int:
    length = options.fft_length
    if length < 4 or length & (length - 1) or length > 1 << 20:
        raise ShapeError(f"expected an fft_length that is a power of two, got {length}")
    return length


def _infer_rfft(options: RfftOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    type_ = require.types(x, (_INT16, TensorType.FLOAT32, TensorType.INT32))
    length = _length(options)
    if require.rank(x, at_least=1) and x.static_shape[-1] > length:
        raise ShapeError(f"{x.static_shape[-1]} elements for an fft_length of {length}")
    return [TensorSpec(type_, (*x.static_shape[:-1], length + 2))]


def _run_rfft(options: RfftOptions, inputs: Inputs) -> list[Array]:
    """Return real and imaginary parts in turns; integers are divided by the length."""
    (x,) = require.arrays(inputs, 1)
    length = options.fft_length
    rows = np.zeros((int(np.prod(x.shape[:-1], dtype=np.int64)), length), x.dtype)
    rows[:, : x.shape[-1]] = x.reshape(len(rows), x.shape[-1])
    result = np.zeros((len(rows), length // 2 + 1, 2), x.dtype)
    for i, row in enumerate(rows):
        limits.tick()
        if x.dtype.kind == "f":
            spectrum = np.fft.rfft(row)
            result[i] = np.stack([spectrum.real, spectrum.imag], axis=-1)
        else:
            result[i] = np.stack(kiss_fft.real_fft(row, x.dtype.itemsize * 8), axis=-1)
    return [result.reshape(*x.shape[:-1], length + 2)]


def _infer_irfft(options: RfftOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    type_ = require.types(x, (_INT16, TensorType.FLOAT32, TensorType.INT32))
    length = _length(options)
    if require.rank(x, at_least=1) and x.static_shape[-1] != length + 2:
        raise ShapeError(f"{x.static_shape[-1]} elements for an fft_length of {length}")
    return [TensorSpec(type_, (*x.static_shape[:-1], length))]


def _run_irfft(options: RfftOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    length = options.fft_length
    rows = x.reshape(-1, length // 2 + 1, 2)
    if x.dtype.kind == "f":
        result = np.fft.irfft(rows[..., 0] + 1j * rows[..., 1], length)
    else:
        result = np.zeros((len(rows), length), x.dtype)
        wide = rows.astype(np.int64)
        for i, row in enumerate(wide):
            result[i] = kiss_fft.inverse_real_fft((row[:, 0], row[:, 1]), x.dtype.itemsize * 8)
    return [result.reshape(*x.shape[:-1], length).astype(x.dtype)]


def _infer_energy(options: EnergyOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.typed(inputs, _INT16)
    require.rank(x, exactly=1)
    count = x.static_shape[0] // 2
    if not 0 <= options.start_index <= options.end_index <= count:
        raise ShapeError(f"{options.start_index} to {options.end_index} of {count} frequencies")
    return [TensorSpec(_UINT32, (count,))]


def _run_energy(options: EnergyOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    parts = x[: x.size // 2 * 2].astype(np.int64).reshape(-1, 2)
    energy = np.square(parts).sum(axis=1)
    wanted = slice(options.start_index, options.end_index)
    result = np.zeros(len(parts), np.uint32)
    result[wanted] = energy[wanted]
    return [result]


def _op(name: str, options: type, infer: Callable[[Any, Specs], list[TensorSpec]], run: Run) -> Op:
    return Op(name, options=options, infer=infer, run=run, custom=True)


SIGNAL_OPS = (
    _op("SignalWindow", WindowOptions, _infer_window, _run_window),
    _op("SignalFftAutoScale", NoOptions, _infer_scale, _run_scale),
    _op("SignalRfft", RfftOptions, _infer_rfft, _run_rfft),
    _op("SignalIrfft", RfftOptions, _infer_irfft, _run_irfft),
    _op("SignalEnergy", EnergyOptions, _infer_energy, _run_energy),
)
