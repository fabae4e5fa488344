"""Consoles for people."""

import os
import re
from collections.abc import Iterator
from typing import IO

from rich.console import Console
from rich.text import Text

from litecl.delegate.report_table import PlainConsole

_PIPED_WIDTH = 160  # characters, if there is no terminal


def console_of(stream: IO[str]) -> Console:
    """Return a console as wide as its terminal, or as COLUMNS says."""
    return PlainConsole(file=stream, width=None if _has_width(stream) else _PIPED_WIDTH)


def print_text(console: Console, text: Text) -> None:
    """Print text that wraps between words, so that a path stays whole. In a file or a pipe a line stays one."""
    lines = [*text.split("\n", allow_blank=True)]
    if _has_width(console.file):
        lines = [part for line in lines for part in line.divide(_breaks(line.plain, console.width))]
        for line in lines:
            line.rstrip()
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)


def _breaks(line: str, width: int) -> Iterator[int]:
    """Yield where the words begin that are the first of another line."""
    start = 0
    for word in re.finditer(r"\S+", line):
        if word.end() - start > width and line[start : word.start()].strip():
            start = word.start()
            yield start


def _has_width(stream: IO[str]) -> bool:
    return "COLUMNS" in os.environ or stream.isatty()
