"""Frames of a stream of sound in TensorFlow Lite Micro: cut, delayed, stacked, and added up where they overlap.

The rest of the stream between two runs lives as long as the prepared model, and is reset when a shape changes.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.schema import TensorType

_INT16, _FLOAT32, _BOOL = TensorType.INT16, TensorType.FLOAT32, TensorType.BOOL
_LONGEST = 1 << 20
_LOW, _HIGH = -(1 << 15), (1 << 15) - 1


@dataclass(frozen=True)
class DelayOptions:
    delay_length: int = 0


@dataclass(frozen=True)
class FramerOptions:
    frame_size: int = 0
    frame_step: int = 0
    prefill: bool = False


@dataclass(frozen=True)
class StackerOptions:
    num_channels: int = 0
    stacker_left_context: int = 0
    stacker_right_context: int = 0
    stacker_step: int = 0


@dataclass(frozen=True)
class OverlapAddOptions:
    T: int = 0
    frame_step: int = 0


def _between(name: str, value: int, low: int, high: int = _LONGEST) -> None:
    if not low <= value <= high:
        raise ShapeError(f"expected {name} of {low} to {high}, got {value}")


def _int16(inputs: Specs) -> TensorSpec:
    (x,) = require.present(inputs, 1)
    require.types(x, (_INT16,))
    require.rank(x, at_least=1)
    return x


def _infer_delay(options: DelayOptions, inputs: Specs) -> list[TensorSpec]:
    x = _int16(inputs)
    _between("a delay_length", options.delay_length, 0)
    return [TensorSpec(_INT16, x.shape)]


def _bind_delay(options: DelayOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    waiting: Array | None = None

    def run(options: DelayOptions, inputs: Inputs) -> list[Array]:
        nonlocal waiting
        (x,) = require.arrays(inputs, 1)
        if waiting is None or waiting.shape[:-1] != x.shape[:-1]:
            limits.temporary("a delay", (*x.shape[:-1], options.delay_length), 6)
            waiting = np.zeros((*x.shape[:-1], options.delay_length), np.int16)
        stream = np.concatenate([waiting, x], axis=-1)
        waiting = stream[..., x.shape[-1] :].copy()
        return [stream[..., : x.shape[-1]].copy()]

    return run


def _infer_framer(options: FramerOptions, inputs: Specs) -> list[TensorSpec]:
    x = _int16(inputs)
    _between("a frame_size", options.frame_size, 1)
    _between("a frame_step", options.frame_step, 1, options.frame_size)
    count, rest = divmod(x.static_shape[-1], options.frame_step)
    if rest or not count:
        raise ShapeError(f"{x.static_shape[-1]} elements in steps of {options.frame_step}")
    return [TensorSpec(_INT16, (*x.static_shape[:-1], count, options.frame_size)), TensorSpec(_BOOL, ())]


def _bind_framer(options: FramerOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    """Return zeros for frames without enough input yet; the second output is then false."""
    size, step = options.frame_size, options.frame_step
    before: Array | None = None

    def run(options: FramerOptions, inputs: Inputs) -> list[Array]:
        nonlocal before
        (x,) = require.arrays(inputs, 1)
        if before is None or before.shape[:-1] != x.shape[:-1]:
            before = np.zeros((*x.shape[:-1], size - step if options.prefill else 0), np.int16)
        stream = np.concatenate([before, x], axis=-1)
        frames = np.zeros((*x.shape[:-1], x.shape[-1] // step, size), np.int16)
        start = 0
        valid = True
        for i in range(frames.shape[-2]):
            limits.tick()
            end = before.shape[-1] + (i + 1) * step
            if end - start >= size:
                frames[..., i, :] = stream[..., start : start + size]
                start += step
            else:
                valid = False
        before = stream[..., start:].copy()
        return [frames, np.array(valid)]

    return run


def _infer_stacker(options: StackerOptions, inputs: Specs) -> list[TensorSpec]:
    x = _int16(inputs)
    _between("a stacker_left_context", options.stacker_left_context, 0, 1 << 10)
    _between("a stacker_right_context", options.stacker_right_context, 0, 1 << 10)
    frames = options.stacker_left_context + options.stacker_right_context + 1
    _between("a stacker_step", options.stacker_step, 1, frames)
    if x.static_shape != (options.num_channels,):
        raise ShapeError(f"{list(x.static_shape)} for {options.num_channels} channels")
    return [TensorSpec(_INT16, (options.num_channels * frames,)), TensorSpec(_BOOL, ())]


def _bind_stacker(options: StackerOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    """Repeat the first frame in place of those before it; return zeros and false until there are enough."""
    count = options.stacker_left_context + options.stacker_right_context + 1
    frames: list[Array] = []
    first = True

    def run(options: StackerOptions, inputs: Inputs) -> list[Array]:
        nonlocal first
        (x,) = require.arrays(inputs, 1)
        frames.extend([x.copy()] * (1 + (options.stacker_left_context if first else 0)))
        first = False
        if len(frames) < count:
            return [np.zeros(x.size * count, np.int16), np.array(False)]
        result = np.concatenate(frames[:count])
        del frames[: options.stacker_step]
        return [result, np.array(True)]

    return run


def _infer_overlap(options: OverlapAddOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    type_ = require.types(x, (_INT16, _FLOAT32))
    require.rank(x, at_least=2)
    *outer, count, size = x.static_shape
    _between("a frame_step", options.frame_step, 1, size)
    return [TensorSpec(type_, (*outer, count * options.frame_step))]


def _bind_overlap(options: OverlapAddOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    step = options.frame_step
    sums: Array | None = None

    def run(options: OverlapAddOptions, inputs: Inputs) -> list[Array]:
        nonlocal sums
        (x,) = require.arrays(inputs, 1)
        *outer, count, size = x.shape
        if sums is None or sums.shape != (*outer, size):
            sums = np.zeros((*outer, size), x.dtype)
        result = np.zeros((*outer, count, step), x.dtype)
        for i in range(count):
            limits.tick()
            frame = x[..., i, :]
            if x.dtype.kind == "i":
                sums = np.clip(sums.astype(np.int32) + frame, _LOW, _HIGH).astype(np.int16)
            else:
                sums = sums + frame
            result[..., i, :] = sums[..., :step]
            sums = np.concatenate([sums[..., step:], np.zeros((*outer, step), x.dtype)], axis=-1)
        return [result.reshape(*outer, count * step)]

    return run


def _op(name: str, options: type, infer: Callable[[Any, Specs], list[TensorSpec]], bind: Callable[..., Run]) -> Op:
    run = require.unbound
    return Op(name, options=options, infer=infer, run=run, bind=bind, pure=False, custom=True)


FRAME_OPS = (
    _op("SignalDelay", DelayOptions, _infer_delay, _bind_delay),
    _op("SignalFramer", FramerOptions, _infer_framer, _bind_framer),
    _op("SignalStacker", StackerOptions, _infer_stacker, _bind_stacker),
    _op("SignalOverlapAdd", OverlapAddOptions, _infer_overlap, _bind_overlap),
)
