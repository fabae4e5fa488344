"""A table that lists its cells line by line if the terminal is too narrow for columns, and a console for it.

Names come from models, so control characters are escaped, and markup is ignored.
"""

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from litecl.interpreter.visible import visible, visible_lines

_WHOLE = 16  # characters; cells as wide as this are numbers and words, which are not folded
_UNBOUNDED = 10_000


class FittingTable(Table):
    """A table that folds only columns with wide cells, such as names. If the others don't fit beside 16 characters of
    each, it has a line per cell: column and value.

    A ``str`` cell is one line.
    """

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Add a row; see rich."""
        super().add_row(*(Text(visible(cell)) if isinstance(cell, str) else cell for cell in cells), **options)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render columns or lines."""
        if self._fits(console, options) or self._folds(console, options):
            yield from super().__rich_console__(console, options)
        else:
            yield from self._lines(console, options.max_width)

    def _fits(self, console: Console, options: ConsoleOptions) -> bool:
        return options.max_width >= Measurement.get(console, options.update_width(_UNBOUNDED), self).maximum

    def _folds(self, console: Console, options: ConsoleOptions) -> bool:
        """Return whether the table fits if wide columns and headings fold, and fix the width of the other columns."""
        wide = []
        for column in self.columns:
            width = max(map(_width, column.cells), default=0)
            wide += [column] if width > _WHOLE else []
            words = str(_text(column.header)).split()
            column.width = _WHOLE if width > _WHOLE else max(width, *map(cell_len, words), 1)
        fits = self._fits(console, options)
        for column in wide:
            column.width = None
        return fits

    def _lines(self, console: Console, width: int) -> Iterator[Text]:
        """Yield a line for each non-empty cell, and an empty line after each row.

        rich's grid looks the same but takes three times as long.
        """
        columns = [(_text(column.header), [*column.cells]) for column in self.columns]
        named = min(max(header.cell_len for header, _ in columns), width // 2)
        for i in range(self.row_count):
            for header, cells in columns:
                value = _text(cells[i])
                if not value:
                    continue
                names = header.wrap(console, named, overflow="fold")
                values = value.wrap(console, width - named - 1, overflow="fold")
                for name, part in zip_longest(names, values, fillvalue=Text()):
                    yield Text.assemble(Text.assemble(name, style="bold"), " " * (named + 1 - name.cell_len), part)
            yield Text()


def _width(cell: RenderableType) -> int:
    """Return the width of a cell's longest line."""
    return max((line.cell_len for line in _text(cell).split()), default=0)


def _text(cell: RenderableType) -> Text:
    return cell if isinstance(cell, Text) else Text(visible_lines(str(cell)))


class PlainConsole(Console):
    """A console that escapes all control characters, and ignores markup and emoji codes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render; see rich."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible_lines(segment.text), segment.style)
