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


def beginnings(text: str) -> tuple[str, ...]:
    """Where a model may begin an opening text: at its first piece, or at a later tag when it leaves the ones before out."""
    parts = pieces(text.strip())
    starts = [index for index, piece in enumerate(parts) if index == 0 or piece[0] == "<"]
    return tuple("".join(parts[index:]) for index in starts)


def runs(text: str) -> tuple[str, ...]:
    """What a model may write of a closing text: every run of its pieces that begins with a tag or with all of it."""
    parts = pieces(text.strip())[:_LONGEST_CLOSE]
    starts = [index for index, piece in enumerate(parts) if index == 0 or is_tag(piece)]
    found = {
        "".join(parts[start:end]).rstrip() for start in starts for end in range(start + 1, len(parts) + 1)
        if is_tag(parts[start]) or end == len(parts)
    }  # fmt: skip
    return tuple(sorted(found - {""}, key=len, reverse=True))


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
