"""Reads tool calls as a learnt format says they are written, and says what they are while they come."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from typing_extensions import assert_never

from strata_cli.conversation.messages import Tool
from strata_cli.generation.split.elements import elements_text
from strata_cli.generation.split.events import (
    CallArguments,
    CallBegan,
    CallEnded,
    CallFailed,
    CallStatus,
    Content,
    Event,
    Markup,
)
from strata_cli.generation.split.feed import Feed, Marks, Reader
from strata_cli.generation.split.notation import (
    Broken,
    Literal,
    Unclosed,
    blanks,
    closed_by,
    expect,
    json_string,
    json_text,
    json_value,
    nothing,
    separated,
    word,
)
from strata_cli.prompt.toolformat.pieces import framed, runs
from strata_cli.prompt.toolformat.schema import types_of
from strata_cli.prompt.toolformat.shape import (
    KEY,
    Arguments,
    Keyed,
    Literals,
    Parameters,
    Path,
    Record,
    ToolFormat,
)


class NotACall(Exception):
    """What follows a marker is nothing like a call; all of it is text."""


class MissingName(Broken):
    """A call that says no name."""


_FIELD = re.compile(r"[^\s<>{}()\[\]\"'=|,:]*")


class Calls:
    """The calls of one answer; `emit` gets what they are as they come."""

    def __init__(
        self, format: ToolFormat, tools: Mapping[str, Tool], feed: Feed, emit: Callable[[Event], None]
    ) -> None:
        self._format = format
        self._tools = tools
        self._feed = feed
        self._emit = emit
        self.count = 0
        self._call = _OpenCall()
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
        self._parameters = _ParameterMarks(format) if isinstance(format.body, Parameters) else None

    def _begins(self) -> tuple[str, ...]:
        return (*self._section[:1], *self._opening)

    def _beginnings(self) -> tuple[str, ...]:
        """What begins calls in content, with as much of the template's blanks before it as is there."""
        first = self._section[:1] or self._opening[:1]
        lead = self._format.lead
        return tuple(text for mark in dict.fromkeys((*first, *self._begins())) for text in framed(lead, mark, ""))

    @property
    def open(self) -> bool:
        """Whether a call began that has not ended."""
        return self._call.index is not None

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
        self._call = _OpenCall()
        yield from self._feed.blanks()
        yield from self._open_call()
        try:
            yield from self._body()
            self._end()
        except Broken as error:
            if self._format.bare and self._call.name is None:
                raise NotACall from None
            yield from self._fail(error)

    def _open_call(self) -> Reader[None]:
        if not self._opening:
            return
        found = yield from self._feed.which(self._openings)
        if not found:
            raise NotACall
        yield from self._accept_steps(self._opening, self._opening.index(found))

    def _body(self) -> Reader[None]:
        body = self._format.body
        match body:
            case Record():
                yield from self._record(body)
            case Keyed():
                yield from self._keyed()
            case Arguments():
                yield from self._header()
                yield from self._json_arguments()
            case Parameters():
                yield from self._header()
                yield from self._parameter_list(body)
            case Literals():
                yield from self._header()
                yield from self._literal_list(body)
            case _:
                assert_never(body)

    def _fail(self, error: Broken) -> Reader[None]:
        if not isinstance(error, Unclosed) and not self._call.whole:
            yield from self._feed.until(self._ends, nothing)
        status: CallStatus = "invalid_json"
        if self._call.unknown:
            status = "unknown_tool"
        elif isinstance(error, Unclosed):
            status = "unclosed"
        elif isinstance(error, MissingName):
            status = "missing_name"
        self._failed(status)

    def _failed(self, status: CallStatus) -> None:
        call = self._call
        self._call = _OpenCall()
        self._emit(CallFailed(status, self._feed.recorded(), call.name, call.index, self._feed.source()))

    def _end(self) -> None:
        call = self._call
        if call.unknown:
            return self._failed("unknown_tool")
        if not call.argued:
            self._argue("{}")
        assert call.index is not None
        self._call = _OpenCall()
        self._emit(CallEnded(call.index, call.id, self._feed.source()))

    def _named(self, name: str) -> None:
        """The name is known: the call begins, unless no tool has it."""
        call = self._call
        if not name:
            raise MissingName
        call.name = name
        call.unknown = bool(self._tools) and name not in self._tools
        if call.unknown:
            if self._format.bare:
                raise NotACall
            return
        call.index = self.count
        self.count += 1
        self._emit(CallBegan(call.index, name, call.id, self._feed.source()))
        if call.held is not None:
            self._argue("".join(call.held))

    def _argue(self, text: str) -> None:
        """Pass on a piece of the arguments' JSON."""
        call = self._call
        call.argued = True
        if call.index is not None and text:
            self._emit(CallArguments(call.index, text, self._feed.source()))

    def renumber(self, event: Event) -> Event:
        """The event of the open call as the first call's."""
        self.count, self._call.index = 1, 0
        return replace(event, index=0) if isinstance(event, (CallBegan, CallArguments)) else event

    # Bodies

    def enveloped(self, name: str, ends: Marks) -> Reader[None]:
        """Read the arguments of a call whose name stood in an envelope's header, up to the envelope's end."""
        self._call, self._ends = _OpenCall(), ends
        try:
            self._named(name)
            yield from self._json_arguments()
            self._end()
        except Broken as error:
            yield from self._fail(error)

    def _header(self) -> Reader[None]:
        """Read the fields before the arguments and what stands between them."""
        name = ""
        for part in self._format.header:
            if isinstance(part, str):
                yield from self._literal_part(part)
                continue
            found: list[str] = []
            yield from self._feed.matching(_FIELD, found.append)
            text = "".join(found)
            if part.slot == "name":
                name = text
            elif part.slot == "id":
                self._call.id = text or None
        if not name:
            raise MissingName
        self._named(name)

    def _literal_part(self, part: str) -> Reader[None]:
        yield from self._feed.blanks()
        core = part.strip()
        if core and not (yield from self._feed.accept(Marks((core,)))):
            if self._feed.at_end:
                raise Unclosed
            raise NotACall

    def _json_arguments(self) -> Reader[None]:
        """Read the arguments' JSON object; where the call is closed at once, it has none."""
        yield from self._feed.blanks()
        char = yield from self._feed.peek()
        if char == "{":
            yield from json_value(self._feed, self._argue)
        elif char and not (yield from self._feed.which(self._ends)):
            raise Broken
        elif not char:
            raise Unclosed

    def _record(self, body: Record) -> Reader[None]:
        yield from self._object_here()
        yield from self._object(body, ())
        if self._call.name is None:
            self._call.whole = True
            raise MissingName

    def _object_here(self) -> Reader[None]:
        yield from self._feed.blanks()
        if (yield from self._feed.peek()) != "{":
            raise Unclosed if self._feed.at_end and not self._format.bare else NotACall

    def _object(self, body: Record, path: Path) -> Reader[None]:
        """Read a JSON object and take name, id and arguments from under their keys."""
        feed = self._feed
        yield from expect(feed, "{")
        yield from blanks(feed, nothing)
        close = yield from feed.peek()
        while close != "}":
            key = yield from self._text()
            yield from blanks(feed, nothing)
            yield from expect(feed, ":")
            yield from blanks(feed, nothing)
            yield from self._member(body, (*path, key))
            yield from blanks(feed, nothing)
            close = yield from feed.peek()
            if close != "}":
                yield from expect(feed, ",")
                yield from blanks(feed, nothing)
        feed.take(1)

    def _member(self, body: Record, path: Path) -> Reader[None]:
        if path == body.name:
            self._named((yield from self._text()))
        elif path == body.arguments:
            yield from self._argument_value()
        elif path == body.id and (yield from self._feed.peek()) == '"':
            self._call.id = yield from self._text()
        elif path in (body.name[: len(path)], body.arguments[: len(path)]):
            yield from self._object(body, path)
        elif self._format.bare and self._call.name is None and path[-1] not in ("type", "id"):
            raise NotACall
        else:
            yield from json_value(self._feed, nothing)

    def _text(self) -> Reader[str]:
        """Read a JSON string and decode it."""
        parts: list[str] = []
        yield from json_string(self._feed, parts.append)
        return json.loads("".join(parts))  # type: ignore[no-any-return]

    def _argument_value(self) -> Reader[None]:
        """Read the arguments: an object, the JSON text of one inside a string, or null for none."""
        call = self._call
        char = yield from self._feed.peek()
        if char == "{" and call.name is not None:
            yield from json_value(self._feed, self._argue)
            return
        parts: list[str] = []
        if char == '"':
            parts = [_object_text((yield from self._text()))]
        else:
            yield from json_value(self._feed, parts.append)
            if char != "{":
                parts = [_object_text("{}" if parts == ["null"] else "")]
        if call.name is None:
            call.held = parts
        else:
            self._argue("".join(parts))

    def _keyed(self) -> Reader[None]:
        feed = self._feed
        yield from self._object_here()
        feed.take(1)
        yield from blanks(feed, nothing)
        self._named((yield from self._text()))
        yield from blanks(feed, nothing)
        yield from expect(feed, ":")
        yield from blanks(feed, nothing)
        if (yield from feed.peek()) != "{":
            raise Unclosed if feed.at_end else Broken
        yield from json_value(feed, self._argue)
        yield from blanks(feed, nothing)
        yield from expect(feed, "}")

    def _literal_list(self, body: Literals) -> Reader[None]:
        """Read arguments in a programming language's form up to their closing bracket."""
        feed, literal = self._feed, Literal(body.quote, raw=body.raw)
        yield from feed.blanks()
        char = yield from feed.peek()
        before = "{"
        while char != body.close:
            key = yield from word(feed)
            yield from feed.blanks()
            yield from expect(feed, body.assign.strip())
            value = yield from literal.value(feed)
            self._argue(f"{before}{json.dumps(key, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}")
            before = ", "
            yield from separated(feed, body.close)
            yield from feed.blanks()
            char = yield from feed.peek()
        feed.take(1)
        self._argue("}" if before == ", " else "{}")

    def _parameter_list(self, body: Parameters) -> Reader[None]:
        """Read arguments between tags up to what closes the call."""
        feed, marks = self._feed, self._parameters
        assert marks is not None
        before = "{"
        while True:
            yield from feed.blanks()
            if (yield from feed.which(marks.following)) != body.open:
                break
            feed.take(len(body.open))
            key = yield from self._parameter_key(body, marks)
            yield from self._parameter_value(body, marks, key, f"{before}{json.dumps(key, ensure_ascii=False)}: ")
            before = ", "
        if not (yield from feed.which(self._ends)):
            raise Unclosed if feed.at_end else Broken
        self._argue("}" if before == ", " else "{}")

    def _parameter_key(self, body: Parameters, marks: _ParameterMarks) -> Reader[str]:
        parts: list[str] = []
        yield from closed_by(self._feed, marks.after_key, parts.append)
        return "".join(parts).strip()

    def _parameter_value(self, body: Parameters, marks: _ParameterMarks, key: str, before: str) -> Reader[None]:
        feed = self._feed
        types = types_of(self._tools[self._call.name or ""], key) if self._call.name in self._tools else frozenset()
        if body.typed is not None:
            stated: list[str] = []
            yield from closed_by(feed, marks.middle, stated.append)
            types = frozenset(("string",)) if "".join(stated) == body.typed[1] else types - {"string"} or _NOT_TEXT
        yield from feed.accept(marks.blank)
        wrapped = bool((yield from feed.accept(marks.wrap)))
        ends = marks.ends(key, wrapped=wrapped)
        if wrapped or not types or types == {"string"}:
            self._argue(before + '"')
            yield from self._value(ends, lambda text: self._argue(json.dumps(text, ensure_ascii=False)[1:-1]))
            self._argue('"')
            return
        parts: list[str] = []
        yield from self._value(ends, parts.append)
        text = "".join(parts)
        self._argue(before + (elements_text(text, body) or json_text(text, types)))

    def _value(self, ends: Marks, passed: Callable[[str], None]) -> Reader[None]:
        """Read a value up to the closing after which the call goes on; any other is part of the value."""
        feed = self._feed
        while True:
            found = yield from closed_by(feed, ends, passed, read=False)
            if (yield from feed.settled(self._goes_on, len(found))):
                feed.take(len(found))
                return
            passed(feed.take(1))

    def _goes_on(self, rest: str) -> bool | None:
        """Whether the call goes on after a value, None where more must be seen."""
        assert self._parameters is not None
        start = len(rest) - len(rest.lstrip())
        marks = self._parameters.following
        if marks.match(rest, start):
            return True
        return None if marks.may_begin(rest, start) else False


