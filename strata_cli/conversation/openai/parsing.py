"""OpenAI's requests as values: what is known is honoured or refused, never dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strata_cli.conversation import fields as read
from strata_cli.conversation.fields import Fields, Known, invalid, refused
from strata_cli.conversation.messages import NOTHING, ImagePart, Message, Part, TextPart, Tool, ToolCall
from strata_cli.conversation.openai.response_format import response_format
from strata_cli.conversation.request import Delivery, Request, ToolChoice

_REASONING = ("reasoning_content", "thinking", "reasoning")
_MESSAGE_FIELDS = frozenset(("role", "content", "tool_calls", "tool_call_id", "name", *_REASONING))
# What an answer holds beside its text, and which of it may come back in the next request: nothing.
_OF_ANSWERS = frozenset(("annotations", "audio", "function_call"))

_KNOWN = Known(
    honoured=read.SAMPLING | read.BEGINNING | read.DELIVERY
    | {"messages", "tools", "tool_choice", "max_completion_tokens", "stop", "stream_options", "n",
       "response_format", "parallel_tool_calls"},
    without_effect=frozenset(
        ("model", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "safety_identifier",
         "service_tier", "store", "user")
    ),
    refused={
        "audio": (),
        "best_of": (1,),
        "echo": (False,),
        "function_call": (),
        "functions": (),
        "grammar": (),
        "json_schema": (),
        "logit_bias": ({},),
        "modalities": (["text"],),
        "moderation": (),
        "prediction": (),
        "reasoning_effort": (),
        "verbosity": ("medium",),
        "web_search_options": (),
    },
)  # fmt: skip
_STREAM_OPTIONS = Known(frozenset(("include_usage",)), frozenset(), {"include_obfuscation": (False,)})
_MOST_CHOICES = 128


def parse(obj: object) -> Request:
    """The request that a JSON value describes: an object with `messages`, or a bare list of messages.

    Raises INVALID_REQUEST with the field's name for a wrong type or range, NOT_IN_THIS_BUILD for what cannot be done
    and CONFLICTING_OPTIONS for fields that exclude each other. A field that is null counts as absent.
    """
    fields = read.request_fields(obj)
    options = read.present(read.mapping(fields.get("stream_options", NOTHING), "stream_options"))
    notes = (*_KNOWN.notes(fields), *_STREAM_OPTIONS.notes(options, "stream_options."))
    begins = read.beginning(fields, continues=False)
    longest = "max_completion_tokens" if "max_completion_tokens" in fields else "max_tokens"
    return Request(
        messages=tuple(_message(item, f"messages[{index}]") for index, item in enumerate(fields["messages"])),
        tools=_tools(fields),
        assistant_prefix=begins.assistant_prefix,
        response_prefix=begins.response_prefix,
        continue_final=begins.continue_final,
        add_generation_prompt=begins.add_generation_prompt,
        template_kwargs=read.template_kwargs(fields),
        sampling=read.sampling(fields, _stop(fields), longest),
        delivery=Delivery(
            stream=read.stream(fields),
            usage=read.of(options, "include_usage", bool, False, "stream_options.") if options else None,
            choices=read.number(fields, "n", int, 1, _MOST_CHOICES) or 1,
            logprobs=read.logprobs(fields),
            metadata=read.metadata(fields),
        ),
        structure=response_format(fields),
        choice=_choice(fields),
        notes=notes,
    )


def _stop(fields: Fields) -> tuple[str, ...]:
    what = "a string or a list of strings"
    stop = fields.get("stop")
    return read.texts({"stop": [stop]} if isinstance(stop, str) else fields, "stop", what)


# Messages


def _message(item: object, where: str) -> Message:
    item = read.mapping(item, where, "must be an object with role and content")
    role = item.get("role")
    if not isinstance(role, str) or not role:
        raise invalid(f"{where}.role", "must be a string")
    said = {key: value for key, value in item.items() if key not in _OF_ANSWERS}
    for name in _OF_ANSWERS:
        if item.get(name):
            raise refused(f"{where}.{name}")
    inside = f"{where}."
    content = _content(said.get("content"), f"{inside}content")
    refusal = read.of(said, "refusal", str, "", inside)
    said.pop("refusal", None)
    return Message(
        role=role,
        # A refusal is what the assistant said instead.
        content=refusal if content is None and refusal else content,
        reasoning=_reasoning(said, inside),
        tool_calls=_tool_calls(said.get("tool_calls"), f"{inside}tool_calls"),
        tool_call_id=read.of(said, "tool_call_id", str, None, inside),  # type: ignore[arg-type]
        name=read.of(said, "name", str, None, inside),  # type: ignore[arg-type]
        extra={str(key): value for key, value in said.items() if key not in _MESSAGE_FIELDS} or NOTHING,
    )


def _content(content: object, where: str) -> str | tuple[Part, ...] | None:
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise invalid(where, "must be a string, a list of parts or null")
    return tuple(_part(part, f"{where}[{index}]") for index, part in enumerate(content))


def _part(part: object, where: str) -> Part:
    if isinstance(part, str):
        return TextPart(part)
    part = read.mapping(part, where, "must be an object with a type")
    match part.get("type"):
        case "text" | "input_text" | "output_text":
            return TextPart(read.one_of(part, "text", str, f"{where}."))
        case "refusal":
            return TextPart(read.one_of(part, "refusal", str, f"{where}."))
        case "image_url" | "image":
            return ImagePart(_url(part, where))
        case "input_audio" | "file" as kind:
            raise refused(f"{where}.type", f"is {kind!r}, which this version cannot read")
        case kind:
            raise invalid(f"{where}.type", f"is {read.shown(kind)}; it must be 'text' or 'image_url'")


def _url(part: Mapping[str, Any], where: str) -> str:
    """The image's URL, from the forms in use: `image_url` (an object or a string), `image`, `url`."""
    for key in ("image_url", "image", "url"):
        value = part.get(key)
        if isinstance(value, Mapping):
            value = value.get("url")
        if isinstance(value, str):
            return value
    raise invalid(f"{where}.image_url", "must hold a url")


