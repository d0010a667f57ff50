"""The answer as text on stdout, and everything that is said about it on stderr."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from strata_cli.environment import Environment, Stream
from strata_cli.output.terminal.reasoning import Reasoning, Thinking
from strata_cli.output.terminal.sanitize import visible
from strata_cli.output.terminal.wrap import GIVEN


class TextAnswer:
    """Writes text as it comes and ends it with a newline. On a terminal it shows control characters, elsewhere not."""

    def __init__(self, stream: Stream, *, colour: bool = False) -> None:
        self._stream = stream
        self._colour = colour
        self._last = "\n"

    def begin(self, text: str, shown: str | None = None) -> None:
        """What is given of the answer, or `shown` instead: for a person at a terminal, and for nobody else."""
        text = visible(text if shown is None else shown)
        if text and self._stream.terminal:
            self._stream.text(f"\x1b[{GIVEN}m{text}\x1b[0m" if self._colour else text)
            self._last = text[-1]

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


class Text(Protocol):
    """Where an answer's own text goes."""

    def begin(self, text: str, shown: str | None = None) -> None: ...
    def write(self, text: str) -> None: ...
    def finish(self) -> None: ...


class Answer:
    """An answer on the screen: its text, and its reasoning beside it, never on one line where both are seen."""

    def __init__(self, text: Text, reasoning: Reasoning) -> None:
        self._text = text
        self._reasoning = reasoning
        self._begin: Callable[[], None] | None = None

    def begin(self, text: str, shown: str | None = None) -> None:
        """What is given of the text; it is shown with the first words after it, when no bar is in its place."""
        self._begin = lambda: self._text.begin(text, shown)

    def write(self, text: str) -> None:
        if text:
            self._reasoning.finish()
            if self._begin is not None:
                begin, self._begin = self._begin, None
                begin()
            self._text.write(text)

    def write_reasoning(self, text: str) -> None:
        if text:
            if self._reasoning.visible:
                self._text.finish()
            self._reasoning.write(text)

    def finish(self) -> None:
        """End the last lines; safe to call twice, and more may be written afterwards."""
        self._reasoning.finish()
        self._text.finish()


def answer_on(
    environment: Environment,
    stream: Stream,
    *,
    raw: bool = False,
    colour: str = "auto",
    thinking: Thinking = "show",
) -> Answer:
    """Markdown drawn where colours are, on a terminal; else, and with `raw`, the text as it is."""
    coloured = environment.colour(stream, colour)
    text: Text = TextAnswer(stream, colour=coloured)
    if stream.terminal and coloured and not raw:
        from strata_cli.output.terminal.markdown import Markdown

        text = Markdown(stream.text, environment.columns)
    return Answer(text, Reasoning(environment, thinking, colour=environment.colour(environment.stderr, colour)))
