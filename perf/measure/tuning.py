"""Measures what ``delegate/tuning.py`` keeps for a device: ``litecl devices --tuning``. It takes some seconds.

Candidates run side by side, in turns. Where one of two ways pays from some size on, the choice is the least of the
measured sizes from which on it is the faster. Measure on an idle machine: with a busy core, threads do not pay.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Any

from litecl.delegate import CLDelegate, Tuning
from litecl.delegate.backend.protocols import FoundDevice
from litecl.delegate.devices import choose, devices
from litecl.delegate.matmul.tile import flops
from litecl.delegate.tuning import Measurement, Timing, file_of, measurement, save
from litecl.interpreter import Interpreter
from litecl.perf.measure import peer_models
from litecl.perf.measure.feeds import prepare, random_inputs
from litecl.perf.measure.timing import Tick, in_turns, no_tick

_ROUNDS = 15
_CLEARLY = 0.9  # of the default's time: what is closer may be noise, and is no reason to leave it
_CHANNELS = (8, 16, 32, 64, 128)
_CONVOLUTION_SIDE = 28
_ITEM_FLOPS = (2.5e5, 5e5, 1e6, 2e6, 4e6)
_ITEM_MODEL = (56, 128, 3)  # side, channels and number of 1x1 convolutions
_MODEL_SIDES = (8, 11, 16, 23, 32, 45, 64)
_MODEL_CHANNELS, _MODEL_LAYERS = 64, 4

Subject = tuple[str, bytes]  # a model by its name
Candidates = Mapping[str, tuple[FoundDevice, Tuning]]  # a device and a tuning by their name


@dataclass(frozen=True)
class Tuned:
    """A device by its index and name, what litecl is tuned to there and why, and the file that says so."""

    index: int
    name: str
    file: Path
    tuning: Tuning
    timings: tuple[Timing, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything under its name, with the defaults."""
        return {**asdict(self), "file": str(self.file), "defaults": asdict(Tuning())}


def tuned(directory: Path, *, again: bool = False, tick: Tick = no_tick) -> list[Tuned]:
    """The tuning of every device, measured and kept where that has not been done.

    directory: the cache folder. again: measured for all. tick: called once for each round of timings.
    """
    rows = []
    for index, device in enumerate(devices()):
        found = None if again else measurement(directory, device.identity)
        if found is None:
            found = measure(device, directory, tick)
            save(directory, device.identity, device.name, found)
        rows.append(Tuned(index, device.name, file_of(directory, device.identity), found.tuning, found.timings))
    return rows


def measure(device: FoundDevice, directory: Path, tick: Tick = no_tick) -> Measurement:
    """Times the candidates of every choice that there is on a device; a GPU has none.

    directory: where programs are kept.
    """
    target = device.target()
    if target.kind == "gpu":
        return Measurement(Tuning())
    bench = _Bench(directory, tick)
    choices = _winograd_channels(device, target.vector_width, bench) | _item_flops(device, bench)
    single, default = choose(), choose(flops=inf)
    if device == default != single:
        choices |= _small_flops(device, single, bench)
    return Measurement(Tuning(**choices), tuple(bench.timings))


class _Bench:
    """Times candidates and keeps what it has found."""

    def __init__(self, directory: Path, tick: Tick) -> None:
        self._directory, self._tick = directory, tick
        self.timings: list[Timing] = []

    def times(self, choice: str, subject: Subject, candidates: Candidates) -> list[float]:
        """The best time of each candidate in milliseconds: other programs may want the cores too."""
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


def _item_flops(device: FoundDevice, bench: _Bench) -> dict[str, float]:
    default = Tuning().item_flops
    candidates = {f"{size:,.0f}": (device, Tuning(item_flops=size)) for size in _ITEM_FLOPS}
    times = dict(zip(_ITEM_FLOPS, bench.times("item_flops", _products(*_ITEM_MODEL), candidates), strict=True))
    best = min(times, key=times.__getitem__)
    return {"item_flops": best if times[best] < _CLEARLY * times[default] else default}


def _small_flops(device: FoundDevice, single: FoundDevice, bench: _Bench) -> dict[str, float]:
    channels, count = _MODEL_CHANNELS, _MODEL_LAYERS
    candidates = {"one thread": (single, Tuning()), "all threads": (device, Tuning())}
    times = [bench.times("small_flops", _products(side, channels, count), candidates) for side in _MODEL_SIDES]
    sizes = [count * flops(side, side, channels, channels) for side in _MODEL_SIDES]
    return {"small_flops": crossover(sizes, times, Tuning().small_flops)}


def _convolution(side: int, channels: int) -> Subject:
    return f"3x3, {side}x{side}x{channels}", peer_models.convolution(side, channels)


def _products(side: int, channels: int, count: int) -> Subject:
    return f"{count} of 1x1, {side}x{side}x{channels}", peer_models.products(side, channels, count)


def crossover(sizes: Sequence[int], times: Sequence[Sequence[float]], never: float) -> float:
    """The least of rising sizes from which on the second of two times is the shorter, or ``never``."""
    found = never
    for size, (first, second) in zip(reversed(sizes), reversed(times), strict=True):
        if second >= first:
            break
        found = size
    return found
