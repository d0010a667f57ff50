"""Markdown drawn while it comes, append-only: what was sent is never touched again.

Each line of the source is a line of the screen: its newlines, indentation and spaces are kept, so that text which is
no markdown comes out as it is. Words appear as they are complete, code line by line, a table when it is complete; until
then its current row stands on the cursor's line, the only thing that is ever erased.
"""

from __future__ import annotations

from collections.abc import Callable

from strata_cli.output.terminal.code import Highlighter
from strata_cli.output.terminal.inline import DIM, Inline
from strata_cli.output.terminal.line import Line, closes, read_line, unquoted
from strata_cli.output.terminal.sanitize import visible
from strata_cli.output.terminal.table import is_delimiter, records, table
from strata_cli.output.terminal.wrap import ERASE, GIVEN, Piece, Wrap, cells, drawn, width

RULE = 40
"""Columns of the line between two parts, and around code, where there is room."""
PART = 200
"""Characters of a line of code after which it is drawn without its end."""


class Markdown:
    """Draws an answer's text: `write` what came, then `finish`."""

    def __init__(self, send: Callable[[str], None], columns: Callable[[], int]) -> None:
        self._send = send
        self._columns = columns
        self._wrap = Wrap(columns)
        self._carriage = False
        self._head = ""
        self._inline: Inline | None = None
        self._verbatim = False
        self._in_list = False
        self._rows: list[Line] = []
        self._block: _Block | None = None
        self._drawn = 0
        self._preview = ""

    def write(self, text: str) -> None:
        for at, part in enumerate(visible(self._unix(text)).split("\n")):
            if at:
                self._end_line()
            if part:
                self._more(part)
        self._show()

    def begin(self, text: str, shown: str | None = None) -> None:
        """Take what is given of the answer: it is drawn as it was written, or only `shown`, and the rest follows it."""
        text = visible(self._unix(text))
        *lines, last = text.split("\n")
        for line in lines:
            self._follow(line)
        for at, part in enumerate((text if shown is None else visible(self._unix(shown))).split("\n")):
            if at:
                self._wrap.end_line()
            self._wrap.put(part, GIVEN)
        if last:
            self._go_on(last)
        self._show()

    def finish(self) -> None:
        """Draw what waits and end the last line; an answer without text stays without output."""
        if self._carriage:
            self._carriage = False
            self._more("␍")
        if self._head or self._inline is not None or not self._wrap.at_start:
            self._end_line()
        self._end_table()
        self._show()

    def _unix(self, text: str) -> str:
        """With the line ends of a model that writes CRLF made plain, wherever the text is cut."""
        if self._carriage:
            text = "\r" + text
        self._carriage = text.endswith("\r")
        return text[: len(text) - self._carriage].replace("\r\n", "\n")

    # A line while it comes

    def _more(self, text: str) -> None:
        if self._block is not None:
            self._head += text
            self._draw_parts()
        elif self._verbatim:
            self._wrap.verbatim([(text, "")])
        elif self._inline is not None:
            self._put(self._inline.push(text))
        else:
            self._head += text
            if not self._drawn and (line := read_line(self._head, complete=False, in_list=self._in_list)) is not None:
                self._begin_line(line)

    def _end_line(self) -> None:
        if self._block is not None:
            self._end_code_line(self._block)
        elif self._verbatim or self._inline is not None:
            if self._inline is not None:
                self._put(self._inline.end())
            self._wrap.end_line()
        else:
            line = read_line(self._head, complete=True, in_list=self._in_list)
            assert line is not None
            self._whole_line(line)
        self._head, self._inline, self._verbatim, self._drawn = "", None, False, 0

    def _begin_line(self, line: Line) -> None:
        """Draw a line from here on as it comes."""
        self._end_table()
        self._in_list = line.item or (self._in_list and line.indent > 0)
        self._wrap.begin(line.first, line.margin)
        self._head = ""
        if line.kind == "verbatim":
            self._verbatim = True
            self._wrap.verbatim([(line.text, "")])
        else:
            self._inline = Inline(line.style)
            self._put(self._inline.push(line.text))

    def _whole_line(self, line: Line) -> None:
        """Draw a line that could not be told before its end."""
        if line.kind == "row":
            self._row(line)
            return
        self._end_table()
        if self._drawn:
            self._wrap.put(self._head[self._drawn :], "")
            self._wrap.end_line()
        match line.kind:
            case "fence":
                self._open_block(line)
            case _ if self._drawn:
                pass
            case "rule":
                self._wrap.verbatim([*line.first, *self._rule(line.indent)])
                self._wrap.end_line()
            case "blank":
                self._wrap.verbatim([(text.rstrip(), style) for text, style in line.first])
                self._wrap.end_line()
            case _:
                self._begin_line(line)
                self._put(self._inline.end() if self._inline is not None else [])
                self._wrap.end_line()

    def _put(self, pieces: list[Piece]) -> None:
        for text, style in pieces:
            self._wrap.put(text, style)

    def _rule(self, indent: int, title: str = "") -> list[Piece]:
        begun = f"── {title} " if title else ""
        room = min(RULE, self._columns() - 1 - indent)
        return [(begun + "─" * max(room - width(begun), 3), DIM)]

    # Code

    def _open_block(self, line: Line) -> None:
        self._in_list = line.item or (self._in_list and line.indent > 0)
        self._block = _Block(line)
        if not self._drawn:
            self._wrap.verbatim([*line.first, *self._rule(line.indent, line.text)])
            self._wrap.end_line()

    def _end_code_line(self, block: _Block) -> None:
        if block.begun:
            self._draw_code(block, self._head)
            self._wrap.end_line()
            block.begun = False
        elif closes(block.own(self._head), block.fence):
            self._block = None
            self._wrap.verbatim([*block.first, *self._rule(block.indent)])
            self._wrap.end_line()
        elif block.left(self._head):
            self._block = None
            self._end_line()
        else:
            self._draw_code(block, block.own(self._head))
            self._wrap.end_line()

    def _draw_parts(self) -> None:
        """Draw a line that is too long to wait for its end."""
        block = self._block
        while block is not None and len(self._head) > PART and (block.begun or not block.left(self._head)):
            part, self._head = self._head[:PART], self._head[PART:]
            self._draw_code(block, part if block.begun else block.own(part))
            block.begun = True

    def _draw_code(self, block: _Block, text: str) -> None:
        if not block.begun and not self._drawn:
            self._wrap.verbatim(block.first)
        self._wrap.verbatim(_without(block.highlighter.line(text), self._drawn))
        self._drawn = max(self._drawn - len(text), 0)

    # Tables

    def _row(self, line: Line) -> None:
        if len(self._rows) == 1 and not is_delimiter(line.text):
            self._end_table()
        self._rows.append(line)

    def _end_table(self) -> None:
        rows, self._rows = self._rows, []
        if not rows:
            return
        first = rows[0]
        if len(rows) == 1:
            self._line_of(Inline().whole(first.text), first)
            return
        texts = [row.text for row in rows]
        if (picture := table(texts, self._columns() - first.indent)) is None:
            for pieces in records(texts):
                self._line_of(pieces, first)
            return
        for row in picture:
            self._wrap.verbatim([*first.first, (row, "")])
            self._wrap.end_line()

    def _line_of(self, pieces: list[Piece], line: Line) -> None:
        self._wrap.begin(line.first, line.margin)
        self._put(pieces)
        self._wrap.end_line()

    def _show(self) -> None:
        """Send what is certain, and the row of a table that is coming."""
        text, preview = self._wrap.take(), self._row_to_come()
        if text or preview != self._preview:
            erased = ERASE if self._preview else ""
            self._send(erased + text + drawn([(preview, DIM)]))
            self._preview = preview

    def _row_to_come(self) -> str:
        if self._block is not None or self._drawn or not self._wrap.at_start:
            return ""
        begun = self._head if self._rows or self._head.lstrip(" >").startswith("|") else ""
        return _fitting(begun or (self._rows[-1].text if self._rows else ""), self._columns())

    # What was given

    def _follow(self, text: str) -> None:
        """Know what a line that is not drawn here leaves open."""
        if (block := self._block) is not None:
            if not block.left(text) and not closes(block.own(text), block.fence):
                block.highlighter.line(block.own(text))
                return
            self._block = None
            if not block.left(text):
                return
        line = read_line(text, complete=True, in_list=self._in_list)
        if line is None or line.kind == "blank":
            return
        self._in_list = line.item or (self._in_list and line.indent > 0)
        if line.kind == "fence":
            self._block = _Block(line)

    def _go_on(self, text: str) -> None:
        """Go on with a line whose beginning is drawn."""
        if self._block is not None:
            self._head, self._drawn = text, len(self._block.own(text))
            return
        line = read_line(text, complete=True, in_list=self._in_list)
        assert line is not None
        if text.lstrip()[:1] in ("`", "~") and read_line(text, complete=False, in_list=self._in_list) is None:
            # This may open a block of code yet.
            self._head, self._drawn = text, len(text)
            return
        self._in_list = line.item or (self._in_list and line.indent > 0)
        self._verbatim = line.kind == "verbatim"
        self._inline = Inline(line.style, before=text[-1])


class _Block:
    """A block of code: what its lines begin with on the screen, and in the source."""

    def __init__(self, line: Line) -> None:
        self.fence = line.fence
        self.first = line.margin
        self.indent = line.indent
        self.highlighter = Highlighter(line.text)
        self.begun = False
        self._quotes = line.quotes

    def own(self, text: str) -> str:
        """A line without the quote's marks and the indentation that all of them have."""
        if self._quotes:
            text = unquoted(text)[0]
        blanks = len(text) - len(text.lstrip(" "))
        return text[min(blanks, self.indent) :]

    def left(self, text: str) -> bool:
        """Whether a line stands outside of the quote in which the block began."""
        return self._quotes > 0 and not unquoted(text)[1]


def _without(pieces: list[Piece], size: int) -> list[Piece]:
    """The pieces without so many characters at their beginning."""
    rest = []
    for text, style in pieces:
        rest.append((text[size:], style))
        size = max(size - len(text), 0)
    return rest


def _fitting(text: str, columns: int) -> str:
    """What of a row can stand on one line, even in a terminal that is made narrower meanwhile."""
    room = min(columns - 1, max(20, columns // 2))
    for at, letter in enumerate(text):
        room -= cells(letter)
        if room < 0:
            return text[:at]
    return text
