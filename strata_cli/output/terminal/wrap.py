"""Words set on the rows of a terminal. Each character is sent once; nothing that was sent is touched again."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeAlias

Piece: TypeAlias = tuple[str, str]
"""Text that holds no control character, and the SGR codes that it is drawn with ("" for none)."""

GIVEN = "1;36"
"""What was given of an answer, beside what the model wrote."""
ERASE = "\r\x1b[2K"
"""Takes away what stands on the cursor's line."""

_JOINER, _EMOJI_STYLE = "\u200d", "\ufe0f"
# No row begins with these, and none ends with those: the few rules of CJK line breaking that readers miss.
_CLOSING = frozenset("、。，．！？；：）」』】》〉〕］｝…‥ーゝゞ々ぁぃぅぇぉっゃゅょァィゥェォッャュョ!?,.;:)]}'\"%”’")
_OPENING = frozenset("（「『【《〈〔［｛([{“‘")
_PARTS = re.compile(r"[ \t]+|[^ \t]+")
_TAB = " " * 4


@lru_cache(maxsize=4096)
def cells(letter: str) -> int:
    """The columns that a character takes, or more: terminals differ, and too wide only wraps a word early."""
    code = ord(letter)
    if code < 0x7F or letter == _EMOJI_STYLE:
        return 1
    if 0x1160 <= code <= 0x11FF or (unicodedata.category(letter) in ("Mn", "Me", "Cf") and code != 0xAD):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def width(text: str) -> int:
    return len(text) if text.isascii() else sum(map(cells, text))


def drawn(pieces: Iterable[Piece]) -> str:
    """The pieces as they are sent: each ends its own codes, so that none leaks whenever output breaks off."""
    return "".join(f"\x1b[{style}m{text}\x1b[0m" if style and text else text for text, style in pieces)


def styled(style: str, code: str) -> str:
    return f"{style};{code}" if style and code else style or code


class Wrap:
    """Collects what is to be sent: `put` sets words between the margins, `verbatim` leaves rows to the terminal.

    A word is held until its end is known. One that is longer than a row is sent whole, so that it can be copied.
    """

    def __init__(self, columns: Callable[[], int]) -> None:
        self._columns = columns
        self._known_columns = 0
        self._out: list[str] = []
        self._column = 0
        self._margin: tuple[Piece, ...] = ()
        self._margin_width = 0
        self._gap: list[Piece] = []
        self._word: list[Piece] = []
        self._last = ""

    @property
    def at_start(self) -> bool:
        """Whether the cursor stands at the beginning of a line and nothing waits."""
        return self._column == 0 and not self._word and not self._gap

    def take(self) -> str:
        """What is to be sent now."""
        text = "".join(self._out)
        self._out.clear()
        return text

    def begin(self, first: tuple[Piece, ...], margin: tuple[Piece, ...]) -> None:
        """Begin a line: its first row begins with `first`, each further one with `margin`."""
        self.verbatim(first)
        size = sum(width(text) for text, _ in margin)
        self._margin, self._margin_width = (margin, size) if size <= self._room() // 2 else ((), 0)

    def put(self, text: str, style: str) -> None:
        """Words in one style; a word may go on in the next call, in another style."""
        for part in _PARTS.findall(text):
            if part[0] in " \t":
                self._end_word()
                self._gap.append((part.replace("\t", _TAB), style))
            elif part.isascii():
                self._more(part, style)
            else:
                for letter in part:
                    self._more(letter, style)

    def verbatim(self, pieces: Iterable[Piece]) -> None:
        """Pieces as they are, spaces too; the terminal breaks what is too long."""
        self._end_word()
        pieces, self._gap = [*self._gap, *pieces], []
        self._send(pieces)

    def end_line(self) -> None:
        self._end_word()
        self._gap.clear()
        self._out.append("\n")
        self._column, self._margin, self._margin_width, self._last = 0, (), 0, ""

    def _more(self, text: str, style: str) -> None:
        if self._last and _may_break(self._last, text[0]):
            self._end_word()
        self._word.append((text, style))
        if cells(text[-1]) or text[-1] == _JOINER:
            self._last = text[-1]

    def _end_word(self) -> None:
        if not self._word:
            self._last = ""
            return
        size = sum(width(text) for text, _ in self._word)
        gap = sum(width(text) for text, _ in self._gap)
        if self._column + gap + size > self._room() and self._column > self._margin_width:
            self._out.append("\n" + drawn(self._margin))
            self._column = self._margin_width
            self._gap.clear()
        self._send([*self._gap, *self._word])
        self._gap.clear()
        self._word.clear()
        self._last = ""

    def _send(self, pieces: list[Piece]) -> None:
        self._out.append(drawn(_joined(pieces)))
        room = self._room()
        for text, _ in pieces:
            size = width(text)
            if self._column + size <= room:
                self._column += size
            else:
                self._overflow(text, room)

    def _overflow(self, text: str, room: int) -> None:
        """Follow the terminal, which breaks where a character has no room."""
        for letter in text:
            size = cells(letter)
            self._column = size if self._column + size > room else self._column + size

    def _room(self) -> int:
        columns = max(self._columns(), 1)
        if columns != self._known_columns:
            # A narrower terminal has broken the line on its own.
            if self._column > columns:
                self._column %= columns
            self._known_columns = columns
        return columns


def _may_break(before: str, after: str) -> bool:
    """Whether a row may end between two characters of a word: beside a wide one, unless they belong together."""
    if not cells(after) or after == _EMOJI_STYLE or before == _JOINER or 0x1F3FB <= ord(after) <= 0x1F3FF:
        return False
    if after in _CLOSING or before in _OPENING:
        return False
    return cells(before) == 2 or cells(after) == 2


def _joined(pieces: Iterable[Piece]) -> list[Piece]:
    """The same with neighbours of one style as one piece."""
    joined: list[Piece] = []
    for text, style in pieces:
        if joined and joined[-1][1] == style:
            joined[-1] = (joined[-1][0] + text, style)
        else:
            joined.append((text, style))
    return joined
