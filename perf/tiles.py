"""Measures tiles for a model's products on a GPU: ``litecl tune``.

Each candidate for a product (``delegate/gpu/candidates.py``) runs inside the model, in turns with the estimated tile,
timed by the device's clock. A tile replaces the estimate only if it is clearly faster.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from litecl.delegate import CLDelegate, DelegationReport, Tuning
from litecl.delegate.backend.protocols import FoundDevice
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.devices import choose
from litecl.delegate.gpu.candidates import candidates
from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.report import summary
from litecl.delegate.tuning import GroupTile, Products, load, save_tiles
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Array
from litecl.perf.feeds import difference, outputs_of, prepare
from litecl.perf.timing import Tick, no_tick

_ROUNDS, _WARM_UP = 15, 2
_CLEARLY = 0.95  # of the estimate's time
_MOST_DIFFERENCE = 1e-3  # relative to the largest output

Times = Mapping[str, float]
"""An invoke's launch times in ms, by product."""
Timer = Callable[[Sequence[Interpreter], Tick], Sequence[Times]]


@dataclass(frozen=True)
class TunedProducts:
    """Products of a model, the number of launches that compute them, and their times in ms for all launches.

    usual: the estimated tile. ratios: the time of each other measured tile over the usual one's in the same turns.
    """

    products: Products
    launches: int
    usual: GroupTile
    usual_ms: float = 0.0
    ratios: Mapping[GroupTile, float] = field(default_factory=dict)

    def beside(self, tile: GroupTile, usual_ms: float, ms: float) -> "TunedProducts":
        """Add a measurement of another tile in turns with the usual one."""
        ratios = {**self.ratios, tile: ms / usual_ms if usual_ms else 1.0}
        return replace(self, usual_ms=min(usual_ms, self.usual_ms or usual_ms), ratios=ratios)

    @property
    def tile(self) -> GroupTile:
        """The tile to use from now on."""
        best = min(self.ratios, key=self.ratios.__getitem__, default=self.usual)
        return best if self.ratios.get(best, 1.0) < _CLEARLY else self.usual

    @property
    def ms(self) -> float:
        """That tile's time."""
        return self.usual_ms * self.ratios.get(self.tile, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name, tiles as text."""
        ratios = {str(tile): ratio for tile, ratio in self.ratios.items()}
        kept = {"products": str(self.products), "launches": self.launches, "usual": str(self.usual)}
        return {**kept, "usual_ms": self.usual_ms, "ratios": ratios, "tile": str(self.tile), "ms": self.ms}


@dataclass(frozen=True)
class TunedModel:
    """The measurements of a model's products. problems: reasons for skipped candidates, one per line."""

    device: FoundDevice
    products: Sequence[TunedProducts]
    problems: Sequence[str] = ()


def gpu(options: CLOptions, directory: Path) -> FoundDevice:
    """Return the GPU that the options choose. directory: the cache folder. Raises DelegateError for other devices."""
    device = choose(options.device, flops=inf)
    _target_of(device, directory)
    return device


def _target_of(device: FoundDevice, directory: Path) -> GpuTarget:
    target = device.target(directory)
    if not isinstance(target, GpuTarget):
        raise DelegateError(f"`tune` needs a GPU; got {device.name}; see litecl devices --tuning")
    return target


def launch_times(interpreters: Sequence[Interpreter], tick: Tick = no_tick) -> Sequence[Times]:
    """Run models in turns; return each one's shortest launch times."""
    best: list[dict[str, float]] = [{} for _ in interpreters]
    for turn in range(_WARM_UP + _ROUNDS):
        for interpreter, had in zip(interpreters, best, strict=True):
            interpreter.invoke()
            for products, ms in _sums(interpreter).items() if turn >= _WARM_UP else ():
                had[products] = min(ms, had.get(products, ms))
        tick()
    return best


def tuned_model(
    model: Any,
    inputs: Mapping[str, Array],
    options: Mapping[str, Any],
    directory: Path,
    *,
    again: bool = False,
    timer: Timer = launch_times,
    tick: Tick = no_tick,
) -> TunedModel:
    """Measure a model's products not yet measured on this GPU, and save their tiles.

    options: of the delegate. directory: the cache folder. again: measure all. Skips candidates that fail or change the
    outputs. Raises DelegateError if the model fails with the usual tiles.
    """
    given = CLOptions(**options)
    device = gpu(given, directory)
    kept = load(directory, device.identity)
    usual = replace(kept, tiles={})
    own = {**options, "device": device, "cache_dir": directory, "profile": True, "strict": True}
    bench = _Bench(partial(_prepared, model, inputs, own), usual, timer, tick)
    target = replace(_target_of(device, directory), tuning=usual)
    tuned = {one.products: one for one in bench.products if again or str(one.products) not in kept.tiles}
    problems = []
    for tiles in _rounds({products: candidates(target, products)[1:] for products in tuned}):
        try:
            ours, theirs = bench.times(tiles)
        except DelegateError as error:
            problems.append(f"left out: {', '.join(map(str, dict.fromkeys(tiles.values())))}: {summary(error)}")
            continue
        for products, tile in tiles.items():
            if (name := str(products)) in ours and name in theirs:  # else it is in a branch that wasn't taken
                tuned[products] = tuned[products].beside(tile, ours[name], theirs[name])
    chosen = {str(one.products): one.tile for one in tuned.values() if one.ratios}
    save_tiles(directory, device.identity, device.name, chosen)
    return TunedModel(device, tuple(tuned.values()), tuple(problems))


class _Bench:
    """Times a model with other tiles beside the usual ones. prepared: returns the model with a tuning."""

    def __init__(self, prepared: Callable[[Tuning], Interpreter], usual: Tuning, timer: Timer, tick: Tick) -> None:
        self._prepared, self._usual, self._timer, self._tick = prepared, usual, timer, tick
        self._base = prepared(usual)
        self._expected = outputs_of(self._base)  # of the first invoke: states change later results

    @property
    def products(self) -> list[TunedProducts]:
        """The model's products in the order of their first launches, with their tiles."""
        rows = [row.tiled for row in DelegationReport.of(self._base).kernels if row.tiled is not None]
        counts, tiles = Counter(row.products for row in rows), {row.products: row.tile for row in rows}
        return [TunedProducts(products, counts[products], tile) for products, tile in tiles.items()]

    def times(self, tiles: Mapping[Products, GroupTile]) -> Sequence[Times]:
        """Return the times with the usual tiles and with others. Raises DelegateError if the device fails with these,
        or if outputs differ by more than the order of summation explains.
        """
        other = self._prepared(replace(self._usual, tiles={str(products): tile for products, tile in tiles.items()}))
        change = difference(outputs_of(other), self._expected)
        if change > _MOST_DIFFERENCE:
            raise DelegateError(f"an output changes by {change:.1e} of its magnitude")
        return self._timer((self._base, other), self._tick)


def _prepared(model: Any, inputs: Mapping[str, Array], options: Mapping[str, Any], tuning: Tuning) -> Interpreter:
    """Return a model after one invoke."""
    interpreter = Interpreter(model, delegates=[CLDelegate(**{**options, "tuning": tuning})])
    prepare(interpreter, inputs)
    interpreter.invoke()
    return interpreter


def _rounds(lists: Mapping[Products, Sequence[GroupTile]]) -> Iterator[Mapping[Products, GroupTile]]:
    """Yield the first tile of every list, then the second, until all lists are exhausted."""
    for turn in range(max(map(len, lists.values()), default=0)):
        yield {products: tiles[turn] for products, tiles in lists.items() if turn < len(tiles)}


def _sums(interpreter: Interpreter) -> dict[str, float]:
    """Return the last invoke's device time by product."""
    sums: dict[str, float] = defaultdict(float)
    for row in DelegationReport.of(interpreter).kernels:
        if row.tiled is not None:
            sums[str(row.tiled.products)] += row.duration_ms
    return sums
