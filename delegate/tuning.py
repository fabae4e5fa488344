"""Performance settings of a device, measured once and cached.

They change a model's time, never its results. ``perf/tuning.py`` measures them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any, Literal

from litecl.delegate import disk
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import DelegateError

_VERSION = 4  # of the file; increment it when changed fields or kernels invalidate older figures
_TILES_VERSION = 1  # of the tiles in it; increment it with the kernels of kernels_cl/local_tile.h
_MOST = 1e15
_MOST_COUNT, _MOST_ROWS = 1 << 20, 32
_LEAST_SHARE = 1e-3


def _check(name: str, value: Any, least: float, most: float, *, whole: bool = False) -> None:
    if not isinstance(value, int if whole else int | float) or not least <= value <= most:
        kind = "a whole number" if whole else "a number"
        raise DelegateError(f"tuning: {name}: expected {kind} from {least:g} to {most:g}, got {value!r}")


@dataclass(frozen=True)
class TileShape:
    """A tile of a work-item: rows x vectors. share: the fraction of the device's peak that it reaches."""

    rows: int
    vectors: int
    share: float

    def __post_init__(self) -> None:
        _check("rows of a tile", self.rows, 1, _MOST_ROWS, whole=True)
        _check("vectors of a tile", self.vectors, 1, _MOST_ROWS, whole=True)
        _check("share of a tile", self.share, _LEAST_SHARE, 1)


@dataclass(frozen=True)
class Schedule:
    """How to distribute a kernel's work (``delegate/kit/schedule.py``); operations are those of its inner loop.

    items_per_unit: work-items per compute unit of a CPU, so that units can take over from a delayed one; groups per
        compute unit of a GPU, to choose tiles by (product_local).
    items_alone: work-items with a single compute unit.
    least, most: the least and the most operations of a work-item.
    group: work-items of a GPU's group.
    wide: the most work-items of a group along the first dimension.
    pieces: the most parts to split a long row into.
    near_bytes, far_bytes: memory that a work-item reads repeatedly, to keep in the first- and second-level cache.
    tiles: the register tiles to choose from; empty means those for the device's vector width.
    """

    items_per_unit: int = 4
    items_alone: int = 1
    least: float = 4096
    most: float = _MOST
    group: int = 64
    wide: int = 64
    pieces: int = 1
    near_bytes: int = 0
    far_bytes: int = 0
    tiles: tuple[TileShape, ...] = ()

    def __post_init__(self) -> None:
        for name in ("items_per_unit", "items_alone", "group", "wide", "pieces"):
            _check(name, getattr(self, name), 1, _MOST_COUNT, whole=True)
        for name in ("near_bytes", "far_bytes"):
            _check(name, getattr(self, name), 0, _MOST, whole=True)
        for name in ("least", "most"):
            _check(name, getattr(self, name), 1, _MOST)

    @property
    def usual_rows(self) -> int:
        """Rows of the first tile, which suits most shapes; 0 without tiles."""
        return self.tiles[0].rows if self.tiles else 0


@dataclass(frozen=True)
class Products:
    """Matrix products to choose a GPU's tile for: ``slices`` of [rows, depth] times [depth, columns].

    reads: how the kernel reads operands: x as "rows" or "patches", or computed on the way. arithmetic: "fp32", "fp16"
    for weights in half precision, "int8" (the depth then counts fours), or the name of a unit that multiplies halves.

    Also describes a depthwise convolution: slices are lines of its images, rows their pixels, the depth its taps.
    """

    slices: int
    rows: int
    columns: int
    depth: int
    reads: str = "rows"
    arithmetic: str = "fp32"

    def __str__(self) -> str:
        """Return the key of their tile in a ``Tuning``."""
        return f"{self.slices} x {self.rows} x {self.columns} x {self.depth} of {self.reads}, {self.arithmetic}"


@dataclass(frozen=True)
class GroupTile:
    """A tile of a GPU's group: ``rows`` x ``columns``; each work-item accumulates ``own_rows`` x ``own_columns``.

    parts: the number of groups that split the depth.
    """

    rows: int
    columns: int
    own_rows: int
    own_columns: int
    parts: int = 1

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            _check(f"{name} of a group's tile", value, 1, _MOST_COUNT, whole=True)

    def __str__(self) -> str:
        """Describe the tile for people."""
        parts = f", {self.parts} parts" if self.parts > 1 else ""
        return f"{self.rows}x{self.columns} by {self.own_rows}x{self.own_columns}{parts}"


Source = Literal["measured", "family", "estimate"]


