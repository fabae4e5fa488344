"""Tables on narrow terminals: a line for each cell, folded beside its column's name."""

import io

from rich.console import Console
from rich.text import Text

from litecl.cli.tables import table


def _printed(width: int, *rows: tuple[str | Text, ...]) -> str:
    made = table("name", "what it is", "ms")
    for row in rows:
        made.add_row(*row)
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(made)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_rows_are_lines_where_columns_do_not_fit() -> None:
    printed = _printed(24, ("ABS", "float32 int32 int16 int8", "1.5"), (Text("ADD"), "", "[b]2[/c]"))
    assert [line.rstrip() for line in printed.splitlines()] == [
        "name       ABS",
        "what it is float32 int32",
        "           int16 int8",
        "ms         1.5",
        "",
        "name       ADD",
        "ms         [b]2[/c]",  # as a model may name a tensor
        "",
    ]
    assert max(map(len, printed.splitlines())) <= 24


def test_long_words_and_names_are_folded() -> None:
    lines = _printed(12, ("A" * 13, "", "1")).splitlines()
    assert [line.rstrip() for line in lines] == ["name   AAAAA", "       AAAAA", "       AAA", "ms     1", ""]


def test_columns_stay_where_they_fit() -> None:
    assert "what it is" in _printed(60, ("A", "b" * 80, "1")).splitlines()[1]
    assert len(_printed(24, ("A", "b", "1")).splitlines()) <= 5
