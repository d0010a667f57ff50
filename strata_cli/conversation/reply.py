"""What is answered, before it takes a dialect's shape: an answer's events, and the whole of it as a fold over them.

An answer is `Began`, then for each of its choices what it says and `Stopped`, then `Ended`. A block ends where another
kind of event comes, so nothing says that it ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from typing_extensions import assert_never

from strata_cli.conversation.messages import NOTHING, JsonObject, ToolCall

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
class Logprob:
    """A token by its bytes, which may be half of a character, and its natural-log probability."""

    data: bytes
    logprob: float


@dataclass(frozen=True, slots=True)
class ScoredToken:
    """A token of the answer and the likeliest ones in its place, likeliest first."""

    token: Logprob
    top: tuple[Logprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Head:
    """What is known of an answer before its first token.

    `id` is without a dialect's own beginning; `created` is in seconds since the epoch; `usage` is what the request says
    of it in a stream; `logprobs` says whether tokens are scored.
    """

    id: str
    created: int
    model: str
    seed: int
    notes: tuple[str, ...] = ()
    metadata: JsonObject = field(default_factory=lambda: NOTHING)
    usage: bool | None = None
    logprobs: bool = False


@dataclass(frozen=True, slots=True)
class Began:
    """The prompt is evaluated; the figures are those of an answer without a token."""

    head: Head
    figures: Figures


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the answer, and the tokens that begin in it; empty only where tokens come without text."""

    text: str
    tokens: tuple[ScoredToken, ...] = ()


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A piece of the reasoning, and the tokens that begin in it."""

    text: str
    tokens: tuple[ScoredToken, ...] = ()


@dataclass(frozen=True, slots=True)
class CallBegan:
    """A tool call; an `id` is made for one that has none."""

    name: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class CallArguments:
    """A piece of the last call's arguments as JSON text; the pieces of one call make one JSON object."""

    text: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """A choice is complete."""

    ending: Ending
    stop_string: str | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The answer is complete; the figures are those of all of its choices, `notes` what only its end showed."""

    figures: Figures
    notes: tuple[str, ...] = ()


Delta: TypeAlias = Text | Reasoning | CallBegan | CallArguments
Event: TypeAlias = Began | Delta | Stopped | Ended


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A stretch of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningBlock:
    """A stretch of reasoning."""

    text: str


Block: TypeAlias = TextBlock | ReasoningBlock | ToolCall
"""A call's arguments are JSON text."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer to the request: its blocks in order, and its tokens where they were asked for."""

    blocks: tuple[Block, ...]
    ending: Ending
    stop_string: str | None = None
    tokens: tuple[ScoredToken, ...] = ()

    @property
    def content(self) -> str:
        return "".join(block.text for block in self.blocks if isinstance(block, TextBlock))

    @property
    def reasoning(self) -> str:
        return "".join(block.text for block in self.blocks if isinstance(block, ReasoningBlock))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolCall))


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer, one choice or several: only what was generated, never the prefix."""

    head: Head
    choices: tuple[Choice, ...]
    figures: Figures
    notes: tuple[str, ...] = ()

    @property
    def content(self) -> str:
        """The text of the first choice."""
        return self.choices[0].content

    @property
    def ending(self) -> Ending:
        """How the first choice ended."""
        return self.choices[0].ending


class Gathering:
    """The fold over an answer's events."""

    def __init__(self) -> None:
        self._head: Head | None = None
        self._choices: list[Choice] = []
        self._ended: Ended | None = None
        self._fresh()

    def _fresh(self) -> None:
        self._blocks: list[Block] = []
        self._pieces: list[str] = []
        self._open: Text | Reasoning | CallBegan | None = None
        self._tokens: list[ScoredToken] = []

    def push(self, event: Event) -> None:
        match event:
            case Began():
                self._head = event.head
            case Text() | Reasoning():
                self._tokens += event.tokens
                if event.text:
                    self._say(event)
            case CallBegan():
                self._close()
                self._open = event
            case CallArguments():
                self._pieces.append(event.text)
            case Stopped():
                self._close()
                tokens = tuple(self._tokens)
                self._choices.append(Choice(tuple(self._blocks), event.ending, event.stop_string, tokens))
                self._fresh()
            case Ended():
                self._ended = event
            case _:
                assert_never(event)

    def _say(self, event: Text | Reasoning) -> None:
        if type(self._open) is not type(event):
            self._close()
            self._open = event
        self._pieces.append(event.text)

    def _close(self) -> None:
        text, self._pieces = "".join(self._pieces), []
        match self._open:
            case None:
                pass
            case Text():
                self._blocks.append(TextBlock(text))
            case Reasoning():
                self._blocks.append(ReasoningBlock(text))
            case CallBegan():
                self._blocks.append(ToolCall(self._open.name, text, self._open.id))
            case _:
                assert_never(self._open)
        self._open = None

    def through(self, events: Iterable[Event]) -> Iterator[Event]:
        """Pass events on, each as it comes."""
        for event in events:
            self.push(event)
            yield event

    @property
    def reply(self) -> Reply:
        """The answer, once `Ended` was pushed."""
        assert self._head is not None and self._ended is not None
        notes = (*self._head.notes, *self._ended.notes)
        return Reply(self._head, tuple(self._choices), self._ended.figures, notes)


def gather(events: Iterable[Event]) -> Reply:
    """The whole answer that these events are."""
    gathering = Gathering()
    for event in events:
        gathering.push(event)
    return gathering.reply