@dataclass(frozen=True)
class Tiled:
    """The tile of a launch. source: whether it was measured on the device, or chosen from the tiles of its GPU family
    ("family") or of all GPUs ("estimate").
    """

    products: Products
    tile: GroupTile
    source: Source


@dataclass(frozen=True)
class Tuning:
    """The settings of a device; the defaults suit unmeasured ones.

    winograd_channels: the channels (the smaller of input's and output's) from which a 3x3 convolution uses Winograd's
        algorithm.
    small_flops: a model with fewer arithmetic operations runs on a single thread: an invoke ends before a second thread
        wakes up.
    schedules: schedules by kernel file, where they beat the defaults.
    float_speed, integer_speed: arithmetic operations per second in products of floats and of int8; 0 if unmeasured.
        litecl uses a processor's fastest OpenCL runtime.
    tiles: measured tiles of a GPU's products, by the products as text (``Products``).
    """

    winograd_channels: float = 16
    small_flops: float = 3e7
    schedules: Mapping[str, Schedule] = field(default_factory=dict)
    float_speed: float = 0
    integer_speed: float = 0
    tiles: Mapping[str, GroupTile] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("winograd_channels", "small_flops", "float_speed", "integer_speed"):
            _check(name, getattr(self, name), 0, _MOST)


@dataclass(frozen=True)
class Demand:
    """A model's demands on a device. num_threads: the user's; None leaves it to the back end. flops: the model's
    arithmetic operations. integers: whether most of them yield integers.
    """

    num_threads: int | None = None
    flops: float = 0.0
    integers: bool = False


@dataclass(frozen=True)
class Timing:
    """The timings behind a choice: the best time of each candidate on one subject, in ms.

    choice: a setting of Tuning, or a kernel and a field of its schedule, as in ``gemm.most``.
    """

    choice: str
    subject: str
    times_ms: Mapping[str, float]


@dataclass(frozen=True)
class Measurement:
    """A tuning and the timings behind it."""

    tuning: Tuning
    timings: tuple[Timing, ...] = ()


def load(directory: Path | None, identity: Sequence[str]) -> Tuning:
    """Return the tuning of a device, or the defaults if unmeasured. identity: see ``Identified``."""
    measured = measurement(directory, identity)
    return Tuning() if measured is None else measured.tuning


def measurement(directory: Path | None, identity: Sequence[str]) -> Measurement | None:
    """Return the measurement of a device; None if there is no file that this version can read."""
    if directory is None:
        return None
    content = disk.read(file_of(directory, identity))
    try:
        return None if content is None else _decoded(json.loads(content))
    except Exception:  # another program's file, or an incomplete one
        return None


def save(directory: Path, identity: Sequence[str], name: str, measurement: Measurement) -> None:
    """Save a measurement, replacing an earlier one. The last of several processes wins. Raises OSError.

    name: of the device, for people who open the file.
    """
    content = {"version": _VERSION, "tiles_version": _TILES_VERSION, "device": name, **asdict(measurement)}
    disk.write_atomically(file_of(directory, identity), json.dumps(content, indent=1).encode())


def save_tiles(directory: Path, identity: Sequence[str], name: str, tiles: Mapping[str, GroupTile]) -> None:
    """Add tiles to the saved measurement, which other processes may have changed. Raises OSError."""
    had = measurement(directory, identity) or Measurement(Tuning())
    save(directory, identity, name, replace(had, tuning=replace(had.tuning, tiles={**had.tuning.tiles, **tiles})))


def file_of(directory: Path, identity: Sequence[str]) -> Path:
    """Return the tuning file of a device."""
    return directory / f"{disk.key('tuning', identity)}.json"


def _decoded(content: Any) -> Measurement | None:
    if content["version"] != _VERSION:
        return None
    timings = (
        Timing(str(t["choice"]), str(t["subject"]), {str(name): float(ms) for name, ms in t["times_ms"].items()})
        for t in content["timings"]
    )
    schedules = {k: _schedule(v) for k, v in content["tuning"]["schedules"].items()}
    kept = content["tuning"].get("tiles", {}) if content.get("tiles_version") == _TILES_VERSION else {}
    tiles = {products: GroupTile(**tile) for products, tile in kept.items()}
    return Measurement(Tuning(**content["tuning"] | {"schedules": schedules, "tiles": tiles}), tuple(timings))


def _schedule(content: Mapping[str, Any]) -> Schedule:
    return Schedule(**{**content, "tiles": tuple(TileShape(**tile) for tile in content["tiles"])})
