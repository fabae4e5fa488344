"""Filter banks of the audio front end of TensorFlow Lite Micro, and the smoothing and compression of their energies."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.arithmetic import fixed_math
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.op import Inputs, NoOptions, Op, Run, Specs
from litecl.interpreter.schema import TensorType

_STEPS = np.arange(129) / 128
# log2(1 + x) - x, in units of 2**-16, at 128 steps.
_LOG = np.append(np.round(65536 * (np.log2(1 + _STEPS) - _STEPS)), 0).astype(np.int64)
_INT16, _UINT32, _UINT64 = TensorType.INT16, TensorType.UINT32, TensorType.UINT64
_WORD = 0xFFFFFFFF
_SNR_BITS, _GAIN_BITS = 12, 6  # fractional bits of the signal-to-noise ratio, and of SignalPCAN's results
_LOG_2 = 45426  # in units of 2**-16


@dataclass(frozen=True)
class FilterBankOptions:
    num_channels: int = 0


@dataclass(frozen=True)
class SpectralSubtractionOptions:
    num_channels: int = 0
    smoothing: int = 0
    one_minus_smoothing: int = 0
    alternate_smoothing: int = 0
    alternate_one_minus_smoothing: int = 0
    smoothing_bits: int = 0
    min_signal_remaining: int = 0
    clamping: bool = False
    spectral_subtraction_bits: int = 0


@dataclass(frozen=True)
class PcanOptions:
    snr_shift: int = 0


@dataclass(frozen=True)
class FilterBankLogOptions:
    output_scale: int = 0
    input_correction_bits: int = 0


def _infer_bank(options: FilterBankOptions, inputs: Specs) -> list[TensorSpec]:
    _, weights, unweights, *tables = require.typed(inputs, _UINT32, *(_INT16,) * 5)
    channels = options.num_channels
    if channels < 0 or weights.shape != unweights.shape or any(p.shape != (channels + 1,) for p in tables):
        shapes = ", ".join(str(list(table.static_shape)) for table in tables)
        raise ShapeError(f"tables of {shapes} for {channels} channels")
    return [TensorSpec(_UINT64, (channels,))]


def _run_bank(options: FilterBankOptions, inputs: Inputs) -> list[Array]:
    """Add each band's energy to its channel by ``weights``, and to the next one by ``unweights``."""
    x, weights, unweights, starts, weight_starts, widths = require.arrays(inputs, 6)
    limits.temporary("a filter bank", (2, options.num_channels + 2), 8)
    sums = np.zeros((2, options.num_channels + 2), np.uint64)
    for channel, (start, at, width) in enumerate(zip(starts, weight_starts, widths, strict=True)):
        if min(start, at, width) < 0 or start + width > x.size or at + width > weights.size:
            raise ModelError(f"band {channel} is outside the spectrum or the weights")
        energy = x[start : start + width].astype(np.uint64)
        for i, table in enumerate((weights, unweights)):
            sums[i, channel] = (energy * table[at : at + width].astype(np.uint64)).sum(dtype=np.uint64)
    return [(sums[0, 1:-1] + sums[1, :-2])]


def _square_root(x: Array) -> Array:
    """Return the nearest integer root, of at most 16 bits for 32 and 32 bits for 64."""
    root = np.minimum(np.floor(np.sqrt(x.astype(np.float64))), _WORD).astype(np.uint64)
    one = np.uint64(1)
    root = np.where(root * root > x, root - one, root)
    root = np.where((root < _WORD) & (x - root * root > np.uint64(2) * root), root + one, root)
    most = np.where(x <= _WORD, 0xFFFF, _WORD).astype(np.uint64)
    return np.where((x - root * root > root) & (root != most), root + one, root)


def _run_root(options: NoOptions, inputs: Inputs) -> list[Array]:
    x, shift = require.arrays(inputs, 2)
    return [(_square_root(x) >> np.uint64(np.clip(shift.item(), 0, 63))).astype(np.uint32)]


