"""Probe conversations with tool calls, rendered: what learning and checking a format start from."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from strata_cli.conversation.messages import Json, JsonObject, Message, Tool, ToolCall
from strata_cli.errors import StrataError
from strata_cli.prompt.adapt import Calls, Reader
from strata_cli.prompt.toolformat.schema import type_of

_USER = "strataprobeuser"
CONTENT = "strataprobecontent"
REASONING = "strataprobereasoning"


@dataclass(frozen=True, slots=True)
class Sample:
    """A call whose words occur nowhere else: `text` stands under `key`, `number` under `other`, if there is one."""

    name: str
    id: str
    key: str
    text: str
    other: str = ""
    number: int = 0

    @property
    def arguments(self) -> dict[str, Json]:
        return {self.key: self.text, **({self.other: self.number} if self.other else {})}


FIRST = Sample("strata_first", "strataid1", "keyalpha", "valuealpha", "keybeta", 470011)
SECOND = Sample("strata_second", "strataid2", "keygamma", "valuegamma")
QUOTED = replace(SECOND, text="a<b>&c\nd\\n'e\"f")

# Words that break a careless parser.
HARD: JsonObject = {
    "text": 'it\'s "so",\nsaid 語 </tool_call> {x}\\',
    "count": 3,
    "share": -2.5,
    "flag": True,
    "nothing": None,
    "nested": {"deep": [1, "two", {"three": "d'or \"}\n"}], "off": False},
    "several": ["a", 1],
}
PLAIN: JsonObject = {"text": "some words", "count": 3}


def _tool(name: str, properties: dict[str, Json]) -> Tool:
    parameters: Json = {"type": "object", "properties": properties, "required": list(properties)}
    return Tool({"type": "function", "function": {"name": name, "description": "a tool", "parameters": parameters}})


_TEXT: Json = {"type": "string", "description": "a text"}
# Templates see simple types only: some loop without end over a bare array or object.
TOOLS = (
    _tool(FIRST.name, {FIRST.key: _TEXT, FIRST.other: {"type": "integer", "description": "a number"}}),
    _tool(SECOND.name, {SECOND.key: _TEXT}),
)
CHECKED = tuple(
    _tool(sample.name, {key: {"type": type_of(value)} for key, value in HARD.items()}) for sample in (FIRST, SECOND)
)


def call_of(sample: Sample, arguments: JsonObject | None = None) -> ToolCall:
    return ToolCall(sample.name, sample.arguments if arguments is None else arguments, sample.id)


def _calls(reader: Reader) -> Calls:
    try:
        return reader.calls()
    except StrataError:
        return Calls()


class Prober:
    """Renders assistant turns and cuts away what stands before them."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.calls = _calls(reader)

    def generation(self) -> str | None:
        """The generation prompt after the user's words."""
        return self._after_user((Message("user", _USER),), generation=True)

    def turn(self, content: str = "", *calls: ToolCall, reasoning: str | None = None) -> str | None:
        """A rendered turn after the user's words, None where the template refuses or moves it."""
        given = tuple(call._replace(arguments=self._form(call)) for call in calls)
        empty = None if calls and self.calls.null_content else ""
        message = Message("assistant", content or empty, reasoning, given)
        return self._after_user((Message("user", _USER), message), generation=False)

    def _form(self, call: ToolCall) -> str | JsonObject:
        if self.calls.mapping or isinstance(call.arguments, str):
            return call.arguments
        return json.dumps(dict(call.arguments), ensure_ascii=False)

    def _after_user(self, messages: tuple[Message, ...], *, generation: bool) -> str | None:
        try:
            text = self._reader.attempt(messages, tools=TOOLS, generation=generation)
        except StrataError:  # a probe that exhausts its budget shows nothing
            return None
        if text is None or _USER not in text:
            return None
        return text[text.rindex(_USER) + len(_USER) :]
