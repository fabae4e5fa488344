"""Sizes known only at run time: products of symbols, with the arithmetic that models do on shapes."""

from dataclasses import dataclass
from typing import Any, Union


@dataclass(frozen=True)
class Size:
    """A product of unknown factors, ``scale * a * b * ...``; a factor is any hashable that names a number."""

    scale: int
    factors: tuple[Any, ...]

    @property
    def is_dimension(self) -> bool:
        """True for a single symbol that stands for a dimension rather than for a computed number."""
        return self.scale == 1 and len(self.factors) == 1 and self.factors[0][0] not in ("+", "-", "//")

    def __mul__(self, other: "Count") -> "Count":
        if isinstance(other, Size):
            return Size(self.scale * other.scale, tuple(sorted(self.factors + other.factors, key=repr)))
        return Size(self.scale * int(other), self.factors) if other else 0

    def __floordiv__(self, other: "Count") -> "Count":
        if other == self:
            return 1
        if not isinstance(other, Size) and self.scale % int(other) == 0:
            return Size(self.scale // int(other), self.factors)
        return symbol("//", self, other)

    def __add__(self, other: "Count") -> "Count":
        return self if not isinstance(other, Size) and other == 0 else symbol("+", self, other)

    def __sub__(self, other: "Count") -> "Count":
        return 0 if other == self else self if other == 0 else symbol("-", self, other)

    def __rsub__(self, other: int) -> "Count":
        return symbol("-", other, self)

    __rmul__ = __mul__
    __radd__ = __add__


Count = Union[int, Size]  # noqa: UP007 (a forward reference cannot be joined with |)


def symbol(*origin: Any) -> Size:
    """Return a symbol about which only its origin is known."""
    return Size(1, (origin,))
