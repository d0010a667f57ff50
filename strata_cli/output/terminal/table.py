"""A table that is complete: its columns set side by side, or row by row where they have no room."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any, Literal, TypeAlias

from strata_cli.output.terminal.inline import BOLD, CODE, DIM, ITALIC, STRIKE, UNDERLINE, Inline
from strata_cli.output.terminal.wrap import Piece, width

Alignment: TypeAlias = Literal["left", "center", "right"]

NARROWEST = 6
"""Columns of text below which a table's column is unreadable."""
_NAMES = {BOLD: "bold", DIM: "dim", ITALIC: "italic", UNDERLINE: "underline", STRIKE: "strike", CODE: "magenta"}
_DELIMITER = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_CELL = re.compile(r"((?:\\.|`[^`]*`|[^|\\`]|\\$|`)*)(?:\||$)")


def is_delimiter(row: str) -> bool:
    """Whether this is the line below a table's head."""
    return bool(_DELIMITER.match(row.strip()))


def table(rows: list[str], columns: int) -> list[str] | None:
    """The rows of the screen for a table whose second row is the line below its head; None where it has no room."""
    lines = _filled(rows)
    wanted = [min(NARROWEST, max(_size(line[at]) for line in lines)) for at in range(len(lines[0]))]
    if sum(wanted) + 3 * len(wanted) + 1 > columns:
        return None
    below = _cells(rows[1])
    return _side_by_side(lines, [*map(_alignment, below), *["left"] * (len(lines[0]) - len(below))], columns)


def records(rows: list[str]) -> list[list[Piece]]:
    """Each cell as a line of its own, behind its column's name, and a blank line between two rows."""
    head, *body = _filled(rows)
    if not body:
        return [_bold(cell) for cell in head]
    lines: list[list[Piece]] = []
    for row in body:
        lines += [[], *([*_bold(name), (": ", DIM), *cell] for name, cell in zip(head, row, strict=True))]
    return lines[1:]


def _filled(rows: list[str]) -> list[list[list[Piece]]]:
    """The cells of the head and of the body, as many in each row."""
    head, below, *body = [_cells(row) for row in rows]
    size = max(map(len, (head, below, *body)))
    return [[Inline().whole(cell) for cell in (*line, *[""] * (size - len(line)))] for line in (head, *body)]


def _size(pieces: list[Piece]) -> int:
    return sum(width(text) for text, _ in pieces)


def _cells(row: str) -> list[str]:
    """The cells of a row; a mark within code or behind a backslash separates none."""
    text = row.strip()
    text = text.removeprefix("|")
    cells = [found.group(1).strip() for found in _CELL.finditer(text) if found.start() < len(text)]
    return [cell.replace("\\|", "|") for cell in cells] or [""]


def _alignment(cell: str) -> Alignment:
    if cell.endswith(":"):
        return "center" if cell.startswith(":") else "right"
    return "left"


def _side_by_side(lines: list[list[list[Piece]]], alignment: list[Alignment], columns: int) -> list[str]:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    drawing = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold", border_style="dim")
    for cell, justify in zip(lines[0], alignment, strict=True):
        drawing.add_column(_text(cell), justify=justify, overflow="fold")
    for line in lines[1:]:
        drawing.add_row(*map(_text, line))
    file = StringIO()
    console = Console(
        file=file, width=columns, force_terminal=True, color_system="standard", legacy_windows=False, no_color=False
    )
    console.print(drawing)
    return [line.rstrip(" ") for line in file.getvalue().strip("\n").split("\n")]


def _text(pieces: list[Piece]) -> Any:
    from rich.text import Text

    text = Text()
    for part, style in pieces:
        text.append(part, " ".join(_NAMES[code] for code in style.split(";") if code))
    return text


def _bold(cell: list[Piece]) -> list[Piece]:
    return [(text, BOLD) for text, _ in cell]
