"""Template text in pieces: tags, words and blanks, so that texts are compared and cut at their seams."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PIECE = re.compile(r"<[^<>\s]*>|</?[^<>\s=\"]*=?|\[/?[A-Z_]+\]|\s+|\w+|.", re.DOTALL)
_LONGEST_CLOSE = 12


def pieces(text: str) -> list[str]:
    """The text's tags, words, blanks and other characters, in order and complete."""
    return _PIECE.findall(text)


def is_tag(piece: str) -> bool:
    """Whether a piece is markup rather than words: it stands in angle or square brackets."""
    return len(piece) > 1 and piece[0] in "<["


def common_start(first: str, second: str) -> str:
    """The pieces with which both texts begin."""
    return "".join(_same(pieces(first), pieces(second)))


def common_end(first: str, second: str) -> str:
    """The pieces with which both texts end."""
    return "".join(reversed(_same(pieces(first)[::-1], pieces(second)[::-1])))


def _same(first: Sequence[str], second: Sequence[str]) -> list[str]:
    same: list[str] = []
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        same.append(one)
    return same


def runs(text: str) -> tuple[str, ...]:
    """What a model may write of a closing text: every run of its pieces that begins with it or with a tag."""
    parts = pieces(text.strip())[:_LONGEST_CLOSE]
    seams = [end for end in range(1, len(parts) + 1) if _is_seam(parts, end)]
    starts = [start for start, piece in enumerate(parts) if start == 0 or is_tag(piece)]
    found = {"".join(parts[start:end]).rstrip() for start in starts for end in seams if end > start}
    return tuple(sorted(found, key=lambda run: (-len(run), run)))


def _is_seam(parts: Sequence[str], end: int) -> bool:
    """Whether a text may be cut here: beside a tag, before a blank or at its end."""
    return end == len(parts) or parts[end].isspace() or is_tag(parts[end]) or is_tag(parts[end - 1])


def blank_before(text: str) -> str:
    """The blanks at the beginning of a text."""
    return text[: len(text) - len(text.lstrip())]


def blank_after(text: str) -> str:
    """The blanks at the end of a text."""
    return text[len(text.rstrip()) :]


def framed(before: str, core: str, after: str) -> tuple[str, ...]:
    """A marker with as much of the blanks around it as is there: every end of `before`, every beginning of `after`."""
    return tuple(
        before[start:] + core + after[:end] for start in range(len(before) + 1) for end in range(len(after), -1, -1)
    )
