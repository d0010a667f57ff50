"""The splitter: an answer's text goes in, in chunks; what it is comes out."""

from __future__ import annotations

import re
from collections.abc import Mapping

from strata_cli.conversation.messages import Tool
from strata_cli.generation.split.calls import Calls
from strata_cli.generation.split.events import (
    CallArguments,
    CallBegan,
    Content,
    Event,
    Markup,
    Reasoning,
)
from strata_cli.generation.split.feed import Feed, Marks, Reader
from strata_cli.prompt.tags import FAMILIES, Family
from strata_cli.prompt.toolformat.outline import closes
from strata_cli.prompt.toolformat.schema import name_of
from strata_cli.prompt.toolformat.shape import Envelope, ToolFormat, Turn
from strata_cli.prompt.turn import Opening, Prompt

_NONE = Marks(())
_RECIPIENT = re.compile(r"to=([^\s<]+)")
_CHANNEL = re.compile(r"<\|channel\|>(\w+)")
_HEADERS = Marks(("<|channel|>", "<|message|>", "<|constrain|>", "to="))
_NOT_CALLED = frozenset(("self", "user", "all", "assistant", ""))


class Splitter:
    """Tells reasoning, content and tool calls apart while an answer comes.

    `turn` and `format` are what the template shows (`format` None: calls stay text); `said` is what the answer was
    given to begin with after `opening`, which is not part of the events; `begun` says that the prompt ends with
    `turn.start`.
    """

    def __init__(
        self,
        turn: Turn,
        opening: Opening,
        format: ToolFormat | None = None,
        tools: tuple[Tool, ...] = (),
        *,
        said: str = "",
        begun: bool = False,
    ) -> None:
        self._turn = turn
        self._events: list[Event] = []
        before = turn.start if begun and turn.envelope is None else ""
        self._feed = Feed(skip=len(before) + len(said))
        named: Mapping[str, Tool] = {name: tool for tool in tools if (name := name_of(tool)) is not None}
        self._calls = None if format is None else Calls(format, named, self._feed, self._emit)
        self._recipient = None if format is None else format.recipient
        begin = self._calls.begin.texts if self._calls is not None else ()
        self._content_marks = Marks((*turn.content, *begin))
        self._opens = Marks(_opens(turn, opening.family))
        self._leads = Marks(turn.leads)
        self._bare = self._calls.bare if self._calls is not None else _NONE
        self._fresh = True
        self._reader = self._whole(opening, begun=begun)
        next(self._reader)
        self._begin(before + said)

    @classmethod
    def after(
        cls, prompt: Prompt, turn: Turn, format: ToolFormat | None = None, tools: tuple[Tool, ...] = ()
    ) -> Splitter:
        """The splitter for what a model writes after this prompt."""
        begun = bool(turn.start) and prompt.text[: prompt.header_end].endswith(turn.start)
        opening, said = prompt.opening, said_in(prompt)
        if not said and prompt.header_end == len(prompt.text) and turn.envelope is None:
            opening, said = _at_tag(prompt, turn)
        return cls(turn, opening, format, tools, said=said, begun=begun)

    def push(self, text: str) -> list[Event]:
        """The events that this text completes."""
        if text:
            self._feed.push(text)
            self._advance()
        return self._drained()

    def finish(self) -> list[Event]:
        """The events that the answer's end completes; nothing may be pushed after it."""
        self._feed.ended = True
        self._advance()
        return self._drained()

    def _advance(self) -> None:
        next(self._reader, None)

    def _drained(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def _emit(self, event: Event) -> None:
        self._events.append(event)

    def _begin(self, said: str) -> None:
        """Read what the answer begins with; of its events only those of a call that is still open remain."""
        if not said:
            return
        self._feed.push(said)
        self._advance()
        events = self._drained()
        call = None if self._calls is None else self._calls.call
        if call is None or not call.began:
            if call is not None:
                call.count = 0
            return
        start = max(index for index, event in enumerate(events) if isinstance(event, CallBegan))
        self._events = [
            call.renumber(event) for event in events[start:] if isinstance(event, (CallBegan, CallArguments))
        ]

    # What the text is

    def _reason(self, _: str) -> None:
        if text := self._feed.source():
            self._emit(Reasoning(text))

    def _say(self, _: str) -> None:
        self._fresh = False
        if text := self._feed.source():
            self._emit(Content(text))

    def _mark(self) -> None:
        if source := self._feed.source():
            self._emit(Markup(source))

    # Readers

    def _whole(self, opening: Opening, *, begun: bool) -> Reader[None]:
        yield
        if self._turn.envelope is not None:
            yield from self._messages(self._turn.envelope, opening, begun=begun)
            return
        if opening.where == "reasoning":
            yield from self._reasoning(opening.family)
        while (yield from self._content(_NONE)):
            pass

    def _reasoning(self, family: Family | None) -> Reader[None]:
        """Read reasoning up to and with what closes it."""
        found = yield from self._feed.until(self._closes(family), self._reason)
        self._feed.take(len(found))
        self._mark()

    def _closes(self, family: Family | None) -> Marks:
        if family is None or family == self._turn.family:
            return Marks(self._turn.closes)
        return Marks(closes(family))

    def _content(self, stops: Marks) -> Reader[str]:
        """Read content, with reasoning at its beginning and calls anywhere, up to a stop, which is returned unread."""
        if self._fresh:
            yield from self._beginning()
        marks = Marks((*self._content_marks.texts, *stops.texts)) if stops.texts else self._content_marks
        while True:
            found = yield from self._feed.until(marks, self._say)
            if not found or found in stops.texts:
                return found
            if found in self._turn.content:
                self._feed.take(len(found))
                self._mark()
            else:
                yield from self._read_calls()

    def _beginning(self) -> Reader[None]:
        """At the beginning of content: a block that the model opens itself, and calls that no marker begins.

        Blanks before a marker belong to it here, where they can be no part of a text.
        """
        yield from self._feed.blanks()
        opened = yield from self._feed.accept(self._opens)
        if opened:
            self._mark()
            yield from self._reasoning(_family_of(opened))
            yield from self._feed.blanks()
        elif (yield from self._feed.accept(self._leads)):
            self._mark()
        found = yield from self._feed.which(self._content_marks)
        if found in self._turn.content:
            self._feed.take(len(found))
            self._mark()
        elif found or (yield from self._feed.which(self._bare)):
            yield from self._read_calls()
        else:
            self._say("")

    def _read_calls(self) -> Reader[None]:
        assert self._calls is not None
        self._fresh = False
        yield from self._calls.read()

    # Envelopes

    def _messages(self, envelope: Envelope, opening: Opening, *, begun: bool) -> Reader[None]:
        """Read messages one after the other: their headers, and what they are for."""
        ends = Marks((*envelope.ends, envelope.start))
        if begun:
            yield from self._message(envelope, ends, bare=True)
        elif opening.where == "reasoning":
            yield from self._feed.until(ends, self._reason)
        else:
            yield from self._content(ends)
        while (yield from self._feed.peek()):
            found = yield from self._feed.accept(ends)
            if found == envelope.start:
                yield from self._message(envelope, ends)
            elif found:
                self._mark()
            else:
                yield from self._content(ends)

    def _headed(self) -> Reader[bool]:
        """Whether what follows the role is a header."""
        yield from self._feed.blanks()
        return bool((yield from self._feed.which(_HEADERS)))

    def _message(self, envelope: Envelope, ends: Marks, *, bare: bool = False) -> Reader[None]:
        """Read a header, of which the prompt said the role already where it is `bare`, and the message after it."""
        self._feed.record()
        if bare and not (yield from self._headed()):
            yield from self._content(ends)
            return
        header: list[str] = []
        found = yield from self._feed.until(Marks((envelope.message, *ends.texts)), header.append)
        text = "".join(header)
        if found != envelope.message:
            self._mark() if _CHANNEL.search(text) or _RECIPIENT.search(text) else self._say("")
            return
        self._feed.take(len(found))
        recipient = (_RECIPIENT.search(text) or ("", ""))[1]
        channel = (_CHANNEL.search(text) or ("", ""))[1]
        if self._calls is not None and self._recipient is not None and recipient not in _NOT_CALLED:
            yield from self._calls.enveloped(recipient.removeprefix(self._recipient), ends)
            yield from self._feed.blanks()
            return
        self._mark()
        if recipient == "self" or (channel == "analysis" and not recipient):
            yield from self._feed.until(ends, self._reason)
        else:
            yield from self._content(ends)


def _at_tag(prompt: Prompt, turn: Turn) -> tuple[Opening, str]:
    """The place before the tag with which a prompt ends, and the tag: the blanks after it are still to come."""
    opening = prompt.opening
    tags = turn.opens if opening.where == "reasoning" else turn.closes
    tag = max((tag for tag in tags if prompt.text.endswith(tag)), key=len, default="")
    if not tag or opening.family != turn.family:
        return opening, ""
    return Opening("content" if opening.where == "reasoning" else "reasoning", opening.family), tag


def said_in(prompt: Prompt) -> str:
    """What of the prompt is the beginning of the answer and comes after the place of its opening."""
    continued = prompt.kind == "continuation" and prompt.opening.where == "content"
    own = [span for span in prompt.spans if span.kind == "message"][-1:] if continued else []
    prefix = [span for span in prompt.spans if span.kind == "prefix"]
    return "".join(prompt.text[span.start : span.end] for span in (*own, *prefix))


def _opens(turn: Turn, family: Family | None) -> tuple[str, ...]:
    """What may open reasoning: as the template shows it, else the tags of the family that the prompt shows."""
    if family is None or family == turn.family or any(text.startswith(family.open) for text in turn.opens):
        return turn.opens
    return (*turn.opens, family.open + "\n", family.open)


def _family_of(opened: str) -> Family:
    return next(family for family in FAMILIES if opened.startswith(family.open))
