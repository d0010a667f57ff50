"""The spine: a prompt goes in, events come out, in the order in which they happen.

Not streaming is a fold over this stream; nothing else generates.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Literal, TypeAlias

from strata_cli.engine import Constraint, Prefill, Progress, Sampling, Timeline, Token
from strata_cli.errors import Interrupted
from strata_cli.generation.text import StopStrings, Utf8

FinishReason: TypeAlias = Literal["stop", "stop_string", "length", "interrupted"]


@dataclass(frozen=True, slots=True)
class Started:
    """The prompt is evaluated."""

    prefill: Prefill


@dataclass(frozen=True, slots=True)
class Delta:
    """New text of the answer, and the tokens that begin in it where logprobs were asked for.

    The text is empty only where the last tokens come without any: those of a character that never became whole.
    """

    text: str
    tokens: tuple[Token, ...] = ()


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

    `pending` are the bytes of a character that the text before left incomplete. `logprobs` is None, or the number of
    likeliest tokens that each token comes with, 0 and up. `constraint` has started and is used up.
    """

    sampling: Sampling
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    pending: bytes = b""
    logprobs: int | None = None
    constraint: Constraint | None = None


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
        # Without a likeliest token the engine gives no logprob of the chosen one either.
        wanted = 0 if plan.logprobs is None else max(plan.logprobs, 1)
        with closing(timeline.decode(plan.sampling, logprobs=wanted, constraint=plan.constraint)) as decoded:
            for token in _until_interrupted(decoded, answer):
                if not answer.tokens:
                    first = clock()
                if text := answer.take(token):
                    yield Delta(text, answer.began(text))
                if answer.reason is not None:
                    break
    text, rest = answer.finish()
    if text or rest:
        yield Delta(text, rest)
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
        self._scored = None if plan.logprobs is None else _Scored()
        self.tokens = 0
        self.reason: FinishReason | None = None

    def take(self, token: Token) -> str:
        self.tokens += 1
        if token.end:
            self.reason = "stop"
            return ""
        self._ids.append(token.id)
        decoded = self._utf8.push(token.data)
        if self._scored is not None:
            self._scored.push(token, decoded)
        text = self._stops.push(decoded)
        if self._stops.found is not None:
            self.reason = "stop_string"
        elif self._limit is not None and self.tokens >= self._limit:
            self.reason = "length"
        return text

    def began(self, text: str) -> tuple[Token, ...]:
        """The tokens that begin in this text, which is the next to be shown."""
        return () if self._scored is None else self._scored.shown(text)

    def finish(self) -> tuple[str, tuple[Token, ...]]:
        """What was held back; the tokens that a stop string begins with or follows are no part of the answer."""
        text = self._stops.finish()
        tokens = self.began(text)
        if self._scored is not None and self._stops.found is None:
            tokens += self._scored.rest()
        return text, tokens

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


class _Scored:
    """Tokens with logprobs, each kept until the text is shown in which it begins.

    A token's place is the number of characters before it; one that begins inside of a character begins at it.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Token]] = deque()
        self._decoded = self._shown = 0

    def push(self, token: Token, text: str) -> None:
        self._waiting.append((self._decoded, token))
        self._decoded += len(text)

    def shown(self, text: str) -> tuple[Token, ...]:
        self._shown += len(text)
        tokens = []
        while self._waiting and self._waiting[0][0] < self._shown:
            tokens.append(self._waiting.popleft()[1])
        return tuple(tokens)

    def rest(self) -> tuple[Token, ...]:
        return tuple(token for _, token in self._waiting)
