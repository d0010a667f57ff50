"""Bytes that came from outside: which text they are, and whether that text is a conversation."""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Iterable
from typing import Literal, TypeAlias

from strata_cli.conversation.messages import Json
from strata_cli.errors import INVALID_JSON, INVALID_TEXT, StrataError

Kind: TypeAlias = Literal["text", "json", "jsonl"]

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode(data: bytes, source: str) -> str:
    """The text of these bytes, byte for byte but for the byte order mark; raises INVALID_TEXT with the offset."""
    # This mark begins with UTF-16's, as which the text would be full of NULs.
    if data.startswith(codecs.BOM_UTF32_LE):
        raise StrataError(INVALID_TEXT, f"{source} is UTF-32 text", hint="convert it to UTF-8")
    mark, encoding = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", "utf-8"))
    body = memoryview(data)[len(mark) :]
    try:
        text = codecs.decode(body, encoding)
    except UnicodeDecodeError as error:
        raise _no_text(source, encoding, data, len(mark) + error.start) from None
    # No vocabulary spells it, and where it stands without a mark, the text may be UTF-16.
    if (place := text.find("\0")) >= 0:
        raise _no_text(source, encoding, data, len(mark) + len(text[:place].encode(encoding)))
    return text


def _no_text(source: str, encoding: str, data: bytes, offset: int) -> StrataError:
    wrong = f"{_named(data[offset : offset + 1])} at byte offset {offset}"
    return StrataError(INVALID_TEXT, f"{source} is not {encoding.upper()} text: {wrong}", hint="convert it to UTF-8")


def _named(data: bytes) -> str:
    return f"byte 0x{data[0]:02x}" if data else "the end of the input"


DEEPEST = 100
"""How many lists and objects may lie in each other. What reads a value goes down with it, and has a stack that ends."""


def load_json(text: str, source: str) -> Json:
    """Parse one JSON value; raises INVALID_JSON with line and column.

    What two programs could read in two ways is refused: NaN and infinities, numbers beyond a float's, and an object
    that has a key twice.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_float, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}" if "\n" in text else f"column {error.colno}"
        raise StrataError(INVALID_JSON, f"{source} is not valid JSON: {error.msg} at {place}") from None
    except RecursionError:
        raise _too_deep(source) from None
    except ValueError as error:
        raise StrataError(INVALID_JSON, f"{source} is not valid JSON: {error}", hint="correct it") from None
    # Only what has so many brackets can lie so deep.
    if text.count("[") + text.count("{") > DEEPEST and _deeper(value):
        raise _too_deep(source)
    return value


def _too_deep(source: str) -> StrataError:
    words = f"{source} is nested too deeply, in more than {DEEPEST} levels"
    return StrataError(INVALID_JSON, words, hint="make it flatter")


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a JSON value")


def _float(text: str) -> float:
    value = float(text)
    if value in (math.inf, -math.inf):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


def _object(pairs: list[tuple[str, Json]]) -> Json:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise ValueError(f"an object has the key {twice[:40]!r} twice")
    return value


def _deeper(value: Json) -> bool:
    """Whether a value is deeper than it may be, found out level by level."""
    level = _holders([value])
    for _ in range(DEEPEST):
        level = _holders(item for outer in level for item in (outer.values() if isinstance(outer, dict) else outer))
    return bool(level)


def _holders(values: Iterable[Json]) -> list[list[Json] | dict[str, Json]]:
    return [value for value in values if isinstance(value, (list, dict))]


def kind_of(text: str) -> Kind:
    """What piped text is: a JSON conversation, JSON lines that are conversations, or plain text."""
    if text.lstrip()[:1] not in ("{", "["):
        return "text"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return "jsonl" if _lines_are_conversations(text) else "text"
    return "json" if _is_conversation(value) else "text"


def mistake_in(text: str) -> str | None:
    """What keeps a text that begins like a JSON conversation from being one, None for any other text."""
    beginning = text.lstrip()[:200]
    if beginning[:1] not in ("{", "[") or not ('"messages"' in beginning or '"role"' in beginning):
        return None
    try:
        load_json(text, "it")
    except StrataError as error:
        return error.message
    return None


def _is_conversation(value: Json) -> bool:
    if isinstance(value, dict):
        return "messages" in value
    return isinstance(value, list) and bool(value) and all(isinstance(m, dict) and "role" in m for m in value)


def _lines_are_conversations(text: str) -> bool:
    """A first line that is a conversation says what the rest is meant to be; one bad line later is an error there."""
    try:
        return _is_conversation(json.loads(text.lstrip().partition("\n")[0]))
    except (ValueError, RecursionError):
        return False
