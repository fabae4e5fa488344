"""Known failures, which don't count: a file with a line per pattern of checks, with the reason.

    CONV_2D/groups *: the driver miscompiles groups, reported as 1234
    # a line for notes

``*`` matches any characters, ``?`` a single one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from litecl.interpreter.errors import ModelError
from litecl.verify.record import BAD, Row


@dataclass(frozen=True)
class Waiver:
    """A pattern of check names, and why their failures don't count."""

    pattern: str
    reason: str

    def covers(self, check: str) -> bool:
        """Return whether the pattern matches a name."""
        escaped = re.escape(self.pattern).replace(r"\*", ".*").replace(r"\?", ".")
        return re.fullmatch(escaped, check) is not None


def load(path: Path) -> tuple[Waiver, ...]:
    """Read a file of waivers. Raises ModelError for a line without a reason."""
    waivers = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        pattern, _, reason = text.rpartition(": ")
        if not pattern or not reason.strip():
            raise ModelError(f"{path}, line {number}: expected 'PATTERN: REASON', got {text!r}")
        waivers.append(Waiver(pattern.strip(), reason.strip()))
    return tuple(waivers)


def waived(rows: Sequence[Row], waivers: Sequence[Waiver]) -> tuple[Row, ...]:
    """Set the reason of the first matching waiver on bad rows that have none yet."""

    def reason(check: str) -> str | None:
        return next((waiver.reason for waiver in waivers if waiver.covers(check)), None)

    return tuple(replace(row, waived=row.waived or reason(row.check)) if row.status in BAD else row for row in rows)


def unused(rows: Sequence[Row], waivers: Sequence[Waiver]) -> tuple[str, ...]:
    """Return a note for every waiver whose checks ran and none of which failed: it can be removed."""
    bad = {row.check for row in rows if row.status in BAD}
    return tuple(
        f"the waiver {waiver.pattern!r} covers no failure: remove it"
        for waiver in waivers
        if any(waiver.covers(row.check) for row in rows) and not any(map(waiver.covers, bad))
    )
