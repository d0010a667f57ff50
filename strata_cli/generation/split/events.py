"""What an answer is told apart into, and the whole answer as a fold over it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from typing_extensions import assert_never

from strata_cli.conversation.messages import ToolCall

CallStatus: TypeAlias = Literal["invalid_json", "unclosed", "missing_name", "unknown_tool"]


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A piece of reasoning, never empty."""

    text: str

    @property
    def source(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Content:
    """A piece of the answer itself, never empty."""

    text: str

    @property
    def source(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Markup:
    """Tags and the blanks that belong to them; nothing that anybody is shown."""

    source: str


@dataclass(frozen=True, slots=True)
class CallBegan:
    """A call of a known tool; `index` counts the calls that began, from 0; `id` is the model's own, if it gave one."""

    index: int
    name: str
    id: str | None
    source: str


@dataclass(frozen=True, slots=True)
class CallArguments:
    """A piece of the arguments as JSON text; the pieces of one call make one JSON object."""

    index: int
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class CallEnded:
    """The call is complete and its arguments are one JSON object; `id` may have come after the arguments."""

    index: int
    id: str | None
    source: str


@dataclass(frozen=True, slots=True)
class CallFailed:
    """A call that cannot be made. `raw` is all of it as the model wrote it; `index` is None where it never began."""

    status: CallStatus
    raw: str
    name: str | None
    index: int | None
    source: str


Event: TypeAlias = Reasoning | Content | Markup | CallBegan | CallArguments | CallEnded | CallFailed
"""Each has a `source`, the characters that it stands for; joined in order they are the text that was generated."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer; `calls` hold their arguments as JSON text."""

    reasoning: str = ""
    content: str = ""
    calls: tuple[ToolCall, ...] = ()
    failed: tuple[CallFailed, ...] = ()


@dataclass(slots=True)
class _Draft:
    reasoning: list[str] = field(default_factory=list)
    content: list[str] = field(default_factory=list)
    calls: dict[int, ToolCall] = field(default_factory=dict)
    arguments: dict[int, list[str]] = field(default_factory=dict)
    failed: list[CallFailed] = field(default_factory=list)


def gather(events: Iterable[Event]) -> Answer:
    """The answer that these events are; a call that failed after it began is no call."""
    draft = _Draft()
    done: list[ToolCall] = []
    for event in events:
        match event:
            case Reasoning():
                draft.reasoning.append(event.text)
            case Content():
                draft.content.append(event.text)
            case Markup():
                pass
            case CallBegan():
                draft.calls[event.index] = ToolCall(event.name, "", event.id)
                draft.arguments[event.index] = []
            case CallArguments():
                draft.arguments[event.index].append(event.text)
            case CallEnded():
                call = draft.calls[event.index]
                done.append(ToolCall(call.name, "".join(draft.arguments[event.index]), event.id))
            case CallFailed():
                draft.failed.append(event)
            case _:
                assert_never(event)
    return Answer("".join(draft.reasoning), "".join(draft.content), tuple(done), tuple(draft.failed))
