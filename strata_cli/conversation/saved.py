"""Messages as the JSON list that a session file holds and that `strata chat` reads."""

from __future__ import annotations

import json

from strata_cli.conversation.dialogue import Dialogue
from strata_cli.conversation.incoming import decode, load_json
from strata_cli.conversation.messages import ImagePart, Json, Message, Part, TextPart, ToolCall
from strata_cli.conversation.openai import parse
from strata_cli.errors import SESSION_INVALID, StrataError

UNFINISHED = "unfinished"
"""The field that marks a last answer which goes on."""


def dump(dialogue: Dialogue) -> bytes:
    """A JSON list of messages in UTF-8, a message a line."""
    values = [message_value(message) for message in dialogue.messages]
    if dialogue.unfinished and values:
        values[-1][UNFINISHED] = True
    text = "[\n" + ",\n".join(json.dumps(value, ensure_ascii=False) for value in values) + "\n]\n"
    # Half of a surrogate pair has no UTF-8; backslashreplace writes it as JSON's own escape.
    return text.encode("utf-8", "backslashreplace")


def load(data: bytes, source: str) -> Dialogue:
    """The dialogue of a session file, empty when that is; raises SESSION_INVALID and names what is wrong."""
    if not data.strip():
        return Dialogue()
    try:
        value = load_json(decode(data, source), source)
        if not isinstance(value, list):
            whole = isinstance(value, dict) and "messages" in value
            hint = 'a session holds only the list under "messages"; it was left as it is' if whole else ""
            raise StrataError(SESSION_INVALID, f"{source} is not a JSON list of messages", hint=hint)
        messages = parse(value).messages
    except StrataError as error:
        hint = error.hint if error.kind is SESSION_INVALID else SESSION_INVALID.remedy
        raise StrataError(SESSION_INVALID, error.message, hint=hint) from None
    last = messages[-1] if messages else None
    unfinished = last is not None and last.role == "assistant" and last.extra.get(UNFINISHED) is True
    return Dialogue(tuple(map(_without_mark, messages)), unfinished)


def _without_mark(message: Message) -> Message:
    return message._replace(extra={key: value for key, value in message.extra.items() if key != UNFINISHED})


def message_value(message: Message) -> dict[str, Json]:
    """A message in OpenAI's form; fields that were never there stay away."""
    value: dict[str, Json] = {"role": message.role, "content": _content(message.content)}
    if message.reasoning is not None:
        value["reasoning_content"] = message.reasoning
    if message.tool_calls:
        value["tool_calls"] = [_call(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        value["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        value["name"] = message.name
    return value | dict(message.extra)


def _content(content: str | tuple[Part, ...] | None) -> Json:
    return content if content is None or isinstance(content, str) else [_part(part) for part in content]


def _part(part: Part) -> Json:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case ImagePart():
            return {"type": "image_url", "image_url": {"url": part.url}}


def _call(call: ToolCall) -> Json:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
    value: dict[str, Json] = {"type": "function", "function": {"name": call.name, "arguments": arguments}}
    return value if call.id is None else {"id": call.id, **value}
