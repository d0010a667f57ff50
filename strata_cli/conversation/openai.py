"""OpenAI chat completions as values: `parse` reads a request; what is known is honoured or refused, never dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from strata_cli import errors
from strata_cli.conversation.messages import NOTHING, ImagePart, JsonObject, Message, Part, TextPart, Tool, ToolCall
from strata_cli.conversation.request import Request, SamplingOptions
from strata_cli.errors import StrataError

T = TypeVar("T")

_REASONING = ("reasoning_content", "thinking", "reasoning")
_MESSAGE_FIELDS = frozenset(("role", "content", "tool_calls", "tool_call_id", "name", *_REASONING))

# Fields that ask for something which changes nothing here.
_WITHOUT_EFFECT = frozenset(
    ("metadata", "parallel_tool_calls", "prompt_cache_key", "prompt_cache_retention", "safety_identifier",
     "service_tier", "store", "stream_options", "user", "model")
)  # fmt: skip
# Fields that would change the answer, and what they may say all the same.
_REFUSED: dict[str, tuple[object, ...]] = {
    "audio": (),
    "best_of": (1,),
    "echo": (False,),
    "function_call": (),
    "functions": (),
    "grammar": (),
    "json_schema": (),
    "logit_bias": ({},),
    "logprobs": (False,),
    "modalities": (["text"],),
    "n": (1,),
    "prediction": (),
    "reasoning_effort": (),
    "response_format": ({"type": "text"},),
    "stream": (False,),
    "top_logprobs": (0,),
    "verbosity": (),
    "web_search_options": (),
}
_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "seed", "repeat_penalty", "repeat_last_n", "presence_penalty",
             "frequency_penalty")  # fmt: skip
_PROMPT = ("messages", "tools", "tool_choice", "assistant_prefix", "response_prefix", "continue_final_message",
           "add_generation_prompt", "chat_template_kwargs")  # fmt: skip
_KNOWN = frozenset((*_PROMPT, *_SAMPLING, "max_tokens", "max_completion_tokens", "stop"))


def parse(obj: object) -> Request:
    """The request that a JSON value describes: an object with `messages`, or a bare list of messages.

    Raises INVALID_REQUEST with the field's name for a wrong type or range, NOT_IN_THIS_BUILD for what cannot be done
    and CONFLICTING_OPTIONS for fields that exclude each other. A field that is null counts as absent.
    """
    if isinstance(obj, list):
        obj = {"messages": obj}
    if not isinstance(obj, Mapping):
        raise _invalid("the request", "must be an object with messages, or a list of messages", None)
    fields = {str(key): value for key, value in obj.items() if value is not None}
    notes = _unhonoured(fields)
    continue_final = _of(fields, "continue_final_message", bool, False)
    generation = _of(fields, "add_generation_prompt", bool, not continue_final)
    if continue_final and generation:
        raise StrataError(
            errors.CONFLICTING_OPTIONS,
            "continue_final_message and add_generation_prompt: true exclude each other",
            hint="remove add_generation_prompt",
            param="add_generation_prompt",
        )
    tools = _tools(fields)
    return Request(
        messages=tuple(_message(item, f"messages[{index}]") for index, item in enumerate(_messages(fields))),
        tools=tools,
        assistant_prefix=_of(fields, "assistant_prefix", str, ""),
        response_prefix=_of(fields, "response_prefix", str, ""),
        continue_final=continue_final,
        add_generation_prompt=generation,
        template_kwargs=_template_kwargs(fields),
        sampling=_sampling(fields),
        notes=notes,
    )


# Fields


def _invalid(where: str, what: str, param: str | None) -> StrataError:
    return StrataError(errors.INVALID_REQUEST, f"{where} {what}", hint=errors.INVALID_REQUEST.remedy, param=param)


def _unhonoured(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Refuse what this version cannot do; note what changes nothing and what nobody knows."""
    notes = []
    for name, value in fields.items():
        if name in _REFUSED:
            if not any(type(value) is type(harmless) and value == harmless for harmless in _REFUSED[name]):
                raise StrataError(
                    errors.NOT_IN_THIS_BUILD,
                    f"{name} cannot be honoured by this version",
                    hint=f"remove {name}",
                    param=name,
                )
        elif name in _WITHOUT_EFFECT:
            notes.append(f"the field {name!r} has no effect here")
        elif name not in _KNOWN:
            notes.append(f"the field {name!r} is unknown and ignored")
    return tuple(notes)


