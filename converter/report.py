"""Tells what a conversion did: operators, composites made one operator or not, the time that each pass took."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from litecl.converter.quantization.report import QuantizationReport
from litecl.interpreter.graph import Model


@dataclass(frozen=True)
class FusionRecord:
    """A composite or a layer in the model: what it is, where, and why it was converted piece by piece if it was."""

    name: str
    place: str
    reason: str | None = None

    @property
    def made(self) -> bool:
        """True if it became the operator that is made for it."""
        return self.reason is None

    def __str__(self) -> str:
        return (
            f"fused {self.name} {self.place!r}"
            if self.made
            else (f"not fused {self.name} {self.place!r}: {self.reason}")
        )


@dataclass
class ConversionReport:
    """Filled in by ``Converter.convert``.

    operators: how often each TFLite operator is in the model. subgraphs: how many operators each has.
    passes: seconds spent in each pass, by name. size_bytes: of the file; 0 until it is written.
    quantization: what quantization with integer activations did; None without.
    """

    operators: dict[str, int] = field(default_factory=dict)
    subgraphs: list[int] = field(default_factory=list)
    fusions: list[FusionRecord] = field(default_factory=list)
    passes: dict[str, float] = field(default_factory=dict)
    size_bytes: int = 0
    quantization: QuantizationReport | None = None

    def of(self, model: Model) -> "ConversionReport":
        """Return the report with what there is in a model."""
        operators = Counter(node.op.name for graph in model.subgraphs for node in graph.nodes)
        return replace(self, operators=dict(operators), subgraphs=[len(graph.nodes) for graph in model.subgraphs])

    @property
    def own_operators(self) -> list[str]:
        """Return the operators that only litecl runs."""
        return sorted(name for name in self.operators if name.startswith("litecl."))

    def to_dict(self) -> Mapping[str, Any]:
        """Return the report as plain data."""
        return {**asdict(self), "quantization": None if self.quantization is None else self.quantization.to_dict()}

    def __str__(self) -> str:
        lines = [f"{sum(self.subgraphs)} operators in {len(self.subgraphs)} subgraphs, {self.size_bytes} bytes"]
        lines += [f"  {count:5} {name}" for name, count in sorted(self.operators.items())]
        own = self.own_operators
        lines += [f"only litecl runs this file: LiteRT has no {', '.join(own)}"] if own else []
        lines += map(str, self.fusions)
        slowest = sorted(self.passes.items(), key=lambda item: -item[1])
        lines += [f"  {seconds * 1000:7.1f} ms {name}" for name, seconds in slowest]
        lines += [] if self.quantization is None else [str(self.quantization)]
        return "\n".join(lines)
