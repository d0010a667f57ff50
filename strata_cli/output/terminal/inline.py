"""Bold, code and links within a line, as it comes. What is held back until its end is seen is short and limited.

Markup is what nobody would write by chance: `2 * 3 * 4`, `snake_case`, `__init__`, `x**2 + y**2`, `[*]` and `[INFO]`
are text. Everything else follows CommonMark where a line is enough to decide.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from strata_cli.output.terminal.wrap import Piece, styled

LIMIT = 200
"""Characters that an opened span may have; longer ones are shown as they are written."""
LINK_TEXT = 100

BOLD, DIM, ITALIC, UNDERLINE, STRIKE, CODE = "1", "2", "3", "4", "9", "35"

_MARKS = re.compile(r"[\\`*_~\[!]")
_ESCAPED = frozenset("*_`~#")
# What may stand before a mark that opens, beside a space; what cannot follow it; what cannot precede one that closes.
_BEFORE = frozenset("([\"'“‘«—–-:>|*_~")
_NOT_FIRST = frozenset(")]}.,;:!?")
_NOT_LAST = frozenset("([{")
_LINK = re.compile(r"\[([^\[\]]+)\]\([ \t]*((?:(?:[^\s()<>]|\([^\s()<>]*\))*|<[^<>\s]*>)(?:[ \t]+\"[^\"]*\")?)[ \t]*\)")
_NO_LINK = re.compile(r"\[[^\[\]]*\]\([ \t]*[^\s()]+[ \t]+[^\s\")]")


@dataclass(frozen=True, slots=True)
class _Span:
    """So many characters, drawn as these pieces."""

    length: int
    pieces: tuple[Piece, ...]


class Inline:
    """One line's markup: give it text as it comes, get what is certain."""

    def __init__(self, style: str = "", before: str = " ") -> None:
        self._style = style
        self._before = before
        self._held = ""

    def push(self, text: str) -> list[Piece]:
        return self._scan(self._held + text, final=False)

    def end(self) -> list[Piece]:
        """What was held, now that the line is over."""
        return self._scan(self._held, final=True)

    def whole(self, text: str) -> list[Piece]:
        """A line that is complete already."""
        return [*self.push(text), *self.end()]

    def _scan(self, text: str, final: bool) -> list[Piece]:
        pieces, used = _scan(text, self._before, self._style, final)
        if used:
            self._before = text[used - 1]
        self._held = text[used:]
        return pieces


def _scan(text: str, before: str, style: str, final: bool) -> tuple[list[Piece], int]:
    """The pieces of what can be decided, and how much of the text that is."""
    pieces: list[Piece] = []
    at = 0
    while found := _MARKS.search(text, at):
        start = found.start()
        if start > at:
            pieces.append((text[at:start], style))
        window = text[start : start + LIMIT]
        span = _span(window, text[start - 1] if start else before, style, final or len(window) == LIMIT)
        if span is None:
            return pieces, start
        pieces += span.pieces
        at = start + span.length
    if at < len(text):
        pieces.append((text[at:], style))
    return pieces, len(text)


def _span(window: str, before: str, style: str, complete: bool) -> _Span | None:
    """What the mark at the beginning of the window makes of it; None where more text has to come first."""
    match window[0]:
        case "\\":
            return _escape(window, style, complete)
        case "`":
            return _code(window, style, complete)
        case "[":
            return _link(window, style, complete)
        case "!":
            return _image(window, style, complete)
    return _emphasis(window, before, style, complete)


def _literal(text: str, style: str) -> _Span:
    return _Span(len(text), ((text, style),))


def _escape(window: str, style: str, complete: bool) -> _Span | None:
    if len(window) == 1:
        return _literal(window, style) if complete else None
    if window[1] in _ESCAPED:
        return _Span(2, ((window[1], style),))
    return _literal(window[:2] if window[1] == "\\" else "\\", style)


