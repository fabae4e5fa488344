"""The outcome of a search for bits: the best errors by size, and how much each layer contributes."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Point:
    """A choice for all layers: the bytes of its file, and the lowest ratio of signal to error of an output, measured.

    predicted_db: the ratio if the errors of layers add up. picked: the way of each layer, by number.
    """

    size_bytes: int
    sqnr_db: float
    predicted_db: float
    picked: tuple[int, ...]


@dataclass(frozen=True)
class Sensitivity:
    """The file, to within the padding of constants, and the outputs' ratio if one layer alone is stored in a way."""

    layer: str
    way: str
    size_bytes: int
    sqnr_db: float


@dataclass(frozen=True)
class Frontier:
    """The best choices by size.

    float_bytes: the file in float. chosen: the choice that was asked for. points: that one and others, by size.
    sensitivity: every layer in every way. ways: the chosen way of each layer. recipe: the entries that say the same, as
    a recipe file has them. note: why the file, the most accurate of those that were measured within the size, is more
    than a percent smaller than it might be.
    """

    float_bytes: int
    chosen: Point
    points: tuple[Point, ...]
    sensitivity: tuple[Sensitivity, ...]
    ways: tuple[tuple[str, str], ...]
    recipe: tuple[dict[str, Any], ...]
    note: str = ""

    def __str__(self) -> str:
        lines = [
            f"{p.size_bytes} bytes: {p.sqnr_db:.1f} dB{' (chosen)' if p is self.chosen else ''}" for p in self.points
        ]
        lines += [self.note] if self.note else []
        return "\n".join([*lines, *(f"{way}: {layer}" for layer, way in self.ways)])
