"""A table that gives each row lines of its own where the terminal is too narrow for columns, and a console for it.

Names in it come from models: what would control the terminal is written out, and nothing is taken for markup.
"""

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from litecl.interpreter.visible import visible, visible_lines

_NARROW = 60  # characters: wider terminals fold cells, and keep columns
_UNBOUNDED = 10_000


class FittingTable(Table):
    """A table, or a line for each cell, its column and its value, where the table and 60 characters do not fit.

    A cell that is a ``str`` is one line.
    """

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Add a row; see rich."""
        super().add_row(*(Text(visible(cell)) if isinstance(cell, str) else cell for cell in cells), **options)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render columns or lines."""
        wide = options.max_width >= _NARROW
        if wide or options.max_width >= Measurement.get(console, options.update_width(_UNBOUNDED), self).maximum:
            yield from super().__rich_console__(console, options)
        else:
            yield from self._lines(console, options.max_width)

    def _lines(self, console: Console, width: int) -> Iterator[Text]:
        """Yield a line for each cell that holds anything, and an empty one after each row.

        A grid of rich's looks the same and takes three times as long.
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


def _text(cell: RenderableType) -> Text:
    return cell if isinstance(cell, Text) else Text(visible_lines(str(cell)))


class PlainConsole(Console):
    """A console that writes control characters out, wherever they come from, and takes nothing for markup or emoji."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render; see rich."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible_lines(segment.text), segment.style)
