"""A terminal in memory, and what may be sent to one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable

import pyte

from strata_cli.environment import Environment, Interrupt, Stream

# All that Strata sends beside text: styles, newlines, tabs, and the erasure of the cursor's own line.
OURS = re.compile(r"\x1b\[[0-9;]*m|\r\x1b\[2K|\n|\t")
PREVIEW = re.compile(r"\x1b\[2m[^\x1b\n]*\x1b\[0m\r\x1b\[2K")


class Sent(Stream):
    """A stream that keeps what it is given."""

    def __init__(self, *, terminal: bool = True) -> None:
        super().__init__(None, Interrupt(), terminal=terminal)
        self.all = ""

    def write(self, data: bytes) -> None:
        self.all += data.decode()


def environment(columns: int = 80, *, terminal: bool = True, clock: Callable[[], float] = lambda: 0.0, **more: str):
    """An environment whose streams keep what they are given, at this width."""
    made = _Wide(None, False, Sent(terminal=terminal), Sent(terminal=terminal), {"TERM": "xterm", **more}, clock=clock)
    made.width = columns
    return made


class _Wide(Environment):
    width = 80

    def columns(self) -> int:
        return self.width


def controls(text: str) -> list[str]:
    """The control characters in what was sent that are none of ours."""
    return re.findall(
        r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\u2028\u2029]", OURS.sub("", text)
    )


def plain(text: str) -> str:
    """What was sent without the rows that were erased again, and without styles."""
    return re.sub(r"\x1b\[[0-9;]*m", "", PREVIEW.sub("", text))


def rows(text: str, columns: int, lines: int = 12) -> list[str]:
    """The rows of a terminal that was sent this, its history first."""
    screen = pyte.HistoryScreen(columns, lines, history=5000, ratio=0.5)
    # pyte drops what follows a character that has no width and combines with nothing.
    shown = "".join(
        letter for letter in text if unicodedata.category(letter) not in ("Mn", "Cf") or unicodedata.combining(letter)
    )
    pyte.Stream(screen).feed(shown.replace("\n", "\r\n"))
    history = ["".join(line[at].data for at in range(columns)).rstrip() for line in screen.history.top]
    return [*history, *(line.rstrip() for line in screen.display)]


def letters(rows: Iterable[str]) -> str:
    """All that is visible, without blanks."""
    return "".join("".join(row.split()) for row in rows)
