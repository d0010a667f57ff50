"""Reads the tool calls of an answer, one after the other, and what stands around and between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from strata_cli.conversation.messages import Tool
from strata_cli.generation.split.bodies import Body
from strata_cli.generation.split.call import MissingName, NotACall, OpenCall
from strata_cli.generation.split.events import Content, Event, Markup
from strata_cli.generation.split.feed import Feed, Marks, Reader
from strata_cli.generation.split.notation import Broken, Unclosed, nothing
from strata_cli.prompt.toolformat.pieces import framed, runs
from strata_cli.prompt.toolformat.shape import Keyed, Record, ToolFormat


class Calls:
    """The calls of one answer; `emit` gets what they are as they come."""

    def __init__(
        self, format: ToolFormat, tools: Mapping[str, Tool], feed: Feed, emit: Callable[[Event], None]
    ) -> None:
        self._format = format
        self._feed = feed
        self._emit = emit
        self.call = OpenCall(feed, tools, emit, tentative=format.bare)
        self._section = _steps(format.section[0])
        self._opening = _steps(format.call[0])
        self._openings = Marks(self._opening)
        self._close = Marks(runs(format.call[1]))
        self._section_close = Marks(runs(format.section[1]))
        self._list_close = Marks("]" if format.many or format.section[0].endswith("[") else ())
        separator = "," if format.many else format.separator.strip() or (";" if format.bare else "")
        self._separator = Marks((separator,))
        self._tags = Marks(format.tags)
        self.begin = Marks(() if format.bare else self._beginnings())
        self.bare = Marks(("{", "[", *format.tags) if format.bare else ())
        self._ends = Marks((*self._close.texts, *self._section_close.texts, *self._begins()))
        self._body = Body(format, feed, self.call, self._ends)

    def _begins(self) -> tuple[str, ...]:
        return (*self._section[:1], *self._opening)

    def _beginnings(self) -> tuple[str, ...]:
        """What begins calls in content, with as much of the template's blanks before it as is there."""
        first = self._section[:1] or self._opening[:1]
        lead = self._format.lead
        return tuple(text for mark in dict.fromkeys((*first, *self._begins())) for text in framed(lead, mark, ""))

    # The calls, one after the other

    def read(self) -> Reader[None]:
        """Read the calls that begin here; where there is none, what was read is content."""
        yield from self._feed.blanks()
        if not (yield from self._first()):
            return self._as_content()
        while (yield from self._next()):
            try:
                yield from self._one()
            except NotACall:
                break
        yield from self._feed.blanks()
        if self._feed.at_end:
            self._mark()
        else:
            self._as_content()

    def _first(self) -> Reader[bool]:
        self._feed.record()
        if (yield from self._feed.accept(self._tags)):
            yield from self._feed.blanks()
        try:
            if (yield from self._accept_steps(self._section, 0)):
                yield from self._list_open()
            yield from self._one()
        except NotACall:
            return False
        return True

    def _next(self) -> Reader[bool]:
        """After a call: read what closes it and the calls; whether another may begin."""
        for marks in (self._close, self._list_close):
            yield from self._closing(marks)
        yield from self._feed.blanks()
        self._feed.record()
        if (yield from self._feed.accept(self._separator)):
            yield from self._feed.blanks()
            self._feed.record()
            return True
        if (yield from self._begins_again()):
            return True
        yield from self._closing(self._section_close)
        yield from self._feed.blanks()
        self._feed.record()
        if (yield from self._accept_steps(self._section, 0)):
            yield from self._list_open()
            return True
        return (yield from self._begins_again())

    def _begins_again(self) -> Reader[bool]:
        """Whether another call stands here."""
        if self._opening:
            return bool((yield from self._feed.which(self._openings)))
        if self._format.many or not isinstance(self._format.body, (Record, Keyed)):
            return False
        return (yield from self._feed.peek()) == "{"

    def _list_open(self) -> Reader[None]:
        if self._format.many:
            yield from self._feed.blanks()
            yield from self._feed.accept(_LIST)

    def _closing(self, marks: Marks) -> Reader[None]:
        yield from self._feed.blanks()
        if (yield from self._feed.accept(marks)):
            self._mark()

    def _accept_steps(self, steps: Sequence[str], start: int) -> Reader[bool]:
        """Read a marker's lines, blanks between them; whether it stands here. Raises NotACall where it stops short."""
        for place, step in enumerate(steps[start:]):
            if place:
                yield from self._feed.blanks()
            if not (yield from self._feed.accept(Marks((step,)))):
                if place:
                    raise NotACall
                return False
        return bool(steps[start:])

    def _mark(self) -> None:
        if source := self._feed.source():
            self._emit(Markup(source))

    def _as_content(self) -> None:
        if source := self._feed.source():
            self._emit(Content(source))

    # One call

    def _one(self) -> Reader[None]:
        """Read one call to the end of its arguments; a broken one is read up to what closes it."""
        self.call.start()
        yield from self._feed.blanks()
        yield from self._open_call()
        try:
            yield from self._body.read()
            self.call.end()
        except Broken as error:
            if self._format.bare and self.call.name is None:
                raise NotACall from None
            yield from self._fail(error, self._ends)

    def _open_call(self) -> Reader[None]:
        if not self._opening:
            return
        found = yield from self._feed.which(self._openings)
        if not found:
            raise NotACall
        yield from self._accept_steps(self._opening, self._opening.index(found))

    def enveloped(self, name: str, ends: Marks) -> Reader[None]:
        """Read the arguments of a call whose name stood in an envelope's header, up to the envelope's end."""
        self.call.start()
        try:
            self.call.named(name)
            yield from self._body.json_arguments(ends)
            self.call.end()
        except Broken as error:
            yield from self._fail(error, ends)

    def _fail(self, error: Broken, ends: Marks) -> Reader[None]:
        """A broken call: read up to what ends it."""
        nameless = isinstance(error, MissingName)
        if not isinstance(error, Unclosed) and not (isinstance(error, MissingName) and error.whole):
            yield from self._feed.until(ends, nothing)
        self.call.fail("unclosed" if isinstance(error, Unclosed) else "missing_name" if nameless else "invalid_json")


_LIST = Marks(("[",))


def _steps(marker: str) -> tuple[str, ...]:
    """A marker line by line: models differ in the blanks between."""
    return tuple(step for step in re.split(r"\s*\n\s*", marker.strip()) if step)
