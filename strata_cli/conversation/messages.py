"""What was said: frozen values that every other room reads and none changes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = Mapping[str, Json]

NOTHING: JsonObject = MappingProxyType({})


class TextPart(NamedTuple):
    """A piece of text in a message made of parts."""

    text: str


class ImagePart(NamedTuple):
    """An image in a message made of parts, by its URL (often a data: URL)."""

    url: str


Part: TypeAlias = TextPart | ImagePart


class ToolCall(NamedTuple):
    """A call that an assistant made. `arguments` is the JSON text or the mapping, as it came."""

    name: str
    arguments: str | JsonObject
    id: str | None = None


class Message(NamedTuple):
    """One turn. `content` None means that there was none; `extra` holds fields that only a template may know."""

    role: str
    content: str | tuple[Part, ...] | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    extra: JsonObject = NOTHING


class Tool(NamedTuple):
    """A tool's definition exactly as it came, `{"type": "function", "function": {…}}`, in the order of its keys."""

    definition: JsonObject
