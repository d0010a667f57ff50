"""What is answered: one finished answer with its figures, before it takes a dialect's shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Ending: TypeAlias = Literal["stop", "stop_string", "length", "interrupted"]


@dataclass(frozen=True, slots=True)
class Figures:
    """Tokens and seconds of one answer.

    `prompt_tokens` X, `prefix_tokens` N and `start_position` Z as in the prefill accounting, Z = X + N;
    `reused_tokens` of Z were in the KV cache already; `context_left` is what remains after the answer.
    """

    prompt_tokens: int
    prefix_tokens: int
    start_position: int
    reused_tokens: int
    generated_tokens: int
    context_left: int
    prefill_seconds: float
    decode_seconds: float
    first_token_seconds: float


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer: only what was generated, never the prefix. `created` is in seconds since the epoch."""

    id: str
    created: int
    model: str
    content: str
    ending: Ending
    figures: Figures
    seed: int
    notes: tuple[str, ...] = ()
    stop_string: str | None = None
