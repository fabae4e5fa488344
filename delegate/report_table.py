"""A table that gives each row lines of its own where the terminal is too narrow for columns."""

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table

_NARROW = 60  # characters: wider terminals fold cells, and keep columns
_UNBOUNDED = 10_000


class FittingTable(Table):
    """A table, or a line for each cell, its column and its value, where the table and 60 characters do not fit."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render columns or lines."""
        whole = Measurement.get(console, options.update_width(_UNBOUNDED), self).maximum
        if options.max_width >= min(whole, _NARROW):
            yield from super().__rich_console__(console, options)
        else:
            yield self._lines()

    def _lines(self) -> Table:
        """Return a line for each cell that holds anything, and an empty one after each row."""
        lines = Table.grid(padding=(0, 1))
        lines.add_column(style="bold", overflow="fold")
        lines.add_column(overflow="fold")
        columns = [(column.header, [*column.cells]) for column in self.columns]
        for i in range(self.row_count):
            for header, cells in columns:
                if str(cells[i]):
                    lines.add_row(header, cells[i])
            lines.add_row()
        return lines
