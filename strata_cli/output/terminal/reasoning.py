"""A model's reasoning on stderr: dim, folded to a line, or hidden."""

from __future__ import annotations

from typing import Literal, TypeAlias

from strata_cli.environment import Environment
from strata_cli.output.terminal.inline import DIM
from strata_cli.output.terminal.sanitize import visible
from strata_cli.output.terminal.wrap import ERASE, Wrap, drawn

Thinking: TypeAlias = Literal["show", "fold", "hide"]

PAUSE = 0.2
"""Seconds between two drawings of the line to which reasoning is folded."""


class Reasoning:
    """`show` writes it as it comes, `fold` one line that says how much it was, `hide` nothing."""

    def __init__(self, environment: Environment, thinking: Thinking, *, colour: bool) -> None:
        self._stream = environment.stderr
        self._clock = environment.clock
        self._thinking = thinking
        self._style = DIM if colour else ""
        self._lively = self._stream.terminal and environment.variables.get("TERM") != "dumb"
        self._wrap = Wrap(environment.columns)
        self._last = "\n"
        self._began: float | None = None
        self._words = 0
        self._drawn_at: float | None = None

    @property
    def visible(self) -> bool:
        """Whether anything of it appears on the terminal."""
        return self._stream.terminal and self._thinking != "hide"

    def write(self, text: str) -> None:
        if self._began is None:
            self._began = self._clock()
        if self._thinking == "fold":
            self._count(text)
        elif self._thinking == "show" and text:
            self._show(text)

    def finish(self) -> None:
        """End it, if it began; more may follow later."""
        if self._began is None:
            return
        if self._thinking == "show" and self._last != "\n":
            self._wrap.end_line()
            self._stream.text(self._wrap.take() if self._stream.terminal else "\n")
        elif self._thinking == "fold":
            erased = ERASE if self._drawn_at is not None else ""
            self._stream.text(f"{erased}{drawn([(self._folded('thought'), self._style)])}\n")
        self._began, self._words, self._last, self._drawn_at = None, 0, "\n", None

    def _show(self, text: str) -> None:
        self._last = text[-1]
        if not self._stream.terminal:
            self._stream.text(text)
            return
        for at, line in enumerate(visible(text).split("\n")):
            if at:
                self._wrap.end_line()
            self._wrap.put(line, self._style)
        self._stream.text(self._wrap.take())

    def _count(self, text: str) -> None:
        """Count the words that begin in this piece."""
        begins = [before.isspace() and not letter.isspace() for before, letter in zip(self._last + text, text)]  # noqa: B905
        self._words += sum(begins)
        self._last = text[-1:] or self._last
        now = self._clock()
        if self._lively and (self._drawn_at is None or now - self._drawn_at >= PAUSE):
            self._drawn_at = now
            self._stream.text(f"{ERASE}{drawn([(self._folded('thinking'), self._style)])}")

    def _folded(self, verb: str) -> str:
        words = f"{self._words:,} word{'' if self._words == 1 else 's'}"
        return f"({verb}: {words}, {self._clock() - (self._began or 0):.0f} s)"
