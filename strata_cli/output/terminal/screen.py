"""The answer as text on stdout, and everything that is said about it on stderr."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from strata_cli.environment import Environment, Stream
from strata_cli.errors import StrataError
from strata_cli.output.terminal.sanitize import visible, visible_line


class TextAnswer:
    """Writes text as it comes and ends it with a newline. On a terminal it shows control characters, elsewhere not."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._last = "\n"

    def write(self, text: str) -> None:
        if not text:
            return
        self._stream.text(visible(text) if self._stream.terminal else text)
        self._last = text[-1]

    def finish(self) -> None:
        """End the last line; an answer without text stays without output."""
        if self._last != "\n":
            self._stream.text("\n")
            self._last = "\n"


class Messages:
    """Notes, errors, debug lines: a line each on stderr."""

    def __init__(self, environment: Environment, *, quiet: bool, debug: bool) -> None:
        self._stream = environment.stderr
        self._quiet = quiet
        self._debug = debug

    def note(self, text: str) -> None:
        if not self._quiet:
            self._line(f"note: {text}")

    def debug(self, text: str) -> None:
        if self._debug:
            self._line(f"[strata] {text}")

    def log(self, text: str) -> None:
        """A line of llama.cpp's own log."""
        if self._debug:
            self._line(text)

    def line(self, text: str) -> None:
        self._line(text)

    def _line(self, text: str) -> None:
        self._stream.text((visible_line(text) if self._stream.terminal else text.replace("\n", " ")) + "\n")


class Span(Protocol):
    """A stretch of the prompt that did not come from the template."""

    start: int
    end: int
    kind: str


_COLOURS = {"template": "\x1b[2m", "message": "", "prefix": "\x1b[1;36m"}


def coloured_prompt(text: str, spans: Sequence[Span], *, colour: bool) -> str:
    """The prompt for a person: what the template wrote is dim, messages are plain, the prefix is bright."""
    pieces: list[str] = []
    at = 0
    for span in spans:
        pieces += [
            _stretch(text[at : span.start], "template", colour),
            _stretch(text[span.start : span.end], span.kind, colour),
        ]
        at = span.end
    pieces.append(_stretch(text[at:], "template", colour))
    return "".join(pieces)


def _stretch(text: str, kind: str, colour: bool) -> str:
    code = _COLOURS[kind] if colour and text else ""
    return f"{code}{visible(text)}\x1b[0m" if code else visible(text)


def error_line(error: StrataError) -> str:
    """One line: what happened, then what to do."""
    return visible_line(f"strata: {error.sentence}")
