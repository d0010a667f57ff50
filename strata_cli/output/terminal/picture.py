"""A prompt for a person: what the template wrote, where the prefix begins, the blanks, and the tokens."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from strata_cli.output.terminal.sanitize import visible
from strata_cli.output.terminal.wrap import GIVEN, Piece, drawn, styled

TEMPLATE, SPECIAL, MARK, EVERY_OTHER = "2", "35", "2;36", "4"
PREFIX_BEGINS = "▸"

# Blanks at the edge of a line, several in a row, tabs, and those that look like others.
_BLANKS = re.compile(r"^ +| +$| {2,}|\t|\u00a0|[\u200b-\u200d\u2060\ufeff\u00ad]", re.MULTILINE)
_SHOWN = {" ": "·", "\t": "→\t", "\u00a0": "⍽"}
_SPECIAL_TOKEN = re.compile(rb"<[^\s<>]+>|\[[^\s\[\]a-z]+\]|<\xef\xbd\x9c.*\xef\xbd\x9c>", re.DOTALL)


class Span(Protocol):
    """A stretch of the prompt that did not come from the template."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


class Prompt(Protocol):
    """A composed prompt; the answer's given beginning is what follows the header."""

    @property
    def text(self) -> str: ...
    @property
    def header_end(self) -> int: ...
    @property
    def spans(self) -> Sequence[Span]: ...


def picture(prompt: Prompt, tokens: Sequence[bytes], *, colour: bool) -> str:
    """The template's text is dim, its special tokens coloured, messages plain, the prefix bright behind a mark.

    Every other token is underlined. Blanks that are easily missed are drawn, each newline has a mark, and the last line
    explains what is there. Without colours there are the marks only; without tokens nothing is said of them.
    """
    text, begun = prompt.text, prompt.header_end
    edges = {0, len(text), begun, *(edge for span in prompt.spans for edge in (span.start, span.end))}
    borders = _borders(text, tokens)
    pieces: list[Piece] = []
    for start, end in itertools.pairwise(sorted(edges)):
        if start == begun:
            pieces.append((PREFIX_BEGINS, GIVEN))
        said = any(span.start <= start < span.end for span in prompt.spans)
        pieces += _stretch(text, start, end, GIVEN if start >= begun else "" if said else TEMPLATE, borders)
    marked = list(_with_marks(pieces))
    lines = drawn(marked) if colour else "".join(piece for piece, _ in marked)
    legend = _legend(begun < len(text), len(tokens), colour)
    return f"{lines}\n{legend}\n" if legend else f"{lines}\n"


def _borders(text: str, tokens: Sequence[bytes]) -> list[tuple[int, int, str]]:
    """Where each token begins and ends, in characters, and how it is drawn; empty where they are not this text."""
    data = text.encode("utf-8", "replace")
    tokens = _as_this(data, tokens)
    counts, found, at = _counts(data), [], 0
    for number, token in enumerate(tokens):
        start, at = at, at + len(token)
        style = SPECIAL if _SPECIAL_TOKEN.fullmatch(token) else ""
        if number % 2:
            style = styled(style, EVERY_OTHER)
        found.append((counts[start], counts[at], style))
    return found


def _as_this(data: bytes, tokens: Sequence[bytes]) -> Sequence[bytes]:
    """The tokens that make up the data; a BOS or a space that the tokeniser added is none of it."""
    for skipped in (0, 1):
        rest = list(tokens[skipped:])
        if rest and b"".join(rest) == b" " + data:
            rest[0] = rest[0][1:]
        if b"".join(rest) == data:
            return rest
    return ()


def _counts(data: bytes) -> list[int]:
    """The number of characters that begin before each byte."""
    counts, count = [], 0
    for byte in data:
        counts.append(count)
        count += byte & 0xC0 != 0x80
    return [*counts, count]


def _stretch(text: str, start: int, end: int, base: str, borders: Sequence[tuple[int, int, str]]) -> Iterator[Piece]:
    """One stretch, token by token."""
    at = start
    for begin, stop, style in borders:
        if begin < end and stop > at:
            yield text[at : min(stop, end)], style if style.startswith(SPECIAL) else styled(base, style)
            at = min(stop, end)
    if at < end:
        yield text[at:end], base


def _with_marks(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The same with blanks and line ends drawn, and with nothing that steers the terminal."""
    pieces = list(pieces)
    whole = "".join(text for text, _ in pieces)
    marked = {at for found in _BLANKS.finditer(whole) for at in range(*found.span())}
    at = 0
    for text, style in pieces:
        begun = ""
        for letter in text:
            if letter == "\n" or at in marked:
                yield visible(begun), style
                begun = ""
                yield (("↵", MARK) if letter == "\n" else (_SHOWN.get(letter) or f"<U+{ord(letter):04X}>", MARK))
                if letter == "\n":
                    yield "\n", ""
            else:
                begun += letter
            at += 1
        yield visible(begun), style


def _legend(given: bool, tokens: int, colour: bool) -> str:
    parts: list[list[Piece]] = []
    if colour:
        parts += [[("template", TEMPLATE)], [("special", SPECIAL)], [("message", "")]]
    if given:
        parts.append([(f"{PREFIX_BEGINS}given", GIVEN)])
    if tokens:
        parts.append([(f"{tokens:,} tokens", TEMPLATE)])
        if colour:
            parts[-1] += [(", ", TEMPLATE), ("every other", styled(TEMPLATE, EVERY_OTHER)), (" underlined", TEMPLATE)]
    words = [piece for part in parts for piece in ((" · ", TEMPLATE), *part)][1:]
    return drawn(words) if colour else "".join(text for text, _ in words)
