"""A grammar of the calls that a template's format knows, in llguidance's Lark notation, each held to its tool's schema.

What the format does not say is left to the model within narrow limits: blanks between the markers, ids and numbers of
calls, whether the closing of all calls is written before the turn ends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import assert_never

from strata_cli.conversation.messages import JsonObject, Tool
from strata_cli.prompt.toolformat.pieces import is_tag, pieces
from strata_cli.prompt.toolformat.schema import name_of, parameters_of, types_of
from strata_cli.prompt.toolformat.shape import (
    KEY,
    Arguments,
    Field,
    Keyed,
    Literals,
    Parameters,
    Record,
    ToolFormat,
    Turn,
)

_TERMINALS = r"""
ws: WS?
WS: /[ \t\r\n]{1,6}/
ID: /[A-Za-z0-9]{9}/
INDEX: /[0-9]|[1-9][0-9]/
WORD: /[A-Za-z]{1,12}/
TRUTH: /[Tt]rue|[Ff]alse/
"""
# As for whole documents: escapes as every JSON writer makes them, branches that overlap are checked afterwards.
_JSON = {
    "json_allow_general_unicode_escapes": True,
    "coerce_one_of": True,
    "whitespace_pattern": r"[\x20\x0A\x0D\x09]{1,20}",
}


def arguments_schema(tool: Tool) -> dict[str, Any]:
    """The schema of a tool's arguments, which are an object whatever it says."""
    schema = dict(parameters_of(tool) or {})
    return schema if "type" in schema or "$ref" in schema else {"type": "object", **schema}


def call_grammar(format: ToolFormat, turn: Turn, tools: Sequence[Tool], *, several: bool) -> str | None:
    """The grammar of one call of these tools, or of one and more; None for a format that it cannot express."""
    if format.recipient is None and turn.envelope is not None:
        return None
    rules = _Rules()
    if format.recipient is not None:
        start = _messages(rules, format.recipient, tools)
    else:
        start = _Calls(rules, format, turn, tools).all(several=several)
    return rules.text(start)


def markers_of(format: ToolFormat, turn: Turn) -> str:
    """All the format's own texts: a special token that is among them may be written."""
    body = format.body
    own: tuple[str, ...] = ()
    if isinstance(body, Parameters):
        own = (body.open, body.middle, body.close, *(body.typed or ()))
    quotes = (body.quote,) if isinstance(body, Literals) else ()
    header = tuple(part for part in format.header if isinstance(part, str))
    envelope = (turn.start, "<|channel|><|constrain|><|message|><|start|>") if format.recipient is not None else ()
    return "\n".join((*format.section, *format.call, format.separator, *header, *own, *quotes, *envelope))


def opening_of(format: ToolFormat) -> str:
    """The text with which the calls begin, empty where nothing marks it."""
    first = format.section[0] or format.call[0]
    return first.partition("\n")[0].rstrip("[")


