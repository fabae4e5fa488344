"""The likeliest classes of a classifier's outputs, by name."""

import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, Quantization
from litecl.interpreter.ops.quantize import real

_NUMBERED = re.compile(r"(\d+)[\s:,]+(.+)")


@dataclass(frozen=True)
class Labels:
    """The names of classes, by number, and the file that has them."""

    names: Mapping[int, str]
    source: str

    @property
    def count(self) -> int:
        """Return how many classes the file is for."""
        return max(self.names, default=-1) + 1

    def name(self, index: int) -> str:
        """Return a class's name, or its number if it has none."""
        return self.names.get(index, str(index))

    def shift(self, classes: int) -> int | None:
        """Return what to add to an output's number for that of its name; None if the file is not for so many classes.

        One name more or less than classes is that of a background, which comes first.
        """
        difference = self.count - classes
        return difference if abs(difference) <= 1 else None


def labels_of(model: Path, given: Path | None) -> Labels | None:
    """Return the labels of a file, a line each, or "number name" lines; by default those that the model's file carries.

    Raises ModelError for an empty file, and OSError.
    """
    if given is not None:
        names = _names(given.read_text(encoding="utf-8", errors="replace"))
        if not names:
            raise ModelError(f"--labels {given}: expected a name a line, got none")
        return Labels(names, str(given))
    try:
        with zipfile.ZipFile(model) as attached:
            found = [name for name in attached.namelist() if "label" in name.lower() and name.endswith(".txt")]
            text = attached.read(found[0]).decode("utf-8", "replace") if found else ""
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError):
        return None
    names = _names(text)
    return Labels(names, f"{model.name}:{found[0]}") if names else None


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
    """Return the classes of the largest scores of each row, or None for an output that the labels are not for."""
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
    """Return the real numbers that an output's elements stand for."""
    scale, zero = detail["quantization"]
    return real(value, Quantization(np.full(1, scale), np.full(1, zero)) if scale else None)


def _label(labels: Labels | None, index: int) -> str:
    if labels is None:
        return str(index)
    return "background" if index < 0 else labels.name(index)
