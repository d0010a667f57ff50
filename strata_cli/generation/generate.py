"""The spine: a prompt goes in, events come out, in the order in which they happen.

Not streaming is a fold over this stream; nothing else generates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Literal, TypeAlias

from strata_cli.engine import Prefill, Progress, Sampling, Timeline, Token
from strata_cli.errors import Interrupted
from strata_cli.generation.text import StopStrings, Utf8

FinishReason: TypeAlias = Literal["stop", "stop_string", "length", "interrupted"]


@dataclass(frozen=True, slots=True)
class Started:
    """The prompt is evaluated."""

    prefill: Prefill


@dataclass(frozen=True, slots=True)
class Delta:
    """New text of the answer, never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """Why it ended, and what it took.

    `tokens` counts what was sampled, the token that ended it included; `ids` are the sampled tokens without that one;
    `pending` are the bytes of a character that is still incomplete. With both an answer can go on as if never stopped.
    """

    reason: FinishReason
    stop_string: str | None
    tokens: int
    ids: tuple[int, ...]
    pending: bytes
    first_token_seconds: float
    decode_seconds: float


Event: TypeAlias = Started | Delta | Finished


@dataclass(frozen=True, slots=True)
class Plan:
    """How an answer is generated; `max_tokens` None means up to the end of the context.

    `pending` are the bytes of a character that the text before left incomplete.
    """

    sampling: Sampling
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    pending: bytes = b""


def generate(
    timeline: Timeline,
    tokens: Sequence[int],
    plan: Plan,
    clock: Callable[[], float],
    progress: Progress | None = None,
) -> Iterator[Event]:
    """Evaluate the prompt and go on from its end.

    Raises Interrupted when the prompt's evaluation is interrupted; an interrupted answer is a Finished event.
    """
    began = clock()
    yield Started(timeline.prefill(tokens, progress))
    answer = _Answer(plan)
    start = first = clock()
    if plan.max_tokens != 0:
        with closing(timeline.decode(plan.sampling)) as decoded:
            for token in _until_interrupted(decoded, answer):
                if not answer.tokens:
                    first = clock()
                if text := answer.take(token):
                    yield Delta(text)
                if answer.reason is not None:
                    break
    if text := answer.finish():
        yield Delta(text)
    yield answer.finished(first - began if answer.tokens else 0.0, clock() - start)


def _until_interrupted(decoded: Iterator[Token], answer: _Answer) -> Iterator[Token]:
    try:
        yield from decoded
    except Interrupted:
        answer.reason = "interrupted"


class _Answer:
    """The text so far: what may be shown, what is held back, and whether it is over."""

    def __init__(self, plan: Plan) -> None:
        self._limit = plan.max_tokens
        self._utf8 = Utf8()
        self._utf8.push(plan.pending)
        self._stops = StopStrings(plan.stop)
        self._ids: list[int] = []
        self.tokens = 0
        self.reason: FinishReason | None = None

    def take(self, token: Token) -> str:
        self.tokens += 1
        if token.end:
            self.reason = "stop"
            return ""
        self._ids.append(token.id)
        text = self._stops.push(self._utf8.push(token.data))
        if self._stops.found is not None:
            self.reason = "stop_string"
        elif self._limit is not None and self.tokens >= self._limit:
            self.reason = "length"
        return text

    def finish(self) -> str:
        return self._stops.finish()

    def finished(self, first_token_seconds: float, decode_seconds: float) -> Finished:
        return Finished(
            reason=self.reason or "length",
            stop_string=self._stops.found,
            tokens=self.tokens,
            ids=tuple(self._ids),
            pending=b"" if self._stops.found is not None else self._utf8.pending,
            first_token_seconds=first_token_seconds,
            decode_seconds=decode_seconds,
        )
