"""Notes, errors and debug lines on stderr."""

from __future__ import annotations

from strata_cli.environment import Environment
from strata_cli.errors import StrataError
from strata_cli.output.terminal.sanitize import visible_line


class Messages:
    """Notes, errors, debug lines: a line each on stderr."""

    def __init__(self, environment: Environment, *, quiet: bool, debug: bool) -> None:
        self._stream = environment.stderr
        self._quiet = quiet
        self._debug = debug

    def note(self, text: str) -> None:
        if not self._quiet:
            self._line(f"note: {text}")

    def aside(self, text: str) -> None:
        """A note for a person who watches, and for no log."""
        if self._stream.terminal:
            self.note(text)

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


def error_line(error: StrataError) -> str:
    """One line: what happened, then what to do."""
    return visible_line(f"strata: {error.sentence}")
