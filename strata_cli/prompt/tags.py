"""Reasoning blocks as data: how the families in use open and close them, and what a stretch of text leaves open."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Family(NamedTuple):
    """A pair of tags around reasoning; `inline` where a client may write them into the content of a message."""

    open: str
    close: str
    inline: bool = False


# A new family is a row.
FAMILIES: tuple[Family, ...] = (
    Family("<think>", "</think>", inline=True),
    Family("<seed:think>", "</seed:think>", inline=True),
    Family("<mm:think>", "</mm:think>", inline=True),
    Family("<think:opensource>", "</think:opensource>", inline=True),
    Family("[THINK]", "[/THINK]", inline=True),
    Family("<|START_THINKING|>", "<|END_THINKING|>", inline=True),
    Family("<|open|>think<|sep|>", "<|close|>think<|sep|>", inline=True),
    Family("<|channel>thought", "<channel|>"),
    Family("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
    Family("<|think|>", "<|content|>"),
    Family("to=self<|message|>", "to=user<|message|>"),
    Family("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),
)


class Block(NamedTuple):
    """The last reasoning block of a text: where its tags begin and end, None for a tag that is not there."""

    family: Family
    opened: tuple[int, int] | None
    closed: tuple[int, int] | None

    @property
    def state(self) -> Literal["open", "closed"]:
        return "open" if self.closed is None else "closed"


_BY_TAG = {tag: family for family in FAMILIES for tag in (family.open, family.close)}


def last_block(text: str) -> Block | None:
    """The block that a text's last tag belongs to; None where the text holds no tag."""
    last, tag = max((text.rfind(tag), tag) for tag in _BY_TAG)
    if last < 0:
        return None
    family, place = _BY_TAG[tag], (last, last + len(tag))
    if tag == family.open:
        return Block(family, place, None)
    start = text.rfind(family.open, 0, last)
    return Block(family, None if start < 0 else (start, start + len(family.open)), place)


def family_in(source: str) -> Family | None:
    """The first family whose tags a template's source mentions."""
    found = [(place, tag) for tag in _BY_TAG if (place := source.find(tag)) >= 0]
    return _BY_TAG[min(found)[1]] if found else None


class Inline(NamedTuple):
    """Reasoning written at the very start of a content: the reasoning, the text after it, whether it was closed."""

    reasoning: str
    text: str
    closed: bool


def inline_reasoning(content: str) -> Inline | None:
    """The reasoning block at the start of a content; None where there is none or an empty one."""
    body = content.lstrip()
    for family in FAMILIES:
        if family.inline and body.startswith(family.open):
            reasoning, closing, text = body[len(family.open) :].partition(family.close)
            if not reasoning.strip():
                return None
            return Inline(reasoning.strip("\n"), text.lstrip("\n"), closed=bool(closing))
    return None