_LIST = Marks(("[",))
_NOT_TEXT = frozenset(("object", "array", "number", "integer", "boolean", "null"))


class _OpenCall:
    """A call while it is read; `held` are arguments that came before the name; `whole` when its end was read."""

    __slots__ = ("argued", "held", "id", "index", "name", "unknown", "whole")

    def __init__(self) -> None:
        self.name: str | None = None
        self.id: str | None = None
        self.index: int | None = None
        self.unknown = False
        self.whole = False
        self.argued = False
        self.held: list[str] | None = None


class _ParameterMarks:
    """The markers of arguments between tags."""

    def __init__(self, format: ToolFormat) -> None:
        body = format.body
        assert isinstance(body, Parameters)
        self._body = body
        self.after_key = Marks((body.typed[0] if body.typed else body.middle,))
        self.middle = Marks((body.typed[2],) if body.typed else ())
        self.blank = Marks((body.blanks[0],))
        self.wrap = Marks((body.wrap[0],) if body.wrap else ())
        self.following = Marks((body.open, *runs(format.call[1]), *runs(format.section[1])))

    def ends(self, key: str, *, wrapped: bool) -> Marks:
        close = self._body.close.replace(KEY, key)
        if wrapped and self._body.wrap is not None:
            return Marks((self._body.wrap[1] + close,))
        return Marks((self._body.blanks[1] + close, close))


def _steps(marker: str) -> tuple[str, ...]:
    """A marker line by line: models differ in the blanks between."""
    return tuple(step for step in re.split(r"\s*\n\s*", marker.strip()) if step)


def _object_text(text: str) -> str:
    """The text where it is the JSON of an object; raises Broken."""
    try:
        if isinstance(json.loads(text), dict):
            return text
    except (ValueError, RecursionError):
        pass
    raise Broken
