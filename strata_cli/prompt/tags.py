"""Reasoning blocks as data: how the families in use open and close them, and what a stretch of text leaves open."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Family:
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


@dataclass(frozen=True, slots=True)
class Block:
    """The last reasoning block of a text: where its tags begin and end, None for a tag that is not there."""

    family: Family
    opened: tuple[int, int] | None
    closed: tuple[int, int] | None

    @property
    def state(self) -> Literal["open", "closed"]:
        return "open" if self.closed is None else "closed"


_BY_TAG = {tag: family for family in FAMILIES for tag in (family.open, family.close)}
_TAG = re.compile("|".join(re.escape(tag) for tag in sorted(_BY_TAG, key=len, reverse=True)))


def last_block(text: str) -> Block | None:
    """The block that a text's last tag belongs to; None where the text holds no tag."""
    last = max(_TAG.finditer(text), key=re.Match.start, default=None)
    if last is None:
        return None
    family = _BY_TAG[last[0]]
    if last[0] == family.open:
        return Block(family, last.span(), None)
    start = text.rfind(family.open, 0, last.start())
    return Block(family, None if start < 0 else (start, start + len(family.open)), last.span())


def family_in(source: str) -> Family | None:
    """The first family whose tags a template's source mentions."""
    found = _TAG.search(source)
    return None if found is None else _BY_TAG[found[0]]


@dataclass(frozen=True, slots=True)
class Inline:
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
