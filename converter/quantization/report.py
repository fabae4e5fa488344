"""Reports the effect of quantization: each layer's scale, and its difference from the float model."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from litecl.converter.quantization.frontier import Frontier
from litecl.interpreter.data_frame import Library, frame
from litecl.interpreter.html import block, paragraph, table

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Layer:
    """A result of a float node.

    subgraph, node: its place in the float model. name: of the result's tensor. reason: why it stays in float, or None.
    type, scale, zero_point: of the quantized result. low, high: the measured range.
    saturated: the share of integers at the limits of their type.
    error: the root mean square difference from the float model. sqnr_db: the signal-to-noise ratio, including errors of
    all earlier layers. own_sqnr_db: the same if only this layer is quantized and its operands are exact.
    output_sqnr_db: that of the model's outputs if only this layer is quantized (measured with ``sensitivity=True``). An
    infinite ratio means no difference.
    """

    subgraph: int
    node: int
    op: str
    name: str
    reason: str | None = None
    type: str | None = None
    scale: float | None = None
    zero_point: int | None = None
    low: float | None = None
    high: float | None = None
    saturated: float | None = None
    error: float | None = None
    sqnr_db: float | None = None
    own_sqnr_db: float | None = None
    output_sqnr_db: float | None = None


@dataclass(frozen=True)
class Output:
    """An output of a signature, with its difference from the float model as in ``Layer``."""

    signature: str
    name: str
    error: float
    sqnr_db: float


@dataclass(frozen=True)
class StoredWeights:
    """A constant that a recipe stores in fewer bits.

    op: its reader. form: the stored format. float_bytes, stored_bytes: before and after, with scales. sqnr_db: of the
    stored weights.
    """

    op: str
    name: str
    form: str
    float_bytes: int
    stored_bytes: int
    sqnr_db: float


@dataclass(frozen=True)
class QuantizationReport:
    """The effect of quantization with integer activations, or by a recipe.

    layers: a row per result of a float node. outputs: the whole model's difference from the float model.
    samples: number used for ranges. measured: number used for errors. weights: stored in fewer bits by a recipe, with
    float activations. notes: what was asked for and not done. frontier: the result of a bit search.
    """

    layers: tuple[Layer, ...] = ()
    outputs: tuple[Output, ...] = ()
    samples: int = 0
    measured: int = 0
    weights: tuple[StoredWeights, ...] = ()
    notes: tuple[str, ...] = ()
    frontier: Frontier | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data; infinite ratios become None, since JSON has no infinity."""
        data: dict[str, Any] = _finite(asdict(self))
        return {"schema_version": SCHEMA_VERSION, **data}

    def to_json(self) -> str:
        """Return the report as JSON text."""
        return json.dumps(self.to_dict(), indent=1)

    def most_sensitive(self) -> list[Layer]:
        """Return the layers whose own error is known, worst first."""
        known = [layer for layer in self.layers if _harm(layer) is not None]
        return sorted(known, key=lambda layer: _harm(layer) or 0.0)

    def frame(self, rows: Literal["layers", "outputs", "weights"] = "layers", library: Library | None = None) -> Any:
        """Return rows as a data frame of pandas or polars (``frames.frame``). Raises MissingExtra without either."""
        return frame(getattr(self, rows), library)

    def _repr_html_(self) -> str:
        """Return the report as HTML for notebooks."""
        integers = [layer for layer in self.layers if layer.reason is None]
        floats = [layer for layer in self.layers if layer.reason is not None]
        return block(
            paragraph(f"{len(integers)} of {len(self.layers)} results became integers, from {self.samples} samples"),
            *map(paragraph, self.notes),
            table(("output", "signature", "error", "SQNR"), map(_output, self.outputs)),
            table(_LAYER, map(_row, integers)),
            table(("in float", "name", "reason"), ((x.op, x.name, x.reason) for x in floats)),
            table(_WEIGHTS, map(_weight, self.weights)),
        )

    def __str__(self) -> str:
        integers = [layer for layer in self.layers if layer.reason is None]
        lines = [f"note: {note}" for note in self.notes]
        lines += [] if self.frontier is None else [str(self.frontier)]
        lines += self._weights()
        if self.layers:
            count = f"{len(integers)} of {len(self.layers)}"
            lines.append(f"{count} results in float became integers, from {self.samples} samples")
        lines += [f"output {o.name} of {o.signature}: error {o.error:.3g}, SQNR {_db(o.sqnr_db)}" for o in self.outputs]
        if integers:
            lines += _aligned([_LAYER, *(_row(layer) for layer in integers)])
        lines += [f"in float: {x.op} {x.name}: {x.reason}" for x in self.layers if x.reason is not None]
        return "\n".join(lines)

    def _weights(self) -> list[str]:
        if not self.weights:
            return []
        before, after = sum(w.float_bytes for w in self.weights), sum(w.stored_bytes for w in self.weights)
        rows = [_WEIGHTS, *map(_weight, self.weights)]
        return [f"{len(self.weights)} constants of {before} bytes became {after} bytes", *_aligned(rows)]


_LAYER = ("op", "range", "scale", "zero", "saturated", "SQNR", "alone", "output", "name")
_WEIGHTS = ("op", "stored as", "bytes before", "after", "SQNR", "name")


def _output(row: Output) -> tuple[str, ...]:
    return (row.name, row.signature, f"{row.error:.3g}", _db(row.sqnr_db))


def _weight(row: StoredWeights) -> tuple[str, ...]:
    return (row.op, row.form, str(row.float_bytes), str(row.stored_bytes), _db(row.sqnr_db), row.name)


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def _harm(layer: Layer) -> float | None:
    return layer.own_sqnr_db if layer.output_sqnr_db is None else layer.output_sqnr_db


def _row(layer: Layer) -> tuple[str, ...]:
    spread = "" if layer.low is None else f"{layer.low:.4g} to {layer.high:.4g}"
    share = "" if layer.saturated is None else f"{layer.saturated:.2%}"
    numbers = (layer.sqnr_db, layer.own_sqnr_db, layer.output_sqnr_db)
    return (layer.op, spread, f"{layer.scale:.4g}", str(layer.zero_point), share, *map(_db, numbers), layer.name)


def _db(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return "exact" if math.isinf(ratio) else f"{ratio:.1f} dB"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, str) or not isinstance(value, Iterable):
        return None if isinstance(value, float) and not math.isfinite(value) else value
    return [_finite(item) for item in value]


@dataclass(frozen=True)
class Rescaled:
    """The changes that make a model safe in float16.

    powers: by result name, the exponent of the power of two it is now divided by. left: by result name, the largest
    magnitude still over 32768, half of float16's limit, where no power of two can be moved exactly. is_random: whether
    inputs were random. undone: why nothing was changed, or "".
    """

    powers: Mapping[str, int]
    left: Mapping[str, float]
    is_random: bool = False
    undone: str = ""

    def __str__(self) -> str:
        lines = [f"rescaled {name!r} by 2**{-power}" for name, power in self.powers.items()]
        lines += [f"not rescaled: {name!r}, up to {size:,.6g}" for name, size in self.left.items()]
        if self.undone:
            lines.append(self.undone)
        if self.left:
            lines.append("what is left needs float32: litecl bisect --fp16 names the nodes to keep")
        if not lines:
            lines.append("nothing is beyond the range of halves")
        return "\n".join([*lines, *(["ranges are those of random inputs"] if self.is_random else [])])
