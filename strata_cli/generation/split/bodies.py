"""Reads one call in the notation of its format, from its name to the end of its arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from typing_extensions import assert_never

from strata_cli.generation.split.call import MissingName, NotACall, OpenCall
from strata_cli.generation.split.elements import elements_text
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
from strata_cli.prompt.toolformat.pieces import runs
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

_FIELD = re.compile(r"[^\s<>{}()\[\]\"'=|,:]*")
_NOT_TEXT = frozenset(("object", "array", "number", "integer", "boolean", "null"))


class Body:
    """Reads calls of one format and tells `call` what they say; `ends` are the texts that may follow the arguments."""

    def __init__(self, format: ToolFormat, feed: Feed, call: OpenCall, ends: Marks) -> None:
        self._format = format
        self._feed = feed
        self._call = call
        self._ends = ends
        self._parameters = _ParameterMarks(format) if isinstance(format.body, Parameters) else None

    def read(self) -> Reader[None]:
        """Read a call. Raises Broken, and NotACall where nothing like one stands here."""
        body = self._format.body
        match body:
            case Record():
                yield from self._record(body)
            case Keyed():
                yield from self._keyed()
            case Arguments():
                yield from self._header()
                yield from self.json_arguments(self._ends)
            case Parameters():
                yield from self._header()
                yield from self._parameter_list(body)
            case Literals():
                yield from self._header()
                yield from self._literal_list(body)
            case _:
                assert_never(body)

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
        self._call.named(name)

    def _literal_part(self, part: str) -> Reader[None]:
        yield from self._feed.blanks()
        core = part.strip()
        if core and not (yield from self._feed.accept(Marks((core,)))):
            if self._feed.at_end:
                raise Unclosed
            raise NotACall

    def json_arguments(self, ends: Marks) -> Reader[None]:
        """Read the arguments' JSON object; where the call is closed at once, it has none."""
        yield from self._feed.blanks()
        char = yield from self._feed.peek()
        if char == "{":
            yield from json_value(self._feed, self._call.argue)
        elif char and not (yield from self._feed.which(ends)):
            raise Broken
        elif not char:
            raise Unclosed

    def _record(self, body: Record) -> Reader[None]:
        yield from self._object_here()
        yield from self._object(body, ())
        if self._call.name is None:
            raise MissingName(whole=True)

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
            self._call.named((yield from self._text()))
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
        self._call.arguments_once()
        char = yield from self._feed.peek()
        if char == "{" and self._call.name is not None:
            yield from json_value(self._feed, self._call.argue)
            return
        parts: list[str] = []
        if char == '"':
            parts = [_object_text((yield from self._text()))]
        else:
            yield from json_value(self._feed, parts.append)
            if char != "{":
                parts = [_object_text("{}" if parts == ["null"] else "")]
        self._call.argue("".join(parts))

    def _keyed(self) -> Reader[None]:
        feed = self._feed
        yield from self._object_here()
        feed.take(1)
        yield from blanks(feed, nothing)
        self._call.named((yield from self._text()))
        yield from blanks(feed, nothing)
        yield from expect(feed, ":")
        yield from blanks(feed, nothing)
        if (yield from feed.peek()) != "{":
            raise Unclosed if feed.at_end else Broken
        yield from json_value(feed, self._call.argue)
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
            self._call.argue(f"{before}{json.dumps(key, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}")
            before = ", "
            yield from separated(feed, body.close)
            yield from feed.blanks()
            char = yield from feed.peek()
        feed.take(1)
        self._call.argue("}" if before == ", " else "{}")

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
        self._call.argue("}" if before == ", " else "{}")

    def _parameter_key(self, body: Parameters, marks: _ParameterMarks) -> Reader[str]:
        parts: list[str] = []
        yield from closed_by(self._feed, marks.after_key, parts.append)
        return "".join(parts).strip()

    def _parameter_value(self, body: Parameters, marks: _ParameterMarks, key: str, before: str) -> Reader[None]:
        feed = self._feed
        types = frozenset() if self._call.tool is None else types_of(self._call.tool, key)
        if body.typed is not None:
            stated: list[str] = []
            yield from closed_by(feed, marks.middle, stated.append)
            types = frozenset(("string",)) if "".join(stated) == body.typed[1] else types - {"string"} or _NOT_TEXT
        yield from feed.accept(marks.blank)
        wrapped = bool((yield from feed.accept(marks.wrap)))
        ends = marks.ends(key, wrapped=wrapped)
        if wrapped or not types or types == {"string"}:
            self._call.argue(before + '"')
            yield from self._value(ends, lambda text: self._call.argue(json.dumps(text, ensure_ascii=False)[1:-1]))
            self._call.argue('"')
            return
        parts: list[str] = []
        yield from self._value(ends, parts.append)
        text = "".join(parts)
        self._call.argue(before + (elements_text(text, body) or json_text(text, types)))

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


def _object_text(text: str) -> str:
    """The text where it is the JSON of an object; raises Broken."""
    try:
        if isinstance(json.loads(text), dict):
            return text
    except (ValueError, RecursionError):
        pass
    raise Broken
