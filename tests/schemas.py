"""Schemas of random shapes, and documents that are valid against them, for hypothesis."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6)
KEYS = st.text("abcde", min_size=1, max_size=4)
Schema = dict[str, Any]


@dataclass(frozen=True)
class Written:
    """A schema, and a valid document as text."""

    schema: Schema
    text: str


def _leaves() -> st.SearchStrategy[Schema]:
    values = st.one_of(TEXT, st.integers(-99, 99), st.booleans(), st.none())
    return st.one_of(
        st.sampled_from([{"type": name} for name in ("string", "integer", "number", "boolean", "null")]),
        st.builds(lambda low, more: {"type": "integer", "minimum": low, "maximum": low + more},
                  st.integers(-500, 500), st.integers(0, 500)),
        st.builds(lambda low, more: {"type": "string", "minLength": low, "maxLength": low + more},
                  st.integers(0, 3), st.integers(0, 3)),
        st.builds(lambda items: {"enum": items}, st.lists(values, min_size=1, max_size=4)),
        st.builds(lambda value: {"const": value}, values),
    )  # fmt: skip


def _branches(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    arrays = st.builds(
        lambda items, low, more: {"type": "array", "items": items, "minItems": low, "maxItems": low + more},
        inner, st.integers(0, 2), st.integers(0, 2),
    )  # fmt: skip
    objects = st.dictionaries(KEYS, st.tuples(inner, st.booleans()), max_size=4).map(
        lambda fields: {
            "type": "object",
            "properties": {key: schema for key, (schema, _) in fields.items()},
            "required": [key for key, (_, required) in fields.items() if required],
            "additionalProperties": False,
        }
    )
    return st.one_of(arrays, objects, st.builds(lambda one, other: {"anyOf": [one, other]}, inner, inner))


SCHEMAS = st.recursive(_leaves(), _branches, max_leaves=6)


@st.composite
def written(draw: st.DrawFn) -> Written:
    schema = draw(SCHEMAS)
    form = draw(st.sampled_from([{}, {"separators": (",", ":")}, {"indent": 2}]))
    return Written(schema, json.dumps(_value(draw, schema), ensure_ascii=False, **form))


def _value(draw: st.DrawFn, schema: Schema) -> Any:
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if "anyOf" in schema:
        return _value(draw, draw(st.sampled_from(schema["anyOf"])))
    match schema["type"]:
        case "array":
            count = draw(st.integers(schema["minItems"], schema["maxItems"]))
            return [_value(draw, schema["items"]) for _ in range(count)]
        case "object":
            chosen = [key for key in schema["properties"] if key in schema["required"] or draw(st.booleans())]
            return {key: _value(draw, schema["properties"][key]) for key in chosen}
    return draw(_scalar(schema))


def _scalar(schema: Schema) -> st.SearchStrategy[Any]:
    match schema["type"]:
        case "string":
            alphabet = st.characters(exclude_categories=["Cs", "Cc"])
            return st.text(alphabet, min_size=schema.get("minLength", 0), max_size=schema.get("maxLength", 6))
        case "integer":
            return st.integers(schema.get("minimum", -9999), schema.get("maximum", 9999))
        case "number":
            return st.floats(allow_nan=False, allow_infinity=False)
        case "boolean":
            return st.booleans()
    return st.none()


def places(text: str) -> list[str]:
    """What each character of a JSON text is part of: "key", "string" or "other".

    A closing quote counts as part of its string, because more of the string may stand there.
    """
    kinds, start = ["other"] * len(text), -1
    at = 0
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        if text[at] == '"' and start < 0:
            start = at + 1
        elif text[at] == '"':
            kind = "key" if text[at + 1 :].lstrip().startswith(":") else "string"
            kinds[start : at + 1] = [kind] * (at + 1 - start)
            start = -1
        at += 1
    return kinds
