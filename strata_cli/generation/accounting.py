"""How many of a prompt's tokens are the conversation's, and how many the answer's given beginning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Accounting:
    """Positions in tokens: X, the prompt up to where the answer's given beginning starts; N, that beginning; Z = X + N.

    Generation starts at position `start_position`, Z.
    """

    prompt_tokens: int
    prefix_tokens: int
    start_position: int


class _Prompt(Protocol):
    text: str
    header_end: int


def account(tokenize: Callable[[str], list[int]], prompt: _Prompt) -> tuple[list[int], Accounting]:
    """Tokenise a composed prompt, once as a whole, and count what of it is the answer's given beginning."""
    tokens = tokenize(prompt.text)
    total = len(tokens)
    if prompt.header_end >= len(prompt.text):
        return tokens, Accounting(total, 0, total)
    before = min(len(tokenize(prompt.text[: prompt.header_end])), total)
    return tokens, Accounting(before, total - before, total)


def line(accounting: Accounting, *, continued: bool) -> str:
    """The debug line; it never holds the prefix itself."""
    what = "continued message" if continued else "assistant prefill"
    return (
        f"{what}: {accounting.prefix_tokens} tokens (prompt {accounting.prompt_tokens} -> {accounting.start_position}, "
        f"generation starts at position {accounting.start_position})"
    )