def _infer_root(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    x, shift = require.typed(inputs, _UINT64, TensorType.INT32)
    if shift.size != 1:
        raise ShapeError(f"expected one scale, got shape {list(shift.static_shape)}")
    return [TensorSpec(_UINT32, x.shape)]


def _infer_subtraction(options: SpectralSubtractionOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.typed(inputs, _UINT32)
    require.bits(smoothing_bits=options.smoothing_bits, spectral_subtraction_bits=options.spectral_subtraction_bits)
    if x.static_shape != (options.num_channels,):
        raise ShapeError(f"{list(x.static_shape)} for {options.num_channels} channels")
    return [TensorSpec(_UINT32, x.shape), TensorSpec(_UINT32, x.shape)]


def _bind_subtraction(options: SpectralSubtractionOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    """Subtract the noise estimate, which lives as long as the prepared model."""
    estimate = np.zeros(options.num_channels, np.uint64)
    odd = np.arange(options.num_channels) % 2 == 1
    gain = np.where(odd, options.alternate_smoothing, options.smoothing).astype(np.uint64)
    decay = np.where(odd, options.alternate_one_minus_smoothing, options.one_minus_smoothing).astype(np.uint64)
    bits, smoothing = np.uint64(options.spectral_subtraction_bits), np.uint64(options.smoothing_bits)

    def run(options: SpectralSubtractionOptions, inputs: Inputs) -> list[Array]:
        nonlocal estimate
        (x,) = require.arrays(inputs, 1)
        wide = x.astype(np.uint64)
        scaled = (wide << smoothing) & np.uint64(_WORD)
        estimate = ((scaled * gain + estimate * decay) >> bits) & np.uint64(_WORD)
        noise = np.minimum(estimate, scaled)
        if options.clamping:
            estimate = noise
        floor = ((wide * np.uint64(options.min_signal_remaining)) >> bits) & np.uint64(_WORD)
        signal = np.maximum((scaled - noise) >> smoothing, floor)
        return [signal.astype(np.uint32), estimate.astype(np.uint32)]

    return run


def _infer_pcan(options: PcanOptions, inputs: Specs) -> list[TensorSpec]:
    x, noise, table = require.typed(inputs, _UINT32, _UINT32, _INT16)
    if x.shape != noise.shape or table.size < 125 or not 0 <= options.snr_shift < 64:
        raise ShapeError(f"noise {noise.shape} of {x.shape}, {table.size} gains, shift {options.snr_shift}")
    return [TensorSpec(_UINT32, x.shape)]


def _gain(noise: Array, table: Array) -> Array:
    """Return the gain, a polynomial for each power of two (WideDynamicFunction)."""
    interval = fixed_math.bit_length(noise).astype(np.int64)
    at = np.clip(4 * interval - 6, 0, table.size - 3)
    fraction = ((noise << np.maximum(11 - interval, 0)) >> np.maximum(interval - 11, 0)) & 0x3FF
    result = ((table[at + 2] * fraction) >> 5) + ((table[at + 1] & _WORD) << 5)
    result = (result * fraction).astype(np.int32).astype(np.int64)
    result = ((result + (1 << 14)) >> 15) + table[at]
    return np.where(noise <= 2, table[np.minimum(noise, 2)], result).astype(np.int16).astype(np.int64)


def _run_pcan(options: PcanOptions, inputs: Inputs) -> list[Array]:
    x, noise, table = require.arrays(inputs, 3)
    gain = _gain(noise.astype(np.int64), table.astype(np.int64)) & _WORD
    snr = ((x.astype(np.uint64) * gain.astype(np.uint64)) >> np.uint64(options.snr_shift)) & np.uint64(_WORD)
    square = ((snr * snr) & np.uint64(_WORD)) >> np.uint64(2 + 2 * _SNR_BITS - _GAIN_BITS)
    line = (snr >> np.uint64(_SNR_BITS - _GAIN_BITS)) - np.uint64(1 << _GAIN_BITS)
    return [np.where(snr < 2 << _SNR_BITS, square, line).astype(np.uint32)]


def _log(x: Array, scale: int) -> Array:
    """Return the natural logarithm of positive integers, in units of ``1 / scale``."""
    whole = fixed_math.bit_length(x).astype(np.int64) - 1
    rest = x - (np.int64(1) << whole)
    fraction = (rest << np.maximum(16 - whole, 0)) >> np.maximum(whole - 16, 0)
    segment = fraction >> 9
    position = ((_LOG[segment + 1] - _LOG[segment]) * (fraction - (segment << 9))) >> 16
    log2 = (whole << 16) + fraction + _LOG[segment] + position
    log = ((_LOG_2 * log2 + (1 << 15)) >> 16) & _WORD
    return np.asarray(((scale * log + (1 << 15)) & _WORD) >> 16)


def _infer_log(options: FilterBankLogOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.typed(inputs, _UINT32)
    require.bits(input_correction_bits=options.input_correction_bits)
    return [TensorSpec(_INT16, x.shape)]


def _run_log(options: FilterBankLogOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    scaled = (x.astype(np.int64) << options.input_correction_bits) & _WORD
    log = np.minimum(_log(np.maximum(scaled, 1), options.output_scale), (1 << 15) - 1)
    return [np.where(scaled > 1, log, 0).astype(np.int16)]


def _op(name: str, options: type, infer: Callable[[Any, Specs], list[TensorSpec]], run: Run) -> Op:
    return Op(name, options=options, infer=infer, run=run, custom=True)


BANK_OPS = (
    _op("SignalFilterBank", FilterBankOptions, _infer_bank, _run_bank),
    _op("SignalFilterBankSquareRoot", NoOptions, _infer_root, _run_root),
    Op(
        "SignalFilterBankSpectralSubtraction",
        options=SpectralSubtractionOptions,
        infer=_infer_subtraction,
        run=require.unbound,
        bind=_bind_subtraction,
        pure=False,
        custom=True,
    ),
    _op("SignalPCAN", PcanOptions, _infer_pcan, _run_pcan),
    _op("SignalFilterBankLog", FilterBankLogOptions, _infer_log, _run_log),
)
