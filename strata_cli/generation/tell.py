"""An answer's text told apart into what a reply carries: content, reasoning, and calls that are whole.

A call is passed on when it is complete: one that turns out to be malformed is text, and a stream cannot take back what
it began.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from typing_extensions import assert_never

from strata_cli.conversation import reply
from strata_cli.conversation.reply import ScoredToken
from strata_cli.conversation.request import Request
from strata_cli.generation.split import (
    CallArguments,
    CallBegan,
    CallEnded,
    CallFailed,
    Content,
    Event,
    Markup,
    Reasoning,
    Splitter,
)
from strata_cli.generation.split.shown import shown
from strata_cli.prompt.adapt import Reader
from strata_cli.prompt.template import ChatTemplate
from strata_cli.prompt.turn import Prompt


class Teller:
    """Reads the answer to one prompt; `notes` name the calls that stayed text."""

    def __init__(self, splitter: Splitter | None) -> None:
        self._splitter = splitter
        self._name = ""
        self._arguments: list[str] = []
        self._tokens: list[ScoredToken] = []
        self._failed = False
        self.notes: list[str] = []

    @classmethod
    def after(cls, prompt: Prompt, template: ChatTemplate, request: Request) -> Teller:
        """What reads the answer to this prompt; where calls cannot be told from text, a note says so."""
        learnt = shown(Reader(template, request.tools, request.template_kwargs))
        format = learnt.format if request.tools else None
        teller = cls(Splitter.after(prompt, learnt.turn, format, request.tools))
        if request.tools and learnt.note:
            teller.notes.append(learnt.note)
        return teller

    def push(self, text: str, tokens: Iterable[ScoredToken] = ()) -> Iterator[reply.Delta]:
        """What this text completes; the tokens go with the first piece that is shown."""
        self._tokens += tokens
        if self._splitter is None:
            yield reply.Text(text, self._taken())
            return
        for event in self._splitter.push(text):
            yield from self._said(event)

    def finish(self) -> Iterator[reply.Delta]:
        """What the answer's end completes."""
        for event in self._splitter.finish() if self._splitter is not None else ():
            yield from self._said(event)
        if self._tokens:
            yield reply.Text("", self._taken())

    def _taken(self) -> tuple[ScoredToken, ...]:
        tokens, self._tokens = tuple(self._tokens), []
        return tokens

    def _said(self, event: Event) -> Iterator[reply.Delta]:
        after_failure, self._failed = self._failed, isinstance(event, CallFailed)
        match event:
            case Content():
                yield reply.Text(event.text, self._taken())
            case Reasoning():
                yield reply.Reasoning(event.text, self._taken())
            case Markup() if after_failure:
                # The closing tag of a call that stays text stays with it.
                yield reply.Text(event.source, self._taken())
            case Markup():
                pass
            case CallBegan():
                self._name, self._arguments = event.name, []
            case CallArguments():
                self._arguments.append(event.text)
            case CallEnded():
                yield reply.CallBegan(self._name, event.id)
                yield reply.CallArguments("".join(self._arguments))
            case CallFailed():
                self.notes.append(f"a tool call in the answer is malformed ({event.status}) and stays text")
                yield reply.Text(event.raw, self._taken())
            case _:
                assert_never(event)
