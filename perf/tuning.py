"""Measures a device's settings (``delegate/tuning.py``): ``litecl devices --tuning``. Takes a few seconds.

Candidates run in turns. If one of two methods is faster from some size on, the choice is the smallest such size
measured. Measure on an idle machine: with a busy core, threads don't pay.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

from litecl.converter import Converter, Quantization
from litecl.delegate import CLDelegate, Tuning
from litecl.delegate.backend.protocols import FoundDevice
from litecl.delegate.cl_op import Target
from litecl.delegate.devices import choose, devices
from litecl.delegate.kit.schedule import flops
from litecl.delegate.tuning import Measurement, Schedule, Timing, file_of, measurement, save
from litecl.interpreter import Interpreter
from litecl.perf.feeds import prepare, random_inputs
from litecl.perf.models import layers
from litecl.perf.timing import Tick, in_turns, no_tick

_ROUNDS = 15
_CLEARLY = 0.9  # of the default's time: a smaller gain may be noise
_CHANNELS = (8, 16, 32, 64, 128)
_CONVOLUTION_SIDE = 28
_PRODUCTS = (56, 128, 3)  # side, channels and number of 1x1 convolutions
_MODEL_SIDES = (8, 11, 16, 23, 32, 45, 64)
_MODEL_CHANNELS, _MODEL_LAYERS = 64, 4

Subject = tuple[str, bytes]  # a model's name and content
Candidates = Mapping[str, tuple[FoundDevice, Tuning]]  # a device and a tuning by name


@dataclass(frozen=True)
class Tuned:
    """A device's tuning with the timings behind it and the file that stores it.

    choices: value and default of every timed choice, by its name in ``timings``.
    """

    index: int
    name: str
    file: Path
    tuning: Tuning
    timings: tuple[Timing, ...]
    choices: Mapping[str, tuple[float, float]]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name, with the defaults."""
        return {**asdict(self), "file": str(self.file), "defaults": asdict(Tuning())}


def tuned(directory: Path, *, again: bool = False, tick: Tick = no_tick) -> list[Tuned]:
    """Return every device's tuning, measuring and saving it if needed.

    directory: the cache folder. again: measure all. tick: called once per round of timings.
    """
    rows = []
    for index, device in enumerate(devices(directory)):
        kept = measurement(directory, device.identity)
        measured = None if again else kept
        if measured is None or not measured.timings:  # `litecl tune` saves only tiles
            tiles = {} if kept is None else kept.tuning.tiles
            measured = measure(device, directory, tick)
            measured = replace(measured, tuning=replace(measured.tuning, tiles=tiles))
            save(directory, device.identity, device.name, measured)
        names = dict.fromkeys(timing.choice for timing in measured.timings)
        choices = {name: _values(name, measured.tuning, device.target()) for name in names}
        file = file_of(directory, device.identity)
        rows.append(Tuned(index, device.name, file, measured.tuning, measured.timings, choices))
    return rows


def measure(device: FoundDevice, directory: Path, tick: Tick = no_tick) -> Measurement:
    """Time the candidates of every choice on a device. directory: the cache folder for programs."""
    target, bench = device.target(), _Bench(directory, tick)
    is_cpu = target.memory == "host"
    trials = _CPU_TRIALS if is_cpu else _GPU_TRIALS
    tried = {trial.kernel: _schedule(trial, device, target, bench) for trial in trials}
    schedules = {kernel: schedule for kernel, schedule in tried.items() if schedule is not None}
    settings = _settings(device, target, bench) if is_cpu else {}
    return Measurement(Tuning(**settings, schedules=schedules), tuple(bench.timings))


def _settings(device: FoundDevice, target: Target, bench: "_Bench") -> Mapping[str, Any]:
    """Measure a CPU's settings other than schedules."""
    settings = _winograd_channels(device, target.vector_width, bench) | _speeds(device, bench)
    single, default = choose(), choose(flops=inf)
    return settings | _small_flops(device, single, bench) if device == default != single else settings


class _Bench:
    """Times candidates and records the timings."""

    def __init__(self, directory: Path, tick: Tick) -> None:
        self._directory, self._tick = directory, tick
        self.timings: list[Timing] = []

    def times(self, choice: str, subject: Subject, candidates: Candidates) -> list[float]:
        """Return each candidate's best time in milliseconds: other programs may disturb the rest."""
        name, content = subject
        invokes = [self._ready(content, *candidate).invoke for candidate in candidates.values()]
        best = [stats.min_ms for stats in in_turns(invokes, _ROUNDS, tick=self._tick)]
        self.timings.append(Timing(choice, name, dict(zip(candidates, best, strict=True))))
        return best

    def _ready(self, content: bytes, device: FoundDevice, tuning: Tuning) -> Interpreter:
        delegate = CLDelegate(device, cache_dir=self._directory, tuning=tuning, strict=True)
        interpreter = Interpreter(model_content=content, delegates=[delegate])
        prepare(interpreter, random_inputs(interpreter.get_input_details(), seed=0))
        interpreter.invoke()
        return interpreter


