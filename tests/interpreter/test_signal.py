"""The audio front end of TensorFlow Lite Micro, which LiteRT does not run, against formulas in real numbers."""

import math
from typing import Any

import numpy as np
import pytest

from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import CUSTOMS, signal, signal_frames
from litecl.interpreter.schema import TensorType
from support.shared import MODELS, needs_shared

RNG = np.random.default_rng(103)


def _run(name: str, options: Any, *inputs: Array) -> list[Array]:
    op = CUSTOMS[name]
    specs = [TensorSpec(TensorType.of(x.dtype), x.shape, data=x) for x in inputs]
    outputs = op.infer(options, specs)
    bound = op.bind(options, specs, outputs) if op.bind else None  # type: ignore[union-attr]
    results = (bound or op.run)(options, list(inputs))  # type: ignore[call-arg]
    assert [(r.dtype, r.shape) for r in results] == [(s.dtype, s.shape) for s in outputs]
    return results


def _int16(*shape: int) -> Array:
    return RNG.integers(-(2**15), 2**15, shape).astype(np.int16)


def test_window() -> None:
    x, window = _int16(3, 40), _int16(40)
    (got,) = _run("SignalWindow", signal.WindowOptions(12), x, window)
    expected = np.clip(np.floor(x.astype(np.float64) * window / 4096), -32768, 32767)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("largest", "shift"), [(0, 15), (1, 14), (255, 7), (256, 6), (32767, 0), (-32768, 0)])
def test_scale(largest: int, shift: int) -> None:
    x = np.array([0, largest], np.int16)
    scaled, by = _run("SignalFftAutoScale", NoOptions(), x)
    assert by == shift
    np.testing.assert_array_equal(scaled, x.astype(np.int64) << shift)


