"""Answers, their streams and errors in the shape of OpenAI's chat completions, Strata's own figures beside them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator

from typing_extensions import assert_never

from strata_cli.conversation.messages import Json, ToolCall
from strata_cli.conversation.particulars import call_id, ending_of, logprobs, strata, timings
from strata_cli.conversation.reply import (
    Began,
    CallArguments,
    CallBegan,
    Choice,
    Delta,
    Ended,
    Ending,
    Event,
    Figures,
    Head,
    Reasoning,
    Reply,
    ScoredToken,
    Stopped,
    Text,
)
from strata_cli.errors import StrataError

# An interrupted answer was cut short, which is what `length` says.
FINISH_REASONS: dict[Ending, str] = {"stop": "stop", "stop_string": "stop", "length": "length", "interrupted": "length"}
_CALL = "call_"


def reply(reply: Reply) -> dict[str, Json]:
    """A `chat.completion` object; the messages hold only what was generated."""
    numbers = itertools.count()
    return {
        **_envelope(reply.head, "chat.completion"),
        "choices": [_choice(index, choice, reply.head, numbers) for index, choice in enumerate(reply.choices)],
        "usage": usage(reply.figures),
        "timings": timings(reply.figures),
        "strata": strata(reply.head, *ending_of(reply)),
    }


def _envelope(head: Head, kind: str) -> dict[str, Json]:
    return {"id": f"chatcmpl-{head.id}", "object": kind, "created": head.created, "model": head.model}


def _choice(index: int, choice: Choice, head: Head, numbers: Iterator[int]) -> dict[str, Json]:
    message: dict[str, Json] = {"role": "assistant", "content": choice.content, "refusal": None}
    if choice.reasoning:
        message["reasoning_content"] = choice.reasoning
    if choice.calls:
        message["content"] = choice.content or None
        message["tool_calls"] = [_call(call, call_id(head, next(numbers), call.id, _CALL)) for call in choice.calls]
    return {
        "index": index,
        "message": message,
        "logprobs": {"content": logprobs(choice.tokens), "refusal": None} if head.logprobs else None,
        "finish_reason": _finish_reason(choice.ending, calls=bool(choice.calls)),
    }


def _call(call: ToolCall, id: str) -> dict[str, Json]:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
    return {"id": id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _finish_reason(ending: Ending, *, calls: bool) -> str:
    return "tool_calls" if calls and ending == "stop" else FINISH_REASONS[ending]


def usage(figures: Figures) -> dict[str, Json]:
    return {
        "prompt_tokens": figures.start_position,
        "completion_tokens": figures.generated_tokens,
        "total_tokens": figures.start_position + figures.generated_tokens,
        "prompt_tokens_details": {"cached_tokens": figures.reused_tokens},
    }


def stream(events: Iterable[Event]) -> Iterator[dict[str, Json]]:
    """The `chat.completion.chunk` objects of an answer.

    The last one has the figures: the chunk with the last `finish_reason`, or one without choices where the request's
    `include_usage` is true. It has no usage where that is false.
    """
    chunks = _Chunks()
    for event in events:
        yield from chunks.push(event)


class _Chunks:
    """Where a stream is: in which choice, and what of it was said."""

    def __init__(self) -> None:
        self._head: Head | None = None
        self._index = 0
        self._numbers = itertools.count()
        self._first: Stopped | None = None
        self._held: dict[str, Json] | None = None
        self._turn()

    def _turn(self) -> None:
        self._begun = self._spoken = False
        self._calls = 0

    def push(self, event: Event) -> Iterator[dict[str, Json]]:
        if isinstance(event, Ended):
            yield from self._end(event)
            return
        if self._held is not None:
            yield self._held
            self._held = None
        if isinstance(event, Began):
            self._head = event.head
        if not self._begun:
            self._begun = True
            yield self._chunk({"role": "assistant", "content": None})
        if isinstance(event, Stopped):
            self._stop(event)
        elif not isinstance(event, Began):
            yield self._said(event)

    def _said(self, event: Delta) -> dict[str, Json]:
        match event:
            case Text():
                self._spoken = self._spoken or bool(event.text)
                return self._chunk({"content": event.text} if event.text else {}, event.tokens)
            case Reasoning():
                return self._chunk({"reasoning_content": event.text}, event.tokens)
            case CallBegan():
                return self._call(event)
            case CallArguments():
                piece: Json = {"index": self._calls - 1, "function": {"arguments": event.text}}
                return self._chunk({"tool_calls": [piece]})
            case _:
                assert_never(event)

    def _call(self, event: CallBegan) -> dict[str, Json]:
        assert self._head is not None
        call = _call(ToolCall(event.name, ""), call_id(self._head, next(self._numbers), event.id, _CALL))
        chunk = self._chunk({"tool_calls": [{"index": self._calls, **call}]})
        self._calls += 1
        return chunk

    def _stop(self, event: Stopped) -> None:
        """Hold the choice's last chunk, to which the figures may come."""
        self._first = self._first or event
        delta: dict[str, Json] = {} if self._spoken or self._calls else {"content": ""}
        self._held = self._chunk(delta, reason=_finish_reason(event.ending, calls=bool(self._calls)))
        self._index += 1
        self._turn()

    def _end(self, event: Ended) -> Iterator[dict[str, Json]]:
        assert self._head is not None and self._first is not None and self._held is not None
        last = self._held
        if self._head.usage:
            yield last
            last = {**_envelope(self._head, "chat.completion.chunk"), "choices": []}
        if self._head.usage is not False:
            last["usage"] = usage(event.figures)
        yield last | {"timings": timings(event.figures), "strata": strata(self._head, self._first, event)}

    def _chunk(
        self, delta: dict[str, Json], tokens: tuple[ScoredToken, ...] = (), reason: str | None = None
    ) -> dict[str, Json]:
        assert self._head is not None
        scores: Json = {"content": logprobs(tokens), "refusal": None} if tokens else None
        choice: Json = {"index": self._index, "delta": delta, "logprobs": scores, "finish_reason": reason}
        chunk: dict[str, Json] = {**_envelope(self._head, "chat.completion.chunk"), "choices": [choice]}
        return chunk | {"usage": None} if self._head.usage else chunk


def error(error: StrataError) -> dict[str, Json]:
    """An error object; the message ends with what to do."""
    kind = error.kind
    type_ = "invalid_request_error" if kind.http < 500 else "server_error"
    value: Json = {"type": type_, "code": kind.code, "message": error.sentence, "param": error.param, **error.details}
    return {"error": value}
