"""Consoles for human-readable output."""

import os
import re
from collections.abc import Iterator
from typing import IO

from rich.console import Console
from rich.text import Text

from litecl.delegate.report_table import PlainConsole

_PIPED_WIDTH = 160  # characters, without a terminal


def console_of(stream: IO[str]) -> Console:
    """Return a console with the width of its terminal or of COLUMNS, else 160."""
    return PlainConsole(file=stream, width=None if _has_width(stream) else _PIPED_WIDTH)


def print_text(console: Console, text: Text) -> None:
    """Print text, wrapping between words so that paths stay whole. In a file or pipe, lines aren't wrapped."""
    lines = [*text.split("\n", allow_blank=True)]
    if _has_width(console.file):
        lines = [part for line in lines for part in line.divide(_breaks(line.plain, console.width))]
        for line in lines:
            line.rstrip()
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)


def _breaks(line: str, width: int) -> Iterator[int]:
    """Yield the positions of words that start a new line."""
    start = 0
    for word in re.finditer(r"\S+", line):
        if word.end() - start > width and line[start : word.start()].strip():
            start = word.start()
            yield start


def _has_width(stream: IO[str]) -> bool:
    return "COLUMNS" in os.environ or stream.isatty()
