"""Anthropic's requests as values: what is known is honoured or refused, never dropped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from strata_cli.conversation import fields as read
from strata_cli.conversation.fields import Fields, Known, invalid, refused
from strata_cli.conversation.messages import (
    NOTHING,
    ImagePart,
    JsonObject,
    Message,
    Part,
    TextPart,
    Tool,
    ToolCall,
)
from strata_cli.conversation.request import Delivery, Request, ToolChoice
from strata_cli.conversation.structure import Schema, Structure

_NOTHING: frozenset[str] = frozenset()
_KNOWN = Known(
    honoured=read.SAMPLING | read.BEGINNING | read.DELIVERY
    | {"messages", "system", "tools", "tool_choice", "stop_sequences", "thinking", "cache_control", "output_config"},
    without_effect=frozenset(
        ("model", "anthropic_beta", "anthropic_version", "betas", "diagnostics", "inference_geo", "service_tier",
         "speed", "user_profile_id", "workspace_id")
    ),
    refused={"container": (), "context_management": (), "mcp_servers": (), "output_format": ()},
)  # fmt: skip
_MESSAGE_FIELDS = frozenset(("role", "content"))
# What an answer holds beside its content, which comes back where a program sends the whole answer.
_OF_ANSWERS = frozenset(
    ("id", "type", "model", "stop_reason", "stop_sequence", "stop_details", "usage", "container", "diagnostics")
)
_TOOL = Known(
    frozenset(("type", "name", "description", "input_schema", "strict", "cache_control")),
    frozenset(("eager_input_streaming", "input_examples")),
    {"allowed_callers": (["direct"],), "defer_loading": (False,)},
)
_CHOICE = Known(frozenset(("type", "name", "disable_parallel_tool_use")), _NOTHING, {})
_THINKING = Known(frozenset(("type",)), frozenset(("budget_tokens",)), {"display": ("summarized",)})
_OUTPUT = Known(frozenset(("format",)), _NOTHING, {"effort": ()})
_BLOCK = {
    "text": Known(frozenset(("type", "text", "cache_control")), frozenset(("citations",)), {}),
    "image": Known(frozenset(("type", "source", "cache_control")), _NOTHING, {"transformations": ()}),
    "thinking": Known(frozenset(("type", "thinking", "signature")), _NOTHING, {}),
    "redacted_thinking": Known(frozenset(("type", "data")), _NOTHING, {}),
    "tool_use": Known(
        frozenset(("type", "id", "name", "input", "cache_control")), frozenset(("caller", "toolset_name")), {}
    ),
    "tool_result": Known(
        frozenset(("type", "tool_use_id", "content", "is_error", "cache_control")), frozenset(("toolset_name",)), {}
    ),
}
_UNREADABLE = frozenset(("document", "search_result", "container_upload", "tool_reference", "browser_state"))


@dataclass(slots=True)
class _Notes:
    """What is noted while a request is read, each thing once."""

    lines: dict[str, None] = field(default_factory=dict)

    def add(self, *notes: str) -> None:
        self.lines.update(dict.fromkeys(notes))

    def known(self, known: Known, value: Mapping[Any, Any], where: str = "") -> dict[str, Any]:
        """The fields of this object that are there, each of them known or noted."""
        fields = read.present(value)
        self.add(*known.notes(fields, where))
        if "cache_control" in fields:
            self.add("cache_control has no effect here: what is alike in two prompts is always reused")
        return fields


def parse(obj: object) -> Request:
    """The request that a JSON value describes: an object with `messages`, or a bare list of messages.

    A final message of the assistant is continued, unless `continue_final_message` is false or `add_generation_prompt`
    true. Raises as OpenAI's `parse` does. A field that is null counts as absent.
    """
    notes = _Notes()
    fields = notes.known(_KNOWN, read.request_fields(obj))
    messages = [*_system(fields, notes)]
    for index, item in enumerate(fields["messages"]):
        messages += _messages(item, f"messages[{index}]", notes)
    begins = read.beginning(fields, continues=bool(messages) and messages[-1].role == "assistant")
    return Request(
        messages=tuple(messages),
        tools=_tools(fields, notes),
        assistant_prefix=begins.assistant_prefix,
        response_prefix=begins.response_prefix,
        continue_final=begins.continue_final,
        add_generation_prompt=begins.add_generation_prompt,
        template_kwargs=_template_kwargs(fields, notes),
        sampling=read.sampling(fields, read.texts(fields, "stop_sequences", "a list of strings")),
        delivery=Delivery(
            stream=read.stream(fields), logprobs=read.logprobs(fields), metadata=read.metadata(fields)
        ),
        structure=_structure(fields, notes),
        choice=_choice(fields, notes),
        notes=tuple(notes.lines),
    )  # fmt: skip


def _structure(fields: Fields, notes: _Notes) -> Structure | None:
    """The document that `output_config` asks for."""
    options = notes.known(
        _OUTPUT, read.mapping(fields.get("output_config", NOTHING), "output_config"), "output_config."
    )
    where = "output_config.format"
    if "format" not in options:
        return None
    format = read.mapping(options["format"], where)
    if format.get("type") != "json_schema":
        raise invalid(f"{where}.type", f"is {read.shown(format.get('type'))}; it must be 'json_schema'")
    schema = read.mapping(format.get("schema"), f"{where}.schema", "must be a JSON schema, an object")
    return Structure(Schema(schema), field=where)  # type: ignore[arg-type]


def _template_kwargs(fields: Fields, notes: _Notes) -> JsonObject:
    """The template's variables; `thinking` is one of them under the name that templates know."""
    given = read.template_kwargs(fields)
    if "thinking" not in fields:
        return given
    thinking = notes.known(_THINKING, read.mapping(fields["thinking"], "thinking"), "thinking.")
    match thinking.get("type"):
        case "enabled" | "adaptive":
            return {"enable_thinking": True, **given}
        case "disabled":
            return {"enable_thinking": False, **given}
        case "between_tools":
            raise refused("thinking.type", "'between_tools' cannot be honoured by this version")
        case kind:
            raise invalid("thinking.type", f"is {read.shown(kind)}; it must be 'enabled', 'adaptive' or 'disabled'")


