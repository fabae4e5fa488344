"""Places at which something fails (opencl_faults.py, native_faults.py)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from litecl.interpreter.graph import Array
from support.fault_models import Subject

HOW = ("fallback", "strict", "interrupt")


@dataclass(frozen=True)
class Place:
    """One call of one subject in one mode, and how it fails (one of ``HOW``).

    kept: what the report says where nothing fails, and may say without a warning where nothing is lost.
    """

    subject: Subject
    mode: str
    number: int
    name: str
    how: str
    kept: Any = field(repr=False)

    def __str__(self) -> str:
        return f"{self.subject.name}, {self.mode}, {self.how}, call {self.number} ({self.name})"


class Wrong(Exception):
    """What is wrong at a place."""


def compare(got: Sequence[Array], wanted: Sequence[Array], when: str) -> None:
    """Raise Wrong where results are not those that are wanted."""
    for a, b in zip(got, wanted, strict=True):
        close = np.allclose(a, b, rtol=1e-4, atol=1e-5) if b.dtype.kind == "f" else np.array_equal(a, b)
        if not close or a.dtype != b.dtype:
            raise Wrong(f"{when}: differs by {np.abs(np.subtract(a, b, dtype=np.float64)).max()}")
