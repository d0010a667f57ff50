"""What a line of markdown is, told from its beginning as early as possible and never from what comes after it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from strata_cli.output.terminal.inline import BOLD, DIM, UNDERLINE
from strata_cli.output.terminal.wrap import Piece, width

Kind: TypeAlias = Literal["text", "verbatim", "rule", "fence", "row", "blank"]

MARKER = "36"

# `>>> ` is Python's prompt, `>text` a part of something else.
_QUOTES = re.compile(r"(?: {0,3}>{1,2}(?: |$))+")
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_ITEM_BEGUN = re.compile(r"(?:[-*+]|\d{1,9}[.)]?)[ \t]*$")
_RULE = re.compile(r"([-*_])[ \t]*(?:\1[ \t]*){2,}$")
_RULE_BEGUN = re.compile(r"([-*_])[ \t]*(?:\1[ \t]*)*$")
_HEADING = re.compile(r"(#{1,6})([ \t]|$)")
_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*([^`]*)$")


@dataclass(frozen=True, slots=True)
class Line:
    """A line's kind, what its first and its further rows begin with, and its text.

    `fence` is the run that opens a block of code, its language is the text; `item` and `quotes` say where it stands.
    """

    kind: Kind
    first: tuple[Piece, ...]
    margin: tuple[Piece, ...]
    text: str
    style: str = ""
    fence: str = ""
    quotes: int = 0
    item: bool = False
    indent: int = 0


def read_line(head: str, *, complete: bool, in_list: bool) -> Line | None:
    """The line that begins so; None where it is too early to tell."""
    body, quotes = unquoted(head)
    if not complete and re.fullmatch(r"[ >]*|>>>.?", head):
        return None
    bars: tuple[Piece, ...] = (("│ " * quotes, DIM),) if quotes else ()
    first, margin, item, indent = bars, bars, False, 0
    while True:
        rest = body.lstrip(" \t")
        pad = body[: len(body) - len(rest)].expandtabs(4)
        if not rest:
            return Line("blank", first, (), "", quotes=quotes, item=item) if complete else None
        deep = indent == 0 and len(pad) >= 4 and not in_list and not item
        indent += len(pad)
        first, margin = (*first, (pad, "")), (*margin, (pad, ""))
        if not complete and (_ITEM_BEGUN.match(rest) or _RULE_BEGUN.match(rest)):
            return None
        found = None if deep or _RULE.match(rest) else _ITEM.match(rest)
        if found is None:
            break
        marker, body, item = found.group().expandtabs(4), rest[found.end() :], True
        first, margin = (*first, (_bullet(marker), MARKER)), (*margin, (" " * width(marker), ""))
        indent += width(marker)
    return _leaf(rest, complete, deep, Line("text", first, margin, rest, "", "", quotes, item, indent))


def unquoted(head: str) -> tuple[str, int]:
    """A line without its quote marks, and their number."""
    found = _QUOTES.match(head)
    return (head[found.end() :], found.group().count(">")) if found else (head, 0)


def _bullet(marker: str) -> str:
    return "•" + marker[1:] if marker.startswith("*") else marker


def _leaf(rest: str, complete: bool, deep: bool, line: Line) -> Line | None:
    """What stands behind quotes, indentation and list markers."""
    if rest.startswith(("```", "~~~")) or (rest in ("`", "``", "~", "~~") and not complete):
        if not complete:
            return None
        if found := _FENCE.match(rest):
            return replace(line, kind="fence", text=found.group(2).strip(), fence=found.group(1))
    if deep:
        return replace(line, kind="verbatim")
    if rest[0] == "|":
        return replace(line, kind="row") if complete else None
    if _RULE.match(rest):
        return replace(line, kind="rule")
    if not complete and re.fullmatch("#{1,6}", rest):
        return None
    if found := _HEADING.match(rest):
        style = f"{BOLD};{UNDERLINE}" if found.end(1) == 1 else BOLD
        return replace(line, text=rest[found.end() :], style=style, first=(*line.first, (found.group(), DIM)))
    return line


def closes(head: str, fence: str) -> bool:
    """Whether this line ends the block of code that such a run of marks began."""
    text = head.strip()
    return len(text) >= len(fence) and not text.strip(fence[0])
