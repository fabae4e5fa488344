"""The report of a conversion: its operators, the fusions made and missed, and the time of each pass."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from litecl.converter.quantization.report import QuantizationReport, Rescaled
from litecl.interpreter.graph import Model
from litecl.interpreter.html import block, folded, paragraph, table

_MOST = 8  # operators named in a warning
_TOLERANCE = 1e-4  # of an output's largest magnitude: what another order of arithmetic explains


@dataclass(frozen=True)
class FusionRecord:
    """A composite or layer in the model. reason: why it was converted piece by piece; None if it was fused."""

    name: str
    place: str
    reason: str | None = None

    @property
    def made(self) -> bool:
        """True if it became its own operator."""
        return self.reason is None

    def __str__(self) -> str:
        return (
            f"fused {self.name} {self.place!r}"
            if self.made
            else (f"not fused {self.name} {self.place!r}: {self.reason}")
        )


@dataclass(frozen=True)
class OwnOperator:
    """A litecl operator in the model. place: the node in the user's model. line: the user's code that made it."""

    name: str
    place: str
    line: str | None = None

    def __str__(self) -> str:
        return f"{self.name} of {self.place!r}" + (f", made in {self.line}" if self.line else "")


class ConversionWarning(UserWarning):
    """Warns that LiteRT can't run the file, or that its results are not the source's."""


@dataclass
class ConversionReport:
    """Filled in by ``Converter.convert``.

    operators: number of nodes by TFLite operator. subgraphs: number of operators in each.
    own: operators that only litecl runs, if converted from TensorFlow.
    rounded: casts to int64 from what the source computes in float64, and the file in float32.
    passes: seconds spent in each pass, by name. size_bytes: of the file; 0 until it is written.
    quantization: the result of quantization with integer activations, or None. rescaled: the rescaling for float16, or
    None. notes: what converting an ONNX file changes. differences: the largest difference of each output from ONNX
    Runtime's, relative to its largest magnitude; empty if the source is no ONNX file, or nothing was compared.
    """

    operators: dict[str, int] = field(default_factory=dict)
    subgraphs: list[int] = field(default_factory=list)
    fusions: list[FusionRecord] = field(default_factory=list)
    own: list[OwnOperator] = field(default_factory=list)
    rounded: list[str] = field(default_factory=list)
    passes: dict[str, float] = field(default_factory=dict)
    size_bytes: int = 0
    quantization: QuantizationReport | None = None
    rescaled: Rescaled | None = None
    notes: list[str] = field(default_factory=list)
    differences: dict[str, float] = field(default_factory=dict)

    def of(self, model: Model) -> "ConversionReport":
        """Return the report with the operators of a model counted."""
        operators = Counter(node.op.name for graph in model.subgraphs for node in graph.nodes)
        return replace(self, operators=dict(operators), subgraphs=[len(graph.nodes) for graph in model.subgraphs])

    @property
    def own_operators(self) -> list[str]:
        """The names of operators that only litecl runs."""
        return sorted(filter(is_own, self.operators))

    @property
    def warning(self) -> str | None:
        """The warning of operators that LiteRT lacks, and where they come from, and of what differs from the source."""
        return "\n".join([*self._own_warning, *self._rounding, *self._differing]) or None

    @property
    def _rounding(self) -> list[str]:
        names = ", ".join(map(repr, self.rounded[:_MOST]))
        beyond = "numbers beyond 16,777,216 are rounded"
        return [f"the file computes float64 in float32, so in {names} {beyond}"] if names else []

    @property
    def _differing(self) -> list[str]:
        return [
            f"output {name!r} differs from ONNX Runtime's by {apart:.2g} of its largest magnitude"
            for name, apart in self.differences.items()
            if not apart <= _TOLERANCE
        ]

    @property
    def _own_warning(self) -> list[str]:
        if not self.own_operators:
            return []
        places = [f"  {operator}" for operator in dict.fromkeys(self.own)]
        more = [f"  and {len(places) - _MOST} more, which the report lists"] if len(places) > _MOST else []
        return [self._lacking, *places[:_MOST], *more]

    @property
    def _lacking(self) -> str:
        return f"LiteRT has no {', '.join(self.own_operators)}: only litecl runs what needs them"

    def to_dict(self) -> Mapping[str, Any]:
        """Return the report as plain data."""
        return {**asdict(self), "quantization": None if self.quantization is None else self.quantization.to_dict()}

    def _repr_html_(self) -> str:
        """Return the report as HTML for notebooks."""
        head = f"{sum(self.subgraphs)} operators in {len(self.subgraphs)} subgraphs, {self.size_bytes:,} bytes"
        passes = ((name, f"{1e3 * duration_s:.1f}") for name, duration_s in self.passes.items())
        return block(
            paragraph(head),
            *(() if self.warning is None else (paragraph(self.warning, "warning"),)),
            *map(paragraph, self.notes),
            table(("operator", "nodes"), sorted(self.operators.items())),
            folded("passes", table(("pass", "ms"), passes), opened=False),
            "" if self.quantization is None else self.quantization._repr_html_(),
        )

    def __str__(self) -> str:
        lines = [f"{sum(self.subgraphs)} operators in {len(self.subgraphs)} subgraphs, {self.size_bytes} bytes"]
        lines += [f"  {count:5} {name}" for name, count in sorted(self.operators.items())]
        lines += [self._lacking] if self.own_operators else []
        lines += [f"  {operator}" for operator in self.own]
        lines += self._rounding
        lines += self.notes
        lines += [f"{name!r} is within {apart:.1e} of ONNX Runtime" for name, apart in self.differences.items()]
        lines += map(str, self.fusions)
        slowest = sorted(self.passes.items(), key=lambda item: -item[1])
        lines += [f"  {seconds * 1000:7.1f} ms {name}" for name, seconds in slowest]
        lines += [str(part) for part in (self.quantization, self.rescaled) if part is not None]
        return "\n".join(lines)


def is_own(name: str) -> bool:
    """Return whether litecl defines the operator."""
    return name.startswith("litecl.")