def _reasoning(item: Mapping[str, Any], where: str) -> str | None:
    for name in _REASONING:
        reasoning = read.of(item, name, str, None, where)  # type: ignore[arg-type]
        if reasoning is not None:
            return reasoning  # type: ignore[no-any-return]
    return None


def _tool_calls(calls: object, where: str) -> tuple[ToolCall, ...]:
    if calls is None:
        return ()
    if not isinstance(calls, list):
        raise invalid(where, "must be a list of calls or null")
    return tuple(_tool_call(call, f"{where}[{index}]") for index, call in enumerate(calls))


def _tool_call(call: object, where: str) -> ToolCall:
    what = "must be an object with a function"
    call = read.mapping(call, where, what)
    function = read.mapping(call.get("function"), where, what)
    name = read.one_of(function, "name", str, f"{where}.function.")
    arguments = function.get("arguments")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, (str, Mapping)):
        raise invalid(f"{where}.function.arguments", "must be JSON text or an object")
    return ToolCall(name, arguments, read.of(call, "id", str, None, f"{where}."))  # type: ignore[arg-type]


# Tools


def _tools(fields: Fields) -> tuple[Tool, ...]:
    tools = read.of(fields, "tools", list, [])
    read_tools = tuple(_tool(tool, f"tools[{index}]") for index, tool in enumerate(tools))
    return () if fields.get("tool_choice") == "none" else read_tools


def _choice(fields: Fields) -> ToolChoice | None:
    """The demand for a call, None where the model chooses."""
    choice, several = fields.get("tool_choice", "auto"), read.of(fields, "parallel_tool_calls", bool, True)
    if choice in ("auto", "none"):
        if not several and choice == "auto" and fields.get("tools"):
            raise refused("parallel_tool_calls", "can only be false where tool_choice demands a call")
        return None
    if choice == "required":
        return ToolChoice(several=several)
    where = "tool_choice"
    choice = read.mapping(choice, where, "must be 'auto', 'none', 'required' or an object")
    match choice.get("type"):
        case "function":
            return ToolChoice((_named(choice, where),), several=False)
        case "allowed_tools":
            allowed = read.mapping(choice.get("allowed_tools"), f"{where}.allowed_tools")
            if allowed.get("mode") != "required":
                raise refused(f"{where}.allowed_tools.mode", "can only be 'required' in this version")
            listed = enumerate(read.of(allowed, "tools", list, [], f"{where}.allowed_tools."))
            names = tuple(_named(tool, f"{where}.allowed_tools.tools[{index}]") for index, tool in listed)
            if not names:
                raise invalid(f"{where}.allowed_tools.tools", "must name a tool")
            return ToolChoice(names, several)
        case kind:
            raise invalid(f"{where}.type", f"is {read.shown(kind)}; it must be 'function' or 'allowed_tools'")


def _named(tool: object, where: str) -> str:
    function = read.mapping(read.mapping(tool, where).get("function"), f"{where}.function")
    return read.one_of(function, "name", str, f"{where}.function.")


def _tool(tool: object, where: str) -> Tool:
    tool = read.mapping(tool, where)
    function = tool.get("function")
    if tool.get("type", "function") == "function" and (
        not isinstance(function, Mapping) or not isinstance(function.get("name"), str)
    ):
        raise invalid(f"{where}.function", "must be an object with a name")
    return Tool(tool)