# Messages


def _system(fields: Fields, notes: _Notes) -> Iterator[Message]:
    system = fields.get("system")
    if system is None or system in ("", []):
        return
    yield Message("system", _parts(system, "system", notes, images=False))


def _messages(item: object, where: str, notes: _Notes) -> Iterator[Message]:
    """What one message holds: itself, and a message of its own for each tool result, in their order."""
    item = read.mapping(item, where, "must be an object with role and content")
    role = item.get("role")
    if role not in ("user", "assistant", "system"):
        raise invalid(f"{where}.role", f"is {read.shown(role)}; it must be 'user', 'assistant' or 'system'")
    extra = {str(k): v for k, v in item.items() if k not in _MESSAGE_FIELDS | _OF_ANSWERS} or NOTHING
    content = item.get("content")
    if content is None or isinstance(content, str):
        yield Message(role, content, extra=extra)
        return
    blocks = _blocks(content, f"{where}.content", notes)
    if role == "assistant":
        yield _assistant(blocks, extra, notes)
    else:
        yield from _turns(role, blocks, extra, notes)


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of content and its place."""

    kind: str
    fields: dict[str, Any]
    where: str

    def text(self, name: str) -> str:
        return read.one_of(self.fields, name, str, f"{self.where}.")

    def refuse(self, role: str) -> None:
        raise invalid(f"{self.where}.type", f"is {self.kind!r}, which cannot stand in a message of the {role}")


def _blocks(content: object, where: str, notes: _Notes) -> list[_Block]:
    if not isinstance(content, list):
        raise invalid(where, "must be a string or a list of blocks")
    return [_block(block, f"{where}[{index}]", notes) for index, block in enumerate(content)]


def _block(block: object, where: str, notes: _Notes) -> _Block:
    block = read.mapping(block, where, "must be an object with a type")
    kind = block.get("type")
    if isinstance(kind, str) and kind in _BLOCK:
        return _Block(kind, notes.known(_BLOCK[kind], block, f"{where}."), where)
    if isinstance(kind, str) and (kind in _UNREADABLE or kind.endswith(("_tool_use", "_tool_result"))):
        raise refused(f"{where}.type", f"is {kind!r}, which this version cannot read")
    raise invalid(f"{where}.type", f"is {read.shown(kind)}; it must be one of {', '.join(map(repr, _BLOCK))}")


def _parts(content: object, where: str, notes: _Notes, *, images: bool = True) -> str | tuple[Part, ...] | None:
    """Content of text, and of images where they may stand."""
    if content is None or isinstance(content, str):
        return content
    return tuple(_part(block, images=images) for block in _blocks(content, where, notes))


def _part(block: _Block, *, images: bool = True) -> Part:
    if block.kind == "text":
        return TextPart(block.text("text"))
    if block.kind == "image" and images:
        return ImagePart(_url(block))
    raise invalid(f"{block.where}.type", f"is {block.kind!r}, which cannot stand here")


def _url(block: _Block) -> str:
    where = f"{block.where}.source"
    source = read.mapping(block.fields.get("source"), where)
    match source.get("type"):
        case "url":
            return read.one_of(source, "url", str, f"{where}.")
        case "base64":
            media = read.one_of(source, "media_type", str, f"{where}.")
            return f"data:{media};base64,{read.one_of(source, 'data', str, f'{where}.')}"
        case "file":
            raise refused(f"{where}.type", "is 'file', which this version cannot read")
        case kind:
            raise invalid(f"{where}.type", f"is {read.shown(kind)}; it must be 'base64' or 'url'")


def _assistant(blocks: list[_Block], extra: JsonObject, notes: _Notes) -> Message:
    """An answer: its reasoning, its text, its calls, each in their order."""
    reasoning: list[str] = []
    parts: list[Part] = []
    calls: list[ToolCall] = []
    for block in blocks:
        match block.kind:
            case "thinking":
                read.of(block.fields, "signature", str, "", f"{block.where}.")
                if parts or calls:
                    notes.add(f"{block.where} is put before the message's text, as all of its reasoning is")
                reasoning.append(block.text("thinking"))
            case "redacted_thinking":
                notes.add(f"{block.where} is encrypted reasoning, which no model here can read; it is left out")
            case "tool_use":
                calls.append(_call(block))
            case "text" | "image":
                if calls:
                    notes.add(f"{block.where} is put before the message's calls, as all of its text is")
                parts.append(_part(block))
            case _:
                block.refuse("assistant")
    return Message(
        "assistant",
        tuple(parts) or (None if calls else ""),
        reasoning="".join(reasoning) if reasoning else None,
        tool_calls=tuple(calls),
        extra=extra,
    )


def _call(block: _Block) -> ToolCall:
    arguments = read.mapping(block.fields.get("input", NOTHING), f"{block.where}.input")
    return ToolCall(block.text("name"), arguments, block.text("id"))


def _turns(role: str, blocks: list[_Block], extra: JsonObject, notes: _Notes) -> Iterator[Message]:
    """What is no answer: parts, and between them tool results, which are turns of their own."""
    parts: list[Part] = []
    results = False
    for block in blocks:
        if block.kind == "tool_result" and role == "user":
            if parts:
                yield Message(role, tuple(parts), extra=extra)
                parts = []
            results = True
            yield _result(block, notes)
        elif block.kind in ("text", "image"):
            parts.append(_part(block))
        else:
            block.refuse(role)
    if parts or not results:
        yield Message(role, tuple(parts), extra=extra)


def _result(block: _Block, notes: _Notes) -> Message:
    failed = read.of(block.fields, "is_error", bool, False, f"{block.where}.")
    return Message(
        "tool",
        _parts(block.fields.get("content"), f"{block.where}.content", notes),
        tool_call_id=block.text("tool_use_id"),
        extra={"is_error": True} if failed else NOTHING,
    )


# Tools


def _tools(fields: Fields, notes: _Notes) -> tuple[Tool, ...]:
    tools = read.of(fields, "tools", list, [])
    read_tools = tuple(_tool(tool, f"tools[{index}]", notes) for index, tool in enumerate(tools))
    choice = read.mapping(fields.get("tool_choice", NOTHING), "tool_choice")
    return () if choice.get("type") == "none" else read_tools


def _choice(fields: Fields, notes: _Notes) -> ToolChoice | None:
    """The demand for a call, None where the model chooses."""
    where = "tool_choice."
    choice = notes.known(_CHOICE, read.mapping(fields.get("tool_choice", NOTHING), "tool_choice"), where)
    several = not read.of(choice, "disable_parallel_tool_use", bool, False, where)
    match choice.get("type", "auto"):
        case "auto" | "none":
            if not several:
                raise refused(f"{where}disable_parallel_tool_use", "can only be true where a call is demanded")
            return None
        case "any":
            return ToolChoice(several=several)
        case "tool":
            return ToolChoice((read.one_of(choice, "name", str, where),), several=False)
        case kind:
            raise invalid("tool_choice.type", f"is {read.shown(kind)}; it must be 'auto', 'any', 'tool' or 'none'")


_SCHEMA = {"name": "name", "description": "description", "input_schema": "parameters", "strict": "strict"}


def _tool(tool: object, where: str, notes: _Notes) -> Tool:
    """A tool's definition under the names that templates know, in the order of its keys."""
    tool = read.mapping(tool, where)
    kind = tool.get("type")
    if kind not in (None, "custom"):
        raise refused(f"{where}.type", f"is {read.shown(kind)}, a tool that this version does not have")
    fields = notes.known(_TOOL, tool, f"{where}.")
    read.one_of(fields, "name", str, f"{where}.")
    read.of(fields, "description", str, "", f"{where}.")
    read.mapping(fields.get("input_schema"), f"{where}.input_schema")
    return Tool({"type": "function", "function": {_SCHEMA[key]: fields[key] for key in fields if key in _SCHEMA}})