_NAMES: dict[type, str] = {bool: "true or false", str: "a string", int: "a whole number", list: "a list"}


def _of(fields: Mapping[str, Any], name: str, kind: type[T], default: T, where: str = "") -> T:
    value = fields.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _invalid(where + name, f"must be {_NAMES[kind]}", where + name)
    return value


def _template_kwargs(fields: Mapping[str, Any]) -> JsonObject:
    name = "chat_template_kwargs"
    value = fields.get(name, NOTHING)
    if not isinstance(value, Mapping):
        raise _invalid(name, "must be an object", name)
    for key in ("messages", "tools", "add_generation_prompt"):
        if key in value:
            raise _invalid(f"{name}.{key}", "is a field of the request itself", f"{name}.{key}")
    return value


def _messages(fields: Mapping[str, Any]) -> list[Any]:
    messages = fields.get("messages")
    if not isinstance(messages, list):
        raise _invalid("messages", "must be a list of messages", "messages")
    return messages


# Messages


def _message(item: object, where: str) -> Message:
    if not isinstance(item, Mapping):
        raise _invalid(where, "must be an object with a role and content", where)
    role = item.get("role")
    if not isinstance(role, str) or not role:
        raise _invalid(f"{where}.role", "must be a string such as 'user'", f"{where}.role")
    dotted = f"{where}."
    return Message(
        role=role,
        content=_content(item.get("content"), f"{where}.content"),
        reasoning=_reasoning(item, dotted),
        tool_calls=_tool_calls(item.get("tool_calls"), f"{where}.tool_calls"),
        tool_call_id=_of(item, "tool_call_id", str, None, dotted),  # type: ignore[arg-type]
        name=_of(item, "name", str, None, dotted),  # type: ignore[arg-type]
        extra={key: value for key, value in item.items() if key not in _MESSAGE_FIELDS} or NOTHING,
    )


def _content(content: object, where: str) -> str | tuple[Part, ...] | None:
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise _invalid(where, "must be a string, a list of parts or null", where)
    return tuple(_part(part, f"{where}[{index}]") for index, part in enumerate(content))


def _part(part: object, where: str) -> Part:
    if isinstance(part, str):
        return TextPart(part)
    if not isinstance(part, Mapping):
        raise _invalid(where, "must be an object with a type", where)
    kind = part.get("type")
    if kind in ("text", "input_text", "output_text"):
        if not isinstance(part.get("text"), str):
            raise _invalid(f"{where}.text", "must be a string", f"{where}.text")
        return TextPart(part["text"])
    if kind in ("image_url", "image"):
        return ImagePart(_url(part, where))
    raise _invalid(f"{where}.type", f"is {kind!r}; it must be 'text' or 'image_url'", f"{where}.type")


def _url(part: Mapping[str, Any], where: str) -> str:
    """The image's URL, from the forms in use: `image_url` (an object or a string), `image`, `url`."""
    for key in ("image_url", "image", "url"):
        value = part.get(key)
        if isinstance(value, Mapping):
            value = value.get("url")
        if isinstance(value, str):
            return value
    raise _invalid(f"{where}.image_url", "must hold a url", f"{where}.image_url")


def _reasoning(item: Mapping[str, Any], where: str) -> str | None:
    for name in _REASONING:
        reasoning = _of(item, name, str, None, where)  # type: ignore[arg-type]
        if reasoning is not None:
            return reasoning  # type: ignore[no-any-return]
    return None


