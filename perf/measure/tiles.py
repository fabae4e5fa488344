"""Measures the tiles in which a GPU computes the products of a model: ``litecl tune``.

Each of the few candidates of a product (``delegate/kit/candidates.py``) runs in its place in the model, beside the tile
of the estimate, in turns, with the device's own clock. What is not clearly faster than the estimate is no reason to
leave it.
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
from litecl.delegate.kit.candidates import candidates
from litecl.delegate.report import summary
from litecl.delegate.tuning import GroupTile, Products, load, save_tiles
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Array
from litecl.perf.measure.feeds import difference, outputs_of, prepare
from litecl.perf.measure.timing import Tick, no_tick

_ROUNDS, _WARM_UP = 15, 2
_CLEARLY = 0.95  # of the estimate's time
_MOST_DIFFERENCE = 1e-3  # relative to the largest output

Times = Mapping[str, float]
"""What the launches of an invoke take, in ms, by their products."""
Timer = Callable[[Sequence[Interpreter], Tick], Sequence[Times]]


@dataclass(frozen=True)
class TunedProducts:
    """Products of a model, how many launches compute them, and the times of their tiles, in ms for all launches.

    usual: the tile of the estimate. ratios: the time of every other one that was measured, over that of the usual one
    in the same turns.
    """

    products: Products
    launches: int
    usual: GroupTile
    usual_ms: float = 0.0
    ratios: Mapping[GroupTile, float] = field(default_factory=dict)

    def beside(self, tile: GroupTile, usual_ms: float, ms: float) -> "TunedProducts":
        """Return the same with the times of the usual tile and of another one in the same turns."""
        ratios = {**self.ratios, tile: ms / usual_ms if usual_ms else 1.0}
        return replace(self, usual_ms=min(usual_ms, self.usual_ms or usual_ms), ratios=ratios)

    @property
    def tile(self) -> GroupTile:
        """Return the tile to take from now on."""
        best = min(self.ratios, key=self.ratios.__getitem__, default=self.usual)
        return best if self.ratios.get(best, 1.0) < _CLEARLY else self.usual

    @property
    def ms(self) -> float:
        """Return the time of that tile."""
        return self.usual_ms * self.ratios.get(self.tile, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Return everything under its name, tiles as text."""
        ratios = {str(tile): ratio for tile, ratio in self.ratios.items()}
        kept = {"products": str(self.products), "launches": self.launches, "usual": str(self.usual)}
        return {**kept, "usual_ms": self.usual_ms, "ratios": ratios, "tile": str(self.tile), "ms": self.ms}


@dataclass(frozen=True)
class TunedModel:
    """What was measured of a model's products. problems: why candidates were left out, a line each."""

    device: FoundDevice
    products: Sequence[TunedProducts]
    problems: Sequence[str] = ()


def gpu(options: CLOptions) -> FoundDevice:
    """Return the GPU that is meant. Raises DelegateError for any other device."""
    found = choose(options.device, flops=inf)
    if found.target().kind != "gpu":
        raise DelegateError(f"tiles are those of GPUs: expected one, got {found.name}; see litecl devices --tuning")
    return found


def launch_times(interpreters: Sequence[Interpreter], tick: Tick = no_tick) -> Sequence[Times]:
    """Return the least times of models that run in turns."""
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
    """Measure the products of a model on a GPU that have not been measured there, and keep their tiles.

    options: of the delegate. directory: the cache folder. again: measure all. Candidates with which the device fails,
    or computes anything else than with the usual tiles, are left out. Raises DelegateError if it fails with the latter.
    """
    given = CLOptions(**options)
    device = gpu(given)
    kept = load(directory, device.identity)
    usual = replace(kept, tiles={})
    prepared = partial(_prepared, model, inputs, {**options, "device": device, "cache_dir": directory})
    base, target = prepared(usual), replace(given.on(device.target(directory)), tuning=usual)
    found = {one.products: one for one in _launched(base) if again or str(one.products) not in kept.tiles}
    problems = []
    for tiles in _rounds({products: candidates(target, products)[1:] for products in found}):
        try:
            other = prepared(replace(usual, tiles={str(products): tile for products, tile in tiles.items()}))
            _check_equal(other, base)
            ours, theirs = timer((base, other), tick)
        except DelegateError as error:
            problems.append(f"left out: {', '.join(map(str, dict.fromkeys(tiles.values())))}: {summary(error)}")
            continue
        for products, tile in tiles.items():
            found[products] = found[products].beside(tile, ours[str(products)], theirs[str(products)])
    chosen = {str(one.products): one.tile for one in found.values() if one.ratios}
    save_tiles(directory, device.identity, device.name, chosen)
    return TunedModel(device, tuple(found.values()), tuple(problems))


def _launched(interpreter: Interpreter) -> list[TunedProducts]:
    """Return the products of a model, in the order of their first launches, with the tiles of these."""
    rows = [row.tiled for row in DelegationReport.of(interpreter).kernels if row.tiled is not None]
    counts, tiles = Counter(row.products for row in rows), {row.products: row.tile for row in rows}
    return [TunedProducts(products, counts[products], tile) for products, tile in tiles.items()]


def _prepared(model: Any, inputs: Mapping[str, Array], options: Mapping[str, Any], tuning: Tuning) -> Interpreter:
    """Return a model after an invoke."""
    delegate = CLDelegate(**{**options, "tuning": tuning, "profile": True, "strict": True})
    interpreter = Interpreter(model, delegates=[delegate])
    prepare(interpreter, inputs)
    interpreter.invoke()
    return interpreter


def _rounds(lists: Mapping[Products, Sequence[GroupTile]]) -> Iterator[Mapping[Products, GroupTile]]:
    """Yield the first of every list, then the second, until all lists have ended."""
    for turn in range(max(map(len, lists.values()), default=0)):
        yield {products: tiles[turn] for products, tiles in lists.items() if turn < len(tiles)}


def _sums(interpreter: Interpreter) -> dict[str, float]:
    """Return the device time of the last invoke by the products of launches."""
    sums: dict[str, float] = defaultdict(float)
    for row in DelegationReport.of(interpreter).kernels:
        if row.tiled is not None:
            sums[str(row.tiled.products)] += row.duration_ms
    return sums


def _check_equal(got: Interpreter, expected: Interpreter) -> None:
    """Raise DelegateError where the outputs of two models differ by more than the order of sums explains."""
    found = difference(outputs_of(got), outputs_of(expected))
    if found > _MOST_DIFFERENCE:
        raise DelegateError(f"an output changes by {found:.1e} of its magnitude")