def _run(text: str, at: int = 0) -> int:
    """The number of times that a character is repeated."""
    end = at + 1
    while end < len(text) and text[end] == text[at]:
        end += 1
    return end - at


def _code_end(window: str, at: int) -> int:
    """Where the code that begins here ends, -1 if it does not; at the window's end it may still go on."""
    size = _run(window, at)
    start = at + size
    while (start := window.find("`", start)) >= 0:
        length = _run(window, start)
        if start + length == len(window):
            return start + length if length == size else -1
        if length == size:
            return start + length
        start += length
    return -1


def _code(window: str, style: str, complete: bool) -> _Span | None:
    size = _run(window)
    end = _code_end(window, 0)
    if not complete and end in (-1, len(window)):
        return None
    if end < 0:
        return _literal(window[:size], style)
    text = window[size : end - size]
    if text.startswith(" ") and text.endswith(" ") and text.strip():
        text = text[1:-1]
    return _Span(end, ((text, styled(style, CODE)),))


def _emphasis(window: str, before: str, style: str, complete: bool) -> _Span | None:
    mark, size = window[0], _run(window)
    if size == len(window):
        return _literal(window, style) if complete else None
    if not _opens(mark, size, before, window[size]):
        return _literal(window[:size], style)
    at = size
    special = re.compile(rf"[\\`{re.escape(mark)}]")
    while found := special.search(window, at):
        at = found.start()
        if window[at] == "\\":
            at += 2
        elif window[at] == "`":
            end = _code_end(window, at)
            if not complete and end in (-1, len(window)):
                return None
            at = end if end > 0 else at + _run(window, at)
        else:
            length = _run(window, at)
            end = at + length
            if end == len(window) and not complete:
                return None
            inner = window[size : end - size]
            if _closes(mark, size, length, inner, window[at - 1], window[end : end + 1]):
                codes = {1: ITALIC, 2: STRIKE if mark == "~" else BOLD, 3: f"{BOLD};{ITALIC}"}[size]
                return _Span(end, tuple(_scan(inner, mark, styled(style, codes), True)[0]))
            at = end
    return _literal(window[:size], style) if complete else None


def _opens(mark: str, size: int, before: str, after: str) -> bool:
    if size > 3 or (mark == "~" and size != 2):
        return False
    if after.isspace() or after in _NOT_FIRST:
        return False
    return before.isspace() or before in _BEFORE or (mark != "_" and not before.isascii())


def _closes(mark: str, size: int, length: int, inner: str, before: str, after: str) -> bool:
    if length not in (size, 3) or before.isspace() or before in _NOT_LAST:
        return False
    if mark == "_":
        identifier = size == 2 and re.fullmatch(r"\w+", inner)
        return not identifier and not (after.isalnum() or after == "_")
    if after.isascii() and after.isalnum():
        # Part of a word may be bold; x**2 + y**2 is not.
        return size == 2 and not any(map(str.isspace, inner))
    return True


def _link(window: str, style: str, complete: bool) -> _Span | None:
    close = window.find("]", 0, LINK_TEXT + 2)
    if close < 0:
        undecided = not complete and len(window) < LINK_TEXT + 2
        return None if undecided else _literal("[", style)
    if close + 1 == len(window) and not complete:
        return None
    if window[close + 1 : close + 2] != "(":
        return _literal("[", style)
    if found := _LINK.match(window):
        text, target = found.groups()
        pieces = _scan(text, "[", styled(style, UNDERLINE), True)[0]
        if target != text:
            pieces.append((f" ({target})", styled(style, DIM)))
        return _Span(found.end(), tuple(pieces))
    return _literal("[", style) if complete or _NO_LINK.match(window) else None


def _image(window: str, style: str, complete: bool) -> _Span | None:
    """A picture is shown by its description and its address."""
    if len(window) == 1:
        return _literal(window, style) if complete else None
    if window[1] == "[":
        link = _link(window[1:], style, complete)
        if link is None:
            return None
        return _Span(link.length + 1, (("!", style), *link.pieces))
    return _literal("!", style)
