"""The result of a bit search: the best errors by size, and each layer's contribution."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Point:
    """A choice for all layers, with its file size and the measured SQNR of its worst output.

    predicted_db: the SQNR if the layers' errors add up. picked: the way of each layer, by number.
    """

    size_bytes: int
    sqnr_db: float
    predicted_db: float
    picked: tuple[int, ...]


@dataclass(frozen=True)
class Sensitivity:
    """File size (to within the padding of constants) and SQNR if only one layer is stored in a way."""

    layer: str
    way: str
    size_bytes: int
    sqnr_db: float


@dataclass(frozen=True)
class Frontier:
    """The best choices by size.

    float_bytes: size of the float file. chosen: the choice asked for. points: it and others by size, each with a higher
    SQNR than all smaller ones (the chosen one is always there). sensitivity: every layer in every way. ways: the chosen
    way of each layer. recipe: the same as entries of a recipe file.
    note: why the file, the most accurate one measured within the size limit, is over a percent smaller than allowed.
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