def _tool_calls(calls: object, where: str) -> tuple[ToolCall, ...]:
    if calls is None:
        return ()
    if not isinstance(calls, list):
        raise _invalid(where, "must be a list of calls or null", where)
    return tuple(_tool_call(call, f"{where}[{index}]") for index, call in enumerate(calls))


def _tool_call(call: object, where: str) -> ToolCall:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(function, Mapping):
        raise _invalid(where, "must be an object with a function", where)
    name = function.get("name")
    if not isinstance(name, str):
        raise _invalid(f"{where}.function.name", "must be a string", f"{where}.function.name")
    arguments = function.get("arguments")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, (str, Mapping)):
        param = f"{where}.function.arguments"
        raise _invalid(param, "must be JSON text or an object", param)
    return ToolCall(name, arguments, _of(call, "id", str, None, f"{where}."))  # type: ignore[arg-type]


# Tools


def _tools(fields: Mapping[str, Any]) -> tuple[Tool, ...]:
    tools = _of(fields, "tools", list, [])
    choice = fields.get("tool_choice", "auto")
    if choice == "none":
        return ()
    if choice != "auto":
        raise StrataError(errors.NOT_IN_THIS_BUILD, "tool_choice can only be 'auto' or 'none' in this version",
                          hint="remove tool_choice", param="tool_choice")  # fmt: skip
    return tuple(_tool(tool, f"tools[{index}]") for index, tool in enumerate(tools))


def _tool(tool: object, where: str) -> Tool:
    if not isinstance(tool, Mapping):
        raise _invalid(where, "must be an object", where)
    function = tool.get("function")
    if tool.get("type", "function") == "function" and (
        not isinstance(function, Mapping) or not isinstance(function.get("name"), str)
    ):
        raise _invalid(f"{where}.function", "must be an object with a name", f"{where}.function")
    return Tool(tool)


# Sampling


def _sampling(fields: Mapping[str, Any]) -> SamplingOptions:
    maximum = "max_completion_tokens" if fields.get("max_completion_tokens") is not None else "max_tokens"
    return SamplingOptions(
        max_tokens=_number(fields, maximum, int, low=1),
        temperature=_number(fields, "temperature", float, low=0),
        top_k=_number(fields, "top_k", int, low=-1),
        top_p=_number(fields, "top_p", float, low=0, high=1),
        min_p=_number(fields, "min_p", float, low=0, high=1),
        seed=_number(fields, "seed", int),
        repeat_penalty=_number(fields, "repeat_penalty", float, low=0),
        repeat_last_n=_number(fields, "repeat_last_n", int, low=-1),
        presence_penalty=_number(fields, "presence_penalty", float, low=-2, high=2),
        frequency_penalty=_number(fields, "frequency_penalty", float, low=-2, high=2),
        stop=_stop(fields.get("stop")),
    )


def _number(
    fields: Mapping[str, Any], name: str, kind: Callable[[Any], T], low: float | None = None, high: float | None = None
) -> T | None:
    value = fields.get(name)
    if value is None:
        return None
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not isinstance(value, (int, float)) or (kind is int and not whole):
        raise _invalid(name, "must be a whole number" if kind is int else "must be a number", name)
    low, high = _LOWEST if low is None else low, _HIGHEST if high is None else high
    if not low <= value <= high:
        raise _invalid(name, f"is {value}; it must be from {low:g} to {high:g}", name)
    return kind(value)


_LOWEST, _HIGHEST = -(2.0**63), 2.0**63


def _stop(stop: object) -> tuple[str, ...]:
    if stop is None:
        return ()
    texts = [stop] if isinstance(stop, str) else stop
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise _invalid("stop", "must be a string or a list of strings, none of them empty", "stop")
    return tuple(texts)
