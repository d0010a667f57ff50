"""What a template leaves out of the prompt, named."""

from __future__ import annotations

import json

from strata_cli.conversation.messages import Message, TextPart, ToolCall
from strata_cli.prompt.adapt import Adapted, Reader


def losses(reader: Reader, adapted: Adapted, prompt: str) -> tuple[str, ...]:
    """A note for each message, call, reasoning or set of tool definitions whose text is not in the prompt."""
    notes: list[str] = []
    if reader.has_tools and not reader.prints_tools():
        notes.append("the template leaves out the tool definitions")
    for item in adapted.placed:
        where = f"messages[{item.index}]"
        if not _says(prompt, _text(item.message)):
            notes.append(f"{where}: the template leaves out text of this message ({item.message.role})")
        if item.message.reasoning and not _says(prompt, item.message.reasoning):
            notes.append(f"{where}: the template leaves out the reasoning of this message")
        for call in item.message.tool_calls:
            if not _calls(prompt, call):
                notes.append(f"{where}: the template leaves out the call of {call.name}")
    return tuple(notes)


def _text(message: Message) -> str:
    if isinstance(message.content, str):
        return message.content
    return next((part.text for part in message.content or () if isinstance(part, TextPart)), "")


def _says(prompt: str, text: str) -> bool:
    """Whether the prompt holds a text, as it is or inside a JSON string."""
    text = text.strip()
    return text in prompt or json.dumps(text, ensure_ascii=False)[1:-1] in prompt


def _calls(prompt: str, call: ToolCall) -> bool:
    """Whether the prompt holds a call: its name and every value of its arguments."""
    arguments: object = call.arguments
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return call.name in prompt and _says(prompt, call.arguments if isinstance(call.arguments, str) else "")
    return call.name in prompt and all(_says(prompt, leaf) for leaf in _leaves(arguments))


def _leaves(value: object) -> list[str]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value] if isinstance(value, str) else []
