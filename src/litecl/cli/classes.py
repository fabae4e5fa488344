"""Classifiers' likeliest classes, by name."""

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, Quantization
from litecl.interpreter.ops.quantize import real

_NUMBERED = re.compile(r"(\d+)[\s:,]+(.+)")
_LONGEST = 1 << 24  # bytes of an attached file of labels


@dataclass(frozen=True)
class Labels:
    """Class names by number. source: the file they come from."""

    names: Mapping[int, str]
    source: str

    @property
    def count(self) -> int:
        """The number of classes, by the largest numbered name."""
        return max(self.names, default=-1) + 1

    def name(self, index: int) -> str:
        """Return a class's name, or its number if it has none."""
        return self.names.get(index, str(index))

    def shift(self, classes: int) -> int | None:
        """Return the offset from an output's class number to its name's; None if the number of classes doesn't fit.

        One name more or less than classes means that either includes a background, which comes first.
        """
        difference = self.count - classes
        return difference if abs(difference) <= 1 else None


def labels_of(model: Path, given: Path | None) -> Labels | None:
    """Return the labels in a file, with a name or "number name" per line; by default those attached to the model file.

    Raises ModelError for an empty file, and OSError.
    """
    if given is not None:
        names = _names(given.read_text(encoding="utf-8", errors="replace"))
        if not names:
            raise ModelError(f"--labels {given}: expected a name a line, got none")
        return Labels(names, str(given))
    try:
        with zipfile.ZipFile(model) as attached:
            files = [name for name in attached.namelist() if "label" in name.lower() and name.endswith(".txt")]
            text = attached.open(files[0]).read(_LONGEST).decode("utf-8", "replace") if files else ""
    except Exception:  # no archive; or damaged bytes: whatever zipfile and zlib raise
        return None
    names = _names(text)
    return Labels(names, f"{model.name}:{files[0]}") if names else None


def _names(text: str) -> dict[int, str]:
    lines = [line.strip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    numbered = [_NUMBERED.fullmatch(line) for line in lines if line]
    if lines and all(numbered):
        return {int(each[1]): each[2] for each in numbered if each}
    return {number: line for number, line in enumerate(lines) if line}


def top(
    value: Array, detail: Mapping[str, Any], labels: Labels | None, count: int
) -> list[list[dict[str, Any]]] | None:
    """Return each row's classes with the largest scores, or None for an output that the labels don't fit."""
    classes = value.shape[-1] if value.ndim else 0
    shift = 0 if labels is None else labels.shift(classes)
    if classes < 2 or value.dtype.kind not in "fiu" or shift is None:
        return None
    rows = scores_of(value, detail).astype(np.float64).reshape(-1, classes)
    order = np.argsort(-rows, axis=1, kind="stable")[:, :count]
    return [
        [{"index": int(i), "label": _label(labels, int(i) + shift), "score": float(scores[i])} for i in likeliest]
        for scores, likeliest in zip(rows, order, strict=True)
    ]


def scores_of(value: Array, detail: Mapping[str, Any]) -> Array:
    """Return an output's real values, dequantized if needed."""
    scale, zero = detail["quantization"]
    return real(value, Quantization(np.full(1, scale), np.full(1, zero)) if scale else None)


def _label(labels: Labels | None, index: int) -> str:
    if labels is None:
        return str(index)
    return "background" if index < 0 else labels.name(index)