def _winograd_channels(device: FoundDevice, vector_width: int, bench: _Bench) -> dict[str, float]:
    sizes = [channels for channels in _CHANNELS if channels >= vector_width]
    never = 2.0 * sizes[-1]
    candidates = {
        "direct": (device, Tuning(winograd_channels=never)),
        "Winograd": (device, Tuning(winograd_channels=0)),
    }
    times = [bench.times("winograd_channels", _convolution(_CONVOLUTION_SIDE, size), candidates) for size in sizes]
    return {"winograd_channels": crossover(sizes, times, never)}


def _speeds(device: FoundDevice, bench: _Bench) -> dict[str, float]:
    """Return operations per second in float and int8 products, by which devices are chosen."""
    side, channels, count = _PRODUCTS
    name, content = _products(*_PRODUCTS)
    work = count * flops(side, side, channels, channels)
    subjects = {"float_speed": (name, content), "integer_speed": (f"{name}, int8", _in_int8(content))}
    candidates = {"products": (device, Tuning())}
    return {choice: work / (bench.times(choice, subject, candidates)[0] * 1e-3) for choice, subject in subjects.items()}


def _in_int8(content: bytes) -> bytes:
    """Return a model quantized to int8."""
    interpreter = Interpreter(content)
    data = random_inputs(interpreter.get_input_details(), seed=0)
    return Converter.from_tflite(content, quantize=Quantization(activations="int8", data=data)).convert()


def _small_flops(device: FoundDevice, single: FoundDevice, bench: _Bench) -> dict[str, float]:
    channels, count = _MODEL_CHANNELS, _MODEL_LAYERS
    candidates = {"one thread": (single, Tuning()), "all threads": (device, Tuning())}
    times = [bench.times("small_flops", _products(side, channels, count), candidates) for side in _MODEL_SIDES]
    sizes = [count * flops(side, side, channels, channels) for side in _MODEL_SIDES]
    return {"small_flops": crossover(sizes, times, Tuning().small_flops)}


def _convolution(side: int, channels: int) -> Subject:
    return f"3x3, {side}x{side}x{channels}", layers.convolution(side, channels)


def _products(side: int, channels: int, count: int) -> Subject:
    return f"{count} of 1x1, {side}x{side}x{channels}", layers.products(side, channels, count)


@dataclass(frozen=True)
class _Trial:
    """Candidate values for one field of a kernel's schedule."""

    kernel: str
    field: str
    values: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.kernel}.{self.field}"


_NEVER = 1e15  # winograd_channels that rule out Winograd while another kernel is timed
_FLOPS = (250_000, 500_000, 1_000_000, 2_000_000, 4_000_000)
_SUBJECTS: Mapping[str, Callable[[], Subject]] = {
    "gemm": lambda: _products(*_PRODUCTS),
    "conv_2d": lambda: _convolution(_CONVOLUTION_SIDE, 64),
    "product_local": lambda: _convolution(_CONVOLUTION_SIDE, 64),
    "depthwise_conv_2d": lambda: ("the depthwise convolutions of MobileNetV2", layers.depthwise_set()),
    "fully_connected": lambda: ("dense, 1280 to 1000", layers.dense(1280, 1000)),
}
_CPU_TRIALS = (
    *(_Trial(kernel, "most", _FLOPS) for kernel in ("gemm", "conv_2d", "depthwise_conv_2d")),
    _Trial("fully_connected", "items_per_unit", (1, 2, 4, 8)),
)
_GPU_TRIALS = (
    _Trial("product_local", "items_per_unit", (1, 2, 4, 8)),
    _Trial("depthwise_conv_2d", "group", (32, 64, 128, 256)),
)


def _schedule(trial: _Trial, device: FoundDevice, target: Target, bench: _Bench) -> Schedule | None:
    """Return the schedule with the best value, None if the default is as good."""
    default = target.schedule(trial.kernel)
    values = dict.fromkeys((getattr(default, trial.field), *trial.values))
    schedules = {f"{value:,.0f}": replace(default, **{trial.field: value}) for value in values}
    candidates = {
        name: (device, Tuning(winograd_channels=_NEVER, schedules={trial.kernel: schedule}))
        for name, schedule in schedules.items()
    }
    times = dict(zip(schedules, bench.times(trial.name, _SUBJECTS[trial.kernel](), candidates), strict=True))
    usual, best = next(iter(times)), min(times, key=times.__getitem__)
    return schedules[best] if times[best] < _CLEARLY * times[usual] else None


def _values(choice: str, tuning: Tuning, target: Target) -> tuple[float, float]:
    """Return a choice's value and default."""
    kernel, _, field = choice.rpartition(".")
    if not kernel:
        return getattr(tuning, field), getattr(Tuning(), field)
    default = replace(target, tuning=Tuning()).schedule(kernel)
    return getattr(tuning.schedules.get(kernel, default), field), getattr(default, field)


def crossover(sizes: Sequence[int], times: Sequence[Sequence[float]], never: float) -> float:
    """Return the smallest of rising sizes from which on the second of two times is shorter, or ``never``."""
    least = never
    for size, (first, second) in zip(reversed(sizes), reversed(times), strict=True):
        if second >= first:
            break
        least = size
    return least
