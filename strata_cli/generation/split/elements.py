"""Nested values that are written as elements: each member of an object, and each item of a list, between tags."""

from __future__ import annotations

import json

from strata_cli.conversation.messages import Json
from strata_cli.generation.split.notation import DEPTH, Broken, scalar
from strata_cli.prompt.toolformat.shape import KEY, Parameters

_ITEM = "item"


def elements_text(text: str, body: Parameters) -> str | None:
    """The JSON text of a value whose members stand between the format's tags, None where it is not such a value."""
    text = text.strip()
    if not text.startswith(body.open):
        return None
    try:
        value, end = _value(text, 0, "", body, 0)
    except Broken:
        return None
    return json.dumps(value, ensure_ascii=False) if end == len(text) else None


def _value(text: str, start: int, close: str, body: Parameters, depth: int) -> tuple[Json, int]:
    """The value from here up to and with its closing tag."""
    if depth > DEPTH:
        raise Broken
    if not text.startswith(body.open, start) or (close and text.startswith(close, start)):
        end = text.find(close, start)
        if end < 0:
            raise Broken
        return scalar(text[start:end]), end + len(close)
    members: list[tuple[str, Json]] = []
    while text.startswith(body.open, start) and not (close and text.startswith(close, start)):
        after = start + len(body.open)
        middle = text.find(body.middle, after)
        if middle < 0:
            raise Broken
        key = text[after:middle]
        value, start = _value(text, middle + len(body.middle), body.close.replace(KEY, key), body, depth + 1)
        members.append((key, value))
    if not text.startswith(close, start):
        raise Broken
    listed = all(key == _ITEM for key, _ in members)
    return [value for _, value in members] if listed else dict(members), start + len(close)