class _Rules:
    """The rules of a grammar, named by number."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, body: str, attributes: str = "") -> str:
        name = f"r{len(self._lines)}"
        self._lines.append(f"{name}{attributes}: {body}")
        return name

    def json(self, schema: JsonObject) -> str:
        """A rule for the JSON documents of a schema."""
        return self.add(f"%json {json.dumps({'x-guidance': _JSON, **schema}, default=dict)}")

    def until(self, close: str) -> str:
        """A rule for any text and the closing that ends it."""
        return self.add("/(?s:.*)/", f"[suffix={_quoted(close)}]")

    def text(self, start: str) -> str:
        return "\n".join((f"start: {start}", *self._lines, _TERMINALS))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _either(choices: Sequence[str]) -> str:
    return f"({' | '.join(choices)})"


class _Calls:
    """Calls between the markers of a format."""

    def __init__(self, rules: _Rules, format: ToolFormat, turn: Turn, tools: Sequence[Tool]) -> None:
        self._rules, self._format, self._turn, self._tools = rules, format, turn, tools

    def all(self, *, several: bool) -> str:
        format = self._format
        bracketed = format.many or format.section[0].endswith("[")
        section, close = format.section[0].removesuffix("["), format.section[1].lstrip()
        opening = format.call[0]
        if self._turn.start and not section:
            # The prompt ends with the beginning of the marker.
            opening = opening.removeprefix(self._turn.start)
        first = self._call(opening)
        parts = [f"{_quoted(format.lead)}?" if format.lead else "", _literal(format.section[0])]
        parts += ['ws "["'] if bracketed and not format.section[0].endswith("[") else []
        parts += ["ws"] if section or bracketed else []
        parts.append(first)
        if several and (between := self._between()) is not None:
            another = first if opening == format.call[0] else self._call(format.call[0])
            parts.append(f"({between} {another})*")
        parts += ['ws "]"'] if bracketed else []
        close = close.removeprefix("]") if bracketed else close
        parts.append(_closing(close) if section.strip() else "")
        return " ".join(part for part in parts if part)

    def _between(self) -> str | None:
        """What stands between two calls; None where there is never more than one."""
        format = self._format
        if format.many:
            return 'ws "," ws'
        if separator := format.separator.strip():
            return f"ws {_quoted(separator)} ws"
        return "ws" if format.call[0] or (format.section[0] and isinstance(format.body, (Record, Keyed))) else None

    def _call(self, opening: str) -> str:
        """A rule for one call, of any of the tools."""
        choices = [self._rules.add(self._of(tool)) for tool in self._tools]
        close = self._format.call[1]
        # A name follows its marker at once.
        blank = "ws" if opening and isinstance(self._format.body, (Record, Keyed)) else ""
        parts = (_literal(opening), blank, _either(choices), f"ws {_quoted(close)}" if close else "")
        return self._rules.add(" ".join(part for part in parts if part))

    def _of(self, tool: Tool) -> str:
        body, name = self._format.body, name_of(tool) or ""
        match body:
            case Record():
                return self._record(body, tool, name)
            case Keyed():
                return _members({name: self._rules.json(arguments_schema(tool))})
            case Arguments():
                return f"{self._header(name)} ws {self._rules.json(arguments_schema(tool))}"
            case Parameters():
                return f"{self._header(name)} {self._parameters(body, tool)}"
            case Literals():
                return f"{self._header(name)} {self._literals(body, tool)} {_quoted(body.close)}"
            case _:
                assert_never(body)

    def _header(self, name: str) -> str:
        slots = {"name": _quoted(name), "id": "ID", "index": "INDEX"}
        return " ".join(slots[part.slot] if isinstance(part, Field) else _quoted(part) for part in self._format.header)

    def _record(self, body: Record, tool: Tool, name: str) -> str:
        tree: dict[str, Any] = {}
        values = [(body.name, _quoted(json.dumps(name, ensure_ascii=False)))]
        values.append((body.arguments, self._rules.json(arguments_schema(tool))))
        if body.id is not None:
            values.append((body.id, '"\\"" ID "\\""'))
        for path, rule in values:
            inner = tree
            for key in path[:-1]:
                inner = inner.setdefault(key, {})
            inner[path[-1]] = rule
        return _members(tree)

    # Arguments one by one

    def _parameters(self, body: Parameters, tool: Tool) -> str:
        written = []
        for key, schema, needed in _arguments(tool):
            rule = self._rules.add(f"ws {self._parameter(body, tool, key, schema)}")
            written.append(rule if needed else f"{rule}?")
        return " ".join(written)

    def _parameter(self, body: Parameters, tool: Tool, key: str, schema: JsonObject) -> str:
        types, close = types_of(tool, key), body.close.replace(KEY, key)
        textual = not types or "string" in types
        opening = _quoted(body.open + key + body.middle)
        if body.typed is not None:
            before, word, after = body.typed
            kind = _quoted(word) if textual else "WORD"
            opening = f"{_quoted(body.open + key + before)} {kind} {_quoted(after + body.middle)}"
        if (texts := _texts(schema)) is not None:
            blank = "ws" if body.blanks[0] else ""
            return f"{opening} {blank} {_either([_quoted(text) for text in texts])} {blank} {_quoted(close)}"
        if textual:
            return f"{opening} {self._rules.until(close)}"
        return f"{opening} ws {self._value(types, schema)} ws {_quoted(close)}"

    def _value(self, types: frozenset[str], schema: JsonObject) -> str:
        """A value that is no text; templates write truth as Python does, too."""
        return "TRUTH" if types == {"boolean"} else self._rules.json(schema)

    def _literals(self, body: Literals, tool: Tool) -> str:
        """Arguments with commas between those that are there: rules for what may come after none and after some."""
        after_none, after_some = "ws", "ws"
        for key, schema, needed in reversed(list(_arguments(tool))):
            one = self._rules.add(f"{_quoted(key + body.assign)} {self._literal(body, tool, key, schema)}")
            none, some = [f"ws {one} {after_some}"], [f'ws "," ws {one} {after_some}']
            if not needed:
                none.append(after_none)
                some.append(after_some)
            after_none, after_some = self._rules.add(" | ".join(none)), self._rules.add(" | ".join(some))
        return after_none

    def _literal(self, body: Literals, tool: Tool, key: str, schema: JsonObject) -> str:
        types, quote = types_of(tool, key), body.quote
        if (texts := _texts(schema)) is not None and not any(quote in text or "\\" in text for text in texts):
            return f"ws {_quoted(quote)} {_either([_quoted(text) for text in texts])} {_quoted(quote)}"
        if types and "string" not in types:
            return f"ws {self._value(types, schema)}"
        if len(quote) > 1:
            return f"ws {_quoted(quote)} {self._rules.until(quote)}"
        return f"ws {_quoted(quote)} /[^{quote}\\\\\\n]*/ {_quoted(quote)}"


def _messages(rules: _Rules, recipient: str, tools: Sequence[Tool]) -> str:
    """A message to a tool: gpt-oss writes the channel before the recipient, its template after it."""
    calls = []
    for tool in tools:
        to = f"to={recipient}{name_of(tool)}"
        first = f'"<|channel|>commentary {to}" (" <|constrain|>json" | " json")?'
        second = f'" {to}<|channel|>commentary" (" <|constrain|>json" | " json")?'
        calls.append(rules.add(f'({first} | {second}) "<|message|>" ws {rules.json(arguments_schema(tool))}'))
    return f'"<|start|>assistant"? {_either(calls)}'


def _literal(text: str) -> str:
    return _quoted(text) if text else ""


def _members(tree: Mapping[str, Any]) -> str:
    """A JSON object with these members, in this order."""
    written = []
    for key, value in tree.items():
        rule = _members(value) if isinstance(value, dict) else value
        written.append(f'{_quoted(json.dumps(key, ensure_ascii=False))} ws ":" ws {rule}')
    return " ".join(('"{" ws', ' ws "," ws '.join(written), 'ws "}"'))


def _closing(text: str) -> str:
    """As much of a closing text as the model writes, cut beside its tags."""
    parts = pieces(text)
    seams = [
        end for end in range(1, len(parts) + 1) if end == len(parts) or is_tag(parts[end]) or is_tag(parts[end - 1])
    ]
    # Each in one word: llguidance's lexer does not go back from a longer one.
    written = dict.fromkeys("".join(parts[:end]).rstrip() for end in seams)
    return f"(ws {_either([_quoted(text) for text in written])})?" if written else ""


def _arguments(tool: Tool) -> list[tuple[str, dict[str, Any], bool]]:
    """Each argument's key, its schema with the definitions that it may refer to, and whether it has to be there."""
    root = arguments_schema(tool)
    properties, required = root.get("properties"), root.get("required")
    definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
    needed = required if isinstance(required, (list, tuple)) else ()
    return [
        (key, definitions | (dict(schema) if isinstance(schema, Mapping) else {}), key in needed)
        for key, schema in (properties.items() if isinstance(properties, Mapping) else ())
    ]


def _texts(schema: JsonObject) -> list[str] | None:
    """The texts that an argument may be, None where it is not a choice of texts."""
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(choices, list) or not choices:
        return None
    texts = [text for text in choices if isinstance(text, str)]
    return texts if len(texts) == len(choices) else None
