"""The two dialects under their names, and which of them a request speaks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from strata_cli.conversation import anthropic, openai
from strata_cli.conversation.messages import Json
from strata_cli.conversation.request import Request
from strata_cli.errors import StrataError

if TYPE_CHECKING:
    from strata_cli.conversation.reply import Event, Reply

Dialect: TypeAlias = Literal["openai", "anthropic"]


class Functions(NamedTuple):
    """What a dialect can do."""

    parse: Callable[[object], Request]
    reply: Callable[[Reply], dict[str, Json]]
    stream: Callable[[Iterable[Event]], Iterator[dict[str, Json]]]
    error: Callable[[StrataError], dict[str, Json]]


DIALECTS: Mapping[Dialect, Functions] = {
    "openai": Functions(openai.parse, openai.reply, openai.stream, openai.error),
    "anthropic": Functions(anthropic.parse, anthropic.reply, anthropic.stream, anthropic.error),
}

_FIELDS = frozenset(
    ("system", "stop_sequences", "thinking", "cache_control", "output_config", "container", "context_management",
     "mcp_servers", "anthropic_version", "anthropic_beta")
)  # fmt: skip
_BLOCKS = frozenset(("tool_use", "tool_result", "thinking", "redacted_thinking", "document", "search_result"))
_CHOICES = frozenset(("auto", "any", "tool", "none"))


def dialect_of(value: object) -> Dialect:
    """The dialect of a request as JSON: Anthropic's where it has what only that API has, OpenAI's otherwise.

    A message of the role `developer`, `tool` or `function`, one with `tool_calls`, and a tool with a `function` are
    OpenAI's whatever else is there.
    """
    fields = value if isinstance(value, Mapping) else {"messages": value}
    messages, tools = _objects(fields.get("messages")), _objects(fields.get("tools"))
    if any(_is_openai(message) for message in messages) or any("function" in tool for tool in tools):
        return "openai"
    choice = fields.get("tool_choice")
    anthropic = (
        any(fields.get(name) is not None for name in _FIELDS)
        or any("input_schema" in tool for tool in tools)
        or (isinstance(choice, Mapping) and _named(choice, _CHOICES))
        or any(_is_anthropic(block) for message in messages for block in _objects(message.get("content")))
    )
    return "anthropic" if anthropic else "openai"


def _objects(value: object) -> list[Mapping[str, Json]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _is_openai(message: Mapping[str, Json]) -> bool:
    return message.get("role") in ("developer", "tool", "function") or bool(message.get("tool_calls"))


def _is_anthropic(block: Mapping[str, Json]) -> bool:
    if block.get("type") == "image":
        return "source" in block
    return _named(block, _BLOCKS) or "cache_control" in block


def _named(value: Mapping[str, Json], kinds: frozenset[str]) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and kind in kinds
