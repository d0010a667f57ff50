"""Values as models write them: JSON, passed on as it comes, and the literals of programming languages."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable

from strata_cli.conversation.messages import Json
from strata_cli.generation.split.feed import Feed, Marks, Reader
from strata_cli.prompt.toolformat.schema import type_of

DEPTH = 100


class Broken(Exception):
    """What stands here is not what the format says."""


class Unclosed(Broken):
    """The answer ended within a call."""


def nothing(_: str) -> None:
    """For text that is read and not passed on."""


# JSON

_PLAIN = re.compile(r"[^\"\\\x00-\x1f]*")
_WORD = re.compile(r"[-+.\w]*")
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
_ESCAPES = frozenset('"\\/bfnrt')
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_CLOSING = {"{": "}", "[": "]"}


def json_value(feed: Feed, passed: Callable[[str], None]) -> Reader[None]:
    """Read one JSON value, strictly; `passed` gets its text in pieces. Raises Broken and Unclosed."""
    stack: list[str] = []
    while True:
        yield from blanks(feed, passed)
        char = yield from feed.peek()
        if char in _CLOSING:
            passed(feed.take(1))
            stack.append(char)
            if len(stack) > DEPTH:
                raise Broken
            yield from blanks(feed, passed)
            if (yield from _closed(feed, stack, passed)):
                if (yield from _more(feed, stack, passed)):
                    return
            elif char == "{":
                yield from _key(feed, passed)
            continue
        yield from json_string(feed, passed) if char == '"' else _scalar(feed, passed)
        if (yield from _more(feed, stack, passed)):
            return


def _closed(feed: Feed, stack: list[str], passed: Callable[[str], None]) -> Reader[bool]:
    """Read the bracket that closes the innermost value, if it stands here."""
    char = yield from feed.peek()
    if char != _CLOSING[stack[-1]]:
        return False
    passed(feed.take(1))
    stack.pop()
    return True


def _more(feed: Feed, stack: list[str], passed: Callable[[str], None]) -> Reader[bool]:
    """After a value: read closing brackets, or the comma before the next value; whether all is closed."""
    while stack:
        yield from blanks(feed, passed)
        if (yield from _closed(feed, stack, passed)):
            continue
        yield from expect(feed, ",", passed)
        yield from blanks(feed, passed)
        if stack[-1] == "{":
            yield from _key(feed, passed)
        return False
    return True


def _key(feed: Feed, passed: Callable[[str], None]) -> Reader[None]:
    yield from json_string(feed, passed)
    yield from blanks(feed, passed)
    yield from expect(feed, ":", passed)


def json_string(feed: Feed, passed: Callable[[str], None]) -> Reader[None]:
    """Read one JSON string."""
    yield from expect(feed, '"', passed)
    while True:
        yield from feed.matching(_PLAIN, passed)
        char = yield from feed.peek()
        if char == '"':
            passed(feed.take(1))
            return
        if char != "\\":
            raise Broken if char else Unclosed
        escape = yield from feed.peek(2)
        if escape[1:] == "u":
            escape = yield from feed.peek(6)
            if len(escape) == 6 and not _HEX.fullmatch(escape[2:]):
                raise Broken
        elif escape[1:] and escape[1:] not in _ESCAPES:
            raise Broken
        if len(escape) < 2 or (escape[1] == "u" and len(escape) < 6):
            raise Unclosed
        passed(feed.take(len(escape)))


def _scalar(feed: Feed, passed: Callable[[str], None]) -> Reader[None]:
    word: list[str] = []
    yield from feed.matching(_WORD, word.append)
    text = "".join(word)
    if not _SCALAR.fullmatch(text):
        raise Unclosed if feed.at_end else Broken
    passed(text)


def blanks(feed: Feed, passed: Callable[[str], None]) -> Reader[None]:
    yield from feed.matching(_JSON_BLANKS, passed)


_JSON_BLANKS = re.compile(r"[ \t\n\r]*")


def expect(feed: Feed, text: str, passed: Callable[[str], None] = nothing) -> Reader[None]:
    """Read this text; raises Broken where another stands and Unclosed at the end."""
    found = yield from feed.peek(len(text))
    if found != text:
        raise Unclosed if text.startswith(found) and feed.at_end_after(len(found)) else Broken
    passed(feed.take(len(text)))


# Literals

_NAME = re.compile(r"[^\s=:(){}\[\],'\"]*")
_BARE = re.compile(r"[^,(){}\[\]'\"]*")
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0", "\n": ""}
_WORDS: dict[str, Json] = {
    "true": True, "false": False, "null": None, "True": True, "False": False, "None": None,
}  # fmt: skip
_AFTER_STRING = re.compile(r"\s*(?:[)}\]]|,\s*[\w.-]+\s*[=:])")
_UNDECIDED = re.compile(r"\s*(?:,\s*[\w.-]*\s*)?")


class Literal:
    """Reads the values of a programming language: JSON's, Python's, and strings in a format's own quotes.

    In a `raw` top-level string nothing is escaped; it ends at the quote after which the call goes on.
    """

    def __init__(self, quote: str = '"', *, raw: bool = False) -> None:
        self._own = quote if quote not in ("'", '"') else ""
        self._raw = raw
        self._quotes = Marks((self._own, "'", '"'))

    def value(self, feed: Feed, depth: int = 0) -> Reader[Json]:
        """Read one value. Raises Broken and Unclosed."""
        if depth > DEPTH:
            raise Broken
        yield from feed.blanks()
        quote = yield from feed.accept(self._quotes)
        if quote:
            return (yield from self._string(feed, quote, raw=self._raw and not depth))
        char = yield from feed.peek()
        if char == "{":
            return (yield from self._mapping(feed, depth))
        if char in ("[", "("):
            return (yield from self._list(feed, "]" if char == "[" else ")", depth))
        return (yield from self._bare(feed))

    def _string(self, feed: Feed, quote: str, *, raw: bool) -> Reader[str]:
        parts: list[str] = []
        if quote == self._own:
            yield from closed_by(feed, Marks((quote,)), parts.append)
            return "".join(parts)
        marks = Marks((quote,) if raw else (quote, "\\"))
        while True:
            found = yield from closed_by(feed, marks, parts.append, read=False)
            if found == "\\":
                parts.append(feed.take(len((yield from feed.peek(2)))))
            elif not raw or (yield from feed.settled(_ends_string, 1)):
                feed.take(1)
                return "".join(parts) if raw else _unescaped("".join(parts))
            else:
                parts.append(feed.take(1))

    def _list(self, feed: Feed, close: str, depth: int) -> Reader[Json]:
        feed.take(1)
        items: list[Json] = []
        while not (yield from _reached(feed, close)):
            items.append((yield from self.value(feed, depth + 1)))
            yield from separated(feed, close)
        return items

    def _mapping(self, feed: Feed, depth: int) -> Reader[Json]:
        feed.take(1)
        items: dict[str, Json] = {}
        while not (yield from _reached(feed, "}")):
            quote = yield from feed.accept(self._quotes)
            key = (yield from self._string(feed, quote, raw=False)) if quote else (yield from word(feed))
            yield from feed.blanks()
            yield from expect(feed, ":")
            items[key] = yield from self.value(feed, depth + 1)
            yield from separated(feed, "}")
        return items

    def _bare(self, feed: Feed) -> Reader[Json]:
        parts: list[str] = []
        yield from feed.matching(_BARE, parts.append)
        text = "".join(parts).strip()
        if not text:
            raise Unclosed if feed.at_end else Broken
        return scalar(text)


def scalar(text: str) -> Json:
    """A number, a truth value or null where the text is one that JSON can say, else the text."""
    if text in _WORDS:
        return _WORDS[text]
    if not _SCALAR.fullmatch(text):
        return text
    try:
        value: Json = json.loads(text)
    except ValueError:  # more digits than Python reads
        return text
    return text if value in (math.inf, -math.inf) else value


def _ends_string(rest: str) -> bool | None:
    """Whether a quote before this text ends a string, None where more must be seen."""
    if _AFTER_STRING.match(rest):
        return True
    return None if _UNDECIDED.fullmatch(rest) else False


def _unescaped(text: str) -> str:
    def letter(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        if code:
            return chr(int(code, 16))
        return _LETTERS.get(found[3], found[3] if found[3] in "\\'\"/" else found[0])

    text = _ESCAPED.sub(letter, text)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _reached(feed: Feed, close: str) -> Reader[bool]:
    """Read the closing bracket, if it stands here."""
    yield from feed.blanks()
    if (yield from feed.peek()) != close:
        return False
    feed.take(1)
    return True


def separated(feed: Feed, close: str) -> Reader[None]:
    """Read the comma between two items; none is needed before the closing bracket."""
    yield from feed.blanks()
    if (yield from feed.peek()) != close:
        yield from expect(feed, ",")


def word(feed: Feed) -> Reader[str]:
    """Read a key or a name."""
    parts: list[str] = []
    yield from feed.matching(_NAME, parts.append)
    if not parts:
        raise Unclosed if feed.at_end else Broken
    return "".join(parts)


def closed_by(feed: Feed, marks: Marks, passed: Callable[[str], None], *, read: bool = True) -> Reader[str]:
    """Read up to a mark, and the mark; raises Unclosed where none comes."""
    found = yield from feed.until(marks, passed)
    if not found:
        raise Unclosed
    if read:
        feed.take(len(found))
    return found


# Texts that are there as a whole


def json_text(text: str, types: frozenset[str]) -> str:
    """A text between tags as JSON text of one of these types; a string where the schema says nothing.

    What reads as none of the types stays what it reads as, or a string.
    """
    if not types or types == {"string"}:
        return json.dumps(text, ensure_ascii=False)
    body = text.strip()
    found = _read(body)
    if found is not None and (type_of(found[1]) in types or (type_of(found[1]) == "integer" and "number" in types)):
        return found[0]
    if found is None or "string" in types:
        return json.dumps(text, ensure_ascii=False)
    return found[0]


def _read(text: str) -> tuple[str, Json] | None:
    """The value that a whole text says, and its JSON text."""
    value: Json
    try:
        value = json.loads(text, parse_constant=_refuse)
        return text, value
    except (ValueError, RecursionError):
        pass
    if text in _WORDS:
        return json.dumps(_WORDS[text]), _WORDS[text]
    if text[:1] not in ("{", "[", "("):
        return None
    feed = Feed()
    feed.push(text)
    feed.ended = True
    try:
        value = whole(Literal().value(feed))
    except Broken:
        return None
    return (json.dumps(value, ensure_ascii=False), value) if feed.at_end else None


def _refuse(word: str) -> Json:
    raise ValueError(word)


def whole(reader: Reader[Json]) -> Json:
    """What a reader returns whose text is all there."""
    try:
        while True:
            next(reader)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
