"""Assembly of GPUs, read: which loops there are, and what they consist of."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

VERSION = 2
"""Goes up when the same code gets other figures."""

_MULTIPLY_ADD = re.compile(
    r"\b(?:v_(?:dual_)?(?:fma|fmac|mad|mac|dot)\w*|v_pk_fma\w*|v_(?:wmma|mfma)\w*|dp4a|FFMA\d*|IDP|HMMA|fma\.rn\.\w+)\b"
    r"|\bIMAD(?=\s)"
)
_MATRIX = re.compile(r"\b(?:v_(?:wmma|mfma)_\w+|HMMA)\b")
_LOAD = re.compile(r"\b(?:(?:global|flat)_load_\w+|ld\.global\S*|LDG\S*)")
_WIDE = re.compile(r"x4|b128|\.v4|\.128")
_FEWEST = 4  # multiply-adds of a loop that counts


@dataclass(frozen=True)
class Code:
    """The lines of one function. label, jump: patterns of a label at its place, and of a jump to one."""

    lines: Sequence[str]
    label: str
    jump: str

    @cached_property
    def loops(self) -> list[tuple[int, int]]:
        """The first and the last line of every loop: from a label to a jump back to it."""
        places: dict[str, int] = {}
        found = []
        for number, line in enumerate(self.lines):
            if label := re.match(self.label, line):
                places[label.group(1)] = number
            elif (jump := re.search(self.jump, line)) and jump.group(1) in places:
                found.append((places[jump.group(1)], number))
        return found

    @property
    def multiply_adds(self) -> float | None:
        """The share of multiply-adds in the innermost loop that has most of them; None where none has any."""
        count, length = self._most(_MULTIPLY_ADD)
        return round(count / length, 3) if count >= _FEWEST else None

    @property
    def matrix(self) -> int | None:
        """The instructions of matrix units in the innermost loop that has most of them; None where none has any."""
        return self._most(_MATRIX)[0] or None

    def _most(self, pattern: re.Pattern[str]) -> tuple[int, int]:
        """The most instructions of a kind that an innermost loop has, and its length."""
        loops = self.loops
        inner = [(a, b) for a, b in loops if not any((a, b) != (c, d) and a <= c and d <= b for c, d in loops)]
        counts = []
        for first, last in inner:
            code = [line for line in self.lines[first : last + 1] if _is_instruction(line)]
            counts.append((sum(bool(pattern.search(line)) for line in code), len(code)))
        return max(counts, default=(0, 1))

    @property
    def wide_loads(self) -> float | None:
        """The share of loads from global memory within loops that take 16 bytes; None where there are none."""
        within = {number for first, last in self.loops for number in range(first, last + 1)}
        loads = [self.lines[number] for number in within if _LOAD.search(self.lines[number])]
        return round(sum(bool(_WIDE.search(line)) for line in loads) / len(loads), 3) if loads else None


def _is_instruction(line: str) -> bool:
    text = line.strip()
    return bool(text) and not text.startswith((".", ";", "//", "$", "{", "}")) and not text.endswith(":")