@pytest.mark.parametrize("length", [4, 8, 32, 128, 512])
@pytest.mark.parametrize("dtype", [np.int16, np.int32])
def test_spectrum_of_integers_is_that_of_real_numbers_divided_by_the_length(length: int, dtype: Any) -> None:
    x = RNG.integers(np.iinfo(dtype).min // 2, np.iinfo(dtype).max // 2, (2, length - 1)).astype(dtype)
    (got,) = _run("SignalRfft", signal.RfftOptions(0, length), x)
    expected = np.fft.rfft(x.astype(np.float64), length) / length
    parts = np.stack([expected.real, expected.imag], -1).reshape(2, length + 2)
    assert np.abs(got - parts).max() < 2 * math.log2(length)  # every stage rounds


def test_spectrum_of_floats() -> None:
    x = RNG.standard_normal(48).astype(np.float32)
    (got,) = _run("SignalRfft", signal.RfftOptions(0, 64), x)
    np.testing.assert_allclose(got[::2] + 1j * got[1::2], np.fft.rfft(x, 64), atol=1e-5)


def test_energy() -> None:
    x = _int16(20)
    (got,) = _run("SignalEnergy", signal.EnergyOptions(2, 9), x)
    expected = np.abs(x[::2].astype(np.float64) + 1j * x[1::2]) ** 2
    np.testing.assert_allclose(got[2:9], expected[2:9], rtol=1e-12)
    assert not got[:2].any() and not got[9:].any()


def test_filter_bank_is_a_product_with_triangles() -> None:
    x = RNG.integers(0, 2**32, 30).astype(np.uint32)
    starts, widths = np.array([2, 6, 12, 20], np.int16), np.array([4, 6, 8, 5], np.int16)
    at = np.array([0, 4, 10, 18], np.int16)
    weights = RNG.integers(0, 4096, 23).astype(np.int16)
    tables = (weights, (4096 - weights).astype(np.int16))
    matrix = np.zeros((30, 5))
    for band in range(4):
        rows, part = slice(starts[band], starts[band] + widths[band]), slice(at[band], at[band] + widths[band])
        matrix[rows, band] += tables[0][part]
        matrix[rows, band + 1] += tables[1][part]
    (got,) = _run("SignalFilterBank", signal.FilterBankOptions(3), x, *tables, starts, at, widths)
    np.testing.assert_allclose(got, x.astype(np.float64) @ matrix[:, 1:4], rtol=1e-12)


def test_square_root_rounds_to_the_nearest() -> None:
    values = [0, 1, 2, 3, 6, 7, 12, 13, 2**32 - 1, 2**32, 2**53 + 1, (2**32 - 1) ** 2 - 1, 2**64 - 1]
    values += [int(v) for v in RNG.integers(0, 2**63, 50)]
    (got,) = _run("SignalFilterBankSquareRoot", NoOptions(), np.array(values, np.uint64), np.array(2, np.int32))
    for value, root in zip(values, got.tolist(), strict=True):
        exact = math.isqrt(value)
        most = 0xFFFF if value < 2**32 else 0xFFFFFFFF
        assert root == min(exact + (value - exact * exact > exact), max(most, exact)) >> 2


@pytest.mark.parametrize("clamping", [False, True])
def test_noise_is_estimated_from_run_to_run(clamping: bool) -> None:
    options = signal.SpectralSubtractionOptions(4, 400, 15984, 1000, 15384, 10, 819, clamping, 14)
    op = CUSTOMS["SignalFilterBankSpectralSubtraction"]
    spec = TensorSpec(TensorType.UINT32, (4,))
    assert op.bind is not None
    run = op.bind(options, [spec], op.infer(options, [spec]))
    assert run is not None
    noise = [0] * 4
    for values in RNG.integers(0, 2**20, (5, 4)).tolist():
        signal_, estimate = run(options, [np.array(values, np.uint32)])
        for i, value in enumerate(values):
            smoothing, rest = (1000, 15384) if i % 2 else (400, 15984)
            noise[i] = (value * 1024 * smoothing + noise[i] * rest) >> 14
            used = min(noise[i], value * 1024)
            noise[i] = used if clamping else noise[i]
            assert signal_[i] == max((value * 1024 - used) >> 10, value * 819 >> 14)
        assert estimate.tolist() == noise


def test_gain_shrinks_what_is_below_the_noise() -> None:
    gain = np.full(128, 0, np.int16)
    gain[[0, 1, 2]] = 512, 512, 512
    gain[2::4] = 512  # the constant term of every interval
    x = np.array([0, 3, 8, 100, 10000, 2**20], np.uint32)
    (got,) = _run("SignalPCAN", signal.PcanOptions(2), x, np.full(6, 1000, np.uint32), gain)
    ratio = x.astype(np.float64) * 512 / 4 / 4096
    expected = np.where(ratio < 2, ratio**2 / 4, ratio - 1) * 64
    np.testing.assert_array_equal(got, np.floor(expected))


def test_logarithm() -> None:
    x = np.unique(np.geomspace(1, 2**28, 300).astype(np.uint32))
    (got,) = _run("SignalFilterBankLog", signal.FilterBankLogOptions(64, 3), np.append(np.uint32(0), x))
    assert got[0] == 0
    assert np.abs(got[1:] - 64 * np.log(x.astype(np.float64) * 8)).max() < 0.6


def test_refusals_say_what_does_not_fit() -> None:
    with pytest.raises(ShapeError, match="power of two, got 48"):
        _run("SignalRfft", signal.RfftOptions(0, 48), _int16(20))
    with pytest.raises(ShapeError, match=r"5 to 3 of 10"):
        _run("SignalEnergy", signal.EnergyOptions(5, 3), _int16(20))


@needs_shared
@pytest.mark.parametrize("kind", ["int8", "float"])
def test_a_published_front_end_hears_a_tone(kind: str) -> None:
    """The channels around a tone are the loudest, and silence is the same everywhere."""
    interpreter = Interpreter(str(MODELS / f"tensorflow-tflite-micro/audio_preprocessor_{kind}.tflite"))
    interpreter.allocate_tensors()
    (entry,), (output,) = interpreter.get_input_details(), interpreter.get_output_details()
    interpreter.set_tensor(entry["index"], np.zeros((1, 480), np.int16))
    interpreter.invoke()
    assert np.unique(interpreter.get_tensor(output["index"])).size == 1
    peaks = []
    for frequency in (400, 1000, 3000):
        tone = np.sin(2 * np.pi * frequency / 16000 * np.arange(480)) * 8000
        interpreter.set_tensor(entry["index"], tone.astype(np.int16)[None])
        interpreter.invoke()
        peaks.append(int(np.argmax(interpreter.get_tensor(output["index"]))))
    assert peaks == sorted(set(peaks))


@pytest.mark.parametrize("length", [4, 8, 32, 128, 512])
@pytest.mark.parametrize("dtype", [np.int16, np.int32])
def test_numbers_of_a_spectrum(length: int, dtype: Any) -> None:
    x = RNG.standard_normal((2, length))
    spectrum = np.fft.rfft(x)
    scale = np.iinfo(dtype).max / 2 / np.abs(spectrum).max()
    parts = np.round(np.stack([spectrum.real, spectrum.imag], -1).reshape(2, -1) * scale).astype(dtype)
    (got,) = _run("SignalIrfft", signal.RfftOptions(0, length), parts)
    assert np.abs(got - x * scale).max() < 2 * math.log2(length)  # every stage rounds


def test_numbers_of_a_spectrum_of_floats() -> None:
    x = RNG.standard_normal((3, 64)).astype(np.float32)
    (parts,) = _run("SignalRfft", signal.RfftOptions(0, 64), x)
    (got,) = _run("SignalIrfft", signal.RfftOptions(0, 64), parts)
    np.testing.assert_allclose(got, x, atol=1e-5)


def _stream(name: str, options: Any, *runs: Array) -> list[list[Array]]:
    """Results of one prepared node, run after run."""
    op = CUSTOMS[name]
    specs = [TensorSpec(TensorType.of(runs[0].dtype), runs[0].shape)]
    outputs = op.infer(options, specs)
    run = op.bind(options, specs, outputs)  # type: ignore[union-attr,misc]
    results = [run(options, [x]) for x in runs]
    for result in results:
        assert [(r.dtype, r.shape) for r in result] == [(s.dtype, s.shape) for s in outputs]
    return results


@pytest.mark.parametrize("delay", [0, 3, 4, 11])
def test_delay(delay: int) -> None:
    x = _int16(2, 20)
    runs = _stream("SignalDelay", signal_frames.DelayOptions(delay), *np.split(x, 5, axis=1))
    got = np.concatenate([r[0] for r in runs], axis=1)
    np.testing.assert_array_equal(got, np.pad(x, ((0, 0), (delay, 0)))[:, :20])


@pytest.mark.parametrize("prefill", [False, True])
def test_frames(prefill: bool) -> None:
    x = _int16(2, 36)
    options = signal_frames.FramerOptions(10, 4, prefill)
    runs = _stream("SignalFramer", options, *np.split(x, 3, axis=1))
    # Of ten elements in steps of four, only the third step has enough.
    assert [bool(r[1]) for r in runs] == [prefill, True, True]
    frames = np.concatenate([r[0] for r in runs], axis=1)
    padded = np.pad(x, ((0, 0), (6 if prefill else 0, 0)))
    for i, at in enumerate(range(0, padded.shape[1] - 9, 4), start=0 if prefill else 2):
        np.testing.assert_array_equal(frames[:, i], padded[:, at : at + 10])


def test_stacked_frames() -> None:
    x = [_int16(3) for _ in range(5)]
    runs = _stream("SignalStacker", signal_frames.StackerOptions(3, 2, 1, 2), *x)
    assert [bool(r[1]) for r in runs] == [False, True, False, True, False]
    np.testing.assert_array_equal(runs[1][0], np.concatenate([x[0], x[0], x[0], x[1]]))
    np.testing.assert_array_equal(runs[3][0], np.concatenate([x[0], x[1], x[2], x[3]]))


@pytest.mark.parametrize("dtype", [np.int16, np.float32])
def test_overlapping_frames(dtype: Any) -> None:
    x = RNG.integers(-32768, 32768, (6, 10)).astype(dtype)
    runs = _stream("SignalOverlapAdd", signal_frames.OverlapAddOptions(0, 5), x[:3], x[3:])
    got = np.concatenate([r[0] for r in runs])
    late = np.concatenate([np.zeros(5), x[:5, 5:].reshape(-1)])
    expected = x[:, :5].reshape(-1).astype(np.float64) + late
    np.testing.assert_array_equal(got, np.clip(expected, -32768, 32767) if dtype == np.int16 else expected)


@pytest.mark.parametrize(
    ("name", "options", "shape"),
    [
        ("SignalDelay", signal_frames.DelayOptions(-1), (4,)),
        ("SignalDelay", signal_frames.DelayOptions(1 << 30), (4,)),
        ("SignalFramer", signal_frames.FramerOptions(4, 5), (10,)),
        ("SignalFramer", signal_frames.FramerOptions(4, 3), (10,)),
        ("SignalFramer", signal_frames.FramerOptions(4, 0), (10,)),
        ("SignalStacker", signal_frames.StackerOptions(3, 1, 1, 4), (3,)),
        ("SignalStacker", signal_frames.StackerOptions(3, 1, 1, 1), (4,)),
        ("SignalOverlapAdd", signal_frames.OverlapAddOptions(0, 5), (2, 4)),
        ("SignalOverlapAdd", signal_frames.OverlapAddOptions(0, 1), (4,)),
        ("SignalIrfft", signal.RfftOptions(0, 8), (8,)),
    ],
)
def test_streams_that_cannot_be(name: str, options: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError):
        CUSTOMS[name].infer(options, [TensorSpec(TensorType.INT16, shape)])
