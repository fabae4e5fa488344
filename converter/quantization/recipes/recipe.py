"""A recipe: entries that select nodes by regular expression and operator, and say how to quantize them.

Format: ai_edge_quantizer/qtyping.py and recipe_manager.py (0.10). The last entry that fits a node and has kernels for
it applies; a node that none fits stays in float. Among entries with the same ``regex``, one for all operators (``*``)
replaces all earlier ones; any other replaces the one for its operator.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from litecl.interpreter.schema import TensorType

ALL, INPUT, OUTPUT = "*", "INPUT", "OUTPUT"


class Mode(Enum):
    """How quantized weights are multiplied."""

    WEIGHT_ONLY = "weight-only"  # widened to floats
    DYNAMIC = "dynamic"  # with activations quantized at run time
    STATIC = "static"  # with integer activations throughout


class Algorithm(Enum):
    """How weights are quantized."""

    NOTHING = "no_quantize"
    MIN_MAX = "min_max_uniform_quantize"
    HALVES = "float_casting"
    MSE = "MSE"
    OCTAV = "OCTAV"
    GPTQ = "GPTQ"
    AWQ = "AWQ"
    OSCAR = "OSCAR"
    HADAMARD = "HADAMARD_ROTATION"
    DECOMPOSED_HADAMARD = "DECOMPOSED_HADAMARD_ROTATION"

    @property
    def scales(self) -> bool:
        """True if inputs and weights are first scaled by channel."""
        return self in (Algorithm.AWQ, Algorithm.OSCAR)

    @property
    def rotates(self) -> bool:
        """True if inputs and weights are first rotated."""
        return self in (Algorithm.HADAMARD, Algorithm.DECOMPOSED_HADAMARD)


FORMS: Mapping[str, tuple[int, bool]] = {
    "float32": (32, False),
    "float16": (16, False),
    "int8": (8, True),
    "int8_tensorwise": (8, False),
    "int4": (4, True),
    "int4_tensorwise": (4, False),
    "int2": (2, True),
}
"""The forms of operands: bits, and whether each output channel has a scale."""


@dataclass(frozen=True)
class Operand:
    """How the weights at a position of an operator are stored."""

    position: int
    form: str


@dataclass(frozen=True)
class Config:
    """How an operator is quantized.

    mode: None if not at all. bits: of weights; 16 for float16. activations: their type, in static mode. per_channel,
    block: whether each output channel, or each ``block`` elements of one, has a scale.
    symmetric: whether weights have no zero points. least: the fewest elements of weights to quantize.
    largest_rotation: the largest Hadamard matrix, 0 for any. compensates: whether columns compensate the errors of
    earlier ones, as in GPTQ, with the algorithm's scales. operands: the only weights to store, each with its own bits;
    empty for all.
    """

    mode: Mode | None = None
    bits: int = 8
    activations: TensorType | None = None
    per_channel: bool = True
    block: int = 0
    symmetric: bool = True
    least: int = 0
    largest_rotation: int = 0
    compensates: bool = False
    operands: tuple[Operand, ...] = ()

    def __str__(self) -> str:
        if self.mode is None:
            return "float"
        kind = "half" if self.bits == 16 else f"int{self.bits}"
        by = f" in blocks of {self.block}" if self.block else "" if self.per_channel else " with one scale"
        of = "" if self.activations is None else f", {self.activations.name.lower()} activations"
        return f"{self.mode.value} {kind}{by}{of}"


@dataclass(frozen=True)
class Entry:
    """The nodes that an entry fits, and how to quantize them.

    regex: searched for in the names of a node's outputs, each followed by ``;``. operation: ``*`` for all operators,
    ``INPUT`` and ``OUTPUT`` for the model's. number: the entry's place in the recipe.
    """

    regex: str
    operation: str
    algorithm: Algorithm
    config: Config
    number: int = 0

    @property
    def compensates(self) -> bool:
        """True if columns of weights compensate the errors of earlier ones."""
        return self.algorithm is Algorithm.GPTQ or self.config.compensates

    @property
    def measures(self) -> bool:
        """True if the entry needs representative data."""
        return self.config.mode is Mode.STATIC or self.compensates or self.algorithm.scales

    def fits(self, operation: str, scope: str) -> bool:
        """Return whether the entry fits an operator whose output names are ``scope``."""
        return self.operation in (ALL, operation) and self._pattern.search(scope) is not None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:  # cached here: re's own cache is too small for the recipe of a large model
        return re.compile(self.regex)

    def __str__(self) -> str:
        how = "" if self.algorithm in (Algorithm.NOTHING, Algorithm.MIN_MAX) else f", {self.algorithm.value}"
        return f"{self.operation} {self.regex!r}: {self.config}{how}"


@dataclass(frozen=True)
class Recipe:
    """Entries; the last that applies wins. source: the recipe as given, as plain data."""

    entries: tuple[Entry, ...]
    source: tuple[dict[str, Any], ...] = ()

    @property
    def measures(self) -> bool:
        """True if the recipe needs representative data."""
        return any(entry.measures for entry in self.entries)

    @property
    def activations(self) -> TensorType | None:
        """The type of integer activations, or None."""
        return next((e.config.activations for e in self.entries if e.config.activations is not None), None)
