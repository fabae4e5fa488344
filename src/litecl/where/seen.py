"""What a runtime did with a specimen: a record."""

from dataclasses import asdict, dataclass
from typing import Any

CLOSE = 1e-4  # relative difference of floats that counts as rounding; longer sums round more than those of cases


@dataclass
class Seen:
    """What a runtime did with a specimen.

    kind: of its node; version: of the operator. refused: its message; None if it ran. numbers: compared; differing: of
    these. steps: the largest difference of integers; relative: of floats, relative to the largest magnitude. wrong: a
    difference that isn't a number: another shape, infinities, or results that change from run to run. special: whether
    its inputs or results have NaN, infinities, or numbers near the limits of their type. npu: whether a compiler places
    it on its NPU; False for the CPU, then refused says why.
    """

    name: str
    kind: str
    version: int
    refused: str | None = None
    numbers: int = 0
    differing: int = 0
    steps: float = 0.0
    relative: float = 0.0
    wrong: str = ""
    special: bool = False
    npu: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def model_of(name: str) -> str:
    """Return the model out of which a specimen of this name was cut; "" for a case."""
    model, _, number = name.rpartition("#")
    return model if number.replace("/", "").isdecimal() else ""
