"""What a template leaves out of the prompt, named."""

from __future__ import annotations

import json
from collections.abc import Mapping

from strata_cli.conversation.messages import Message, TextPart, ToolCall
from strata_cli.prompt.adapt import Adapted, Reader

_NEAR = 50_000
_FULL_SEARCHES = 200


class _Search:
    """Looks for texts in a prompt near where the last one was found, since messages come in order as a rule.

    Only so many texts are looked for in the whole prompt: that keeps a long conversation linear.
    """

    def __init__(self, prompt: str) -> None:
        self._prompt = prompt
        self._position = 0
        self._left = _FULL_SEARCHES

    def says(self, text: str) -> bool:
        """Whether the prompt holds a text, as it is or inside a JSON string."""
        text = text.strip()
        escaped = json.dumps(text, ensure_ascii=False)[1:-1]
        return self._holds(text) or (escaped != text and self._holds(escaped))

    def _holds(self, text: str) -> bool:
        found = self._prompt.find(text, self._position, self._position + len(text) + _NEAR)
        if found < 0 and self._left:
            self._left -= 1
            found = self._prompt.find(text)
        self._position = max(self._position, found)
        return found >= 0

    def calls(self, call: ToolCall) -> bool:
        """Whether the prompt holds a call: its name and every text in its arguments."""
        arguments: object = call.arguments
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except ValueError:
                return call.name in self._prompt and self.says(str(arguments))
        return call.name in self._prompt and all(map(self.says, _leaves(arguments)))


def losses(reader: Reader, adapted: Adapted, prompt: str) -> tuple[str, ...]:
    """A note for each message, call, reasoning or set of tool definitions whose text is not in the prompt.

    Of a template that prints no calls, the words of a call are in the prompt by chance at most.
    """
    notes: list[str] = []
    search = _Search(prompt)
    if reader.has_tools and not reader.prints_tools():
        notes.append("the template leaves out the tool definitions")
    for item in adapted.placed:
        message, where = item.message, f"messages[{item.index}]"
        if message.reasoning and not search.says(message.reasoning):
            notes.append(f"{where}: the template leaves out the reasoning of this message")
        if not search.says(_text(message)):
            notes.append(f"{where}: the template leaves out text of this message ({message.role})")
        for call in message.tool_calls:
            if not reader.calls().printed or not search.calls(call):
                notes.append(f"{where}: the template leaves out the call of {call.name}")
    return tuple(notes)


def _text(message: Message) -> str:
    if isinstance(message.content, str):
        return message.content
    return next((part.text for part in message.content or () if isinstance(part, TextPart)), "")


def _leaves(value: object) -> list[str]:
    if isinstance(value, Mapping):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value] if isinstance(value, str) else []
