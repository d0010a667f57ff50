"""Answers, their streams and errors in the shape of Anthropic's messages, with Strata's own figures beside them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator

from typing_extensions import assert_never

from strata_cli.conversation.messages import Json, ToolCall
from strata_cli.conversation.particulars import call_id, ending_of, logprobs, strata, timings
from strata_cli.conversation.reply import (
    Began,
    Block,
    CallArguments,
    CallBegan,
    Ended,
    Event,
    Figures,
    Head,
    Reasoning,
    ReasoningBlock,
    Reply,
    ScoredToken,
    Stopped,
    Text,
    TextBlock,
)
from strata_cli.errors import StrataError

_CALL = "toolu_"
_SIGNATURE = "unsigned"
"""Every thinking block has a signature in this API, and some programs drop one whose signature is empty."""


def reply(reply: Reply) -> dict[str, Json]:
    """A `message` object of the first choice; its content holds only what was generated."""
    choice, numbers = reply.choices[0], itertools.count()
    stopped, ended = ending_of(reply)
    value = _message(reply.head, [_block(block, reply.head, numbers) for block in choice.blocks])
    value |= _stop(stopped, reply.figures, calls=bool(choice.calls))
    return value | {"usage": usage(reply.figures)} | _particulars(reply.head, stopped, ended, choice.tokens)


def _message(head: Head, content: list[Json]) -> dict[str, Json]:
    return {"id": f"msg_{head.id}", "type": "message", "role": "assistant", "model": head.model, "content": content}


def _block(block: Block, head: Head, numbers: Iterator[int]) -> dict[str, Json]:
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ReasoningBlock():
            return {"type": "thinking", "thinking": block.text, "signature": _SIGNATURE}
        case ToolCall():
            input = json.loads(block.arguments or "{}") if isinstance(block.arguments, str) else dict(block.arguments)
            id = call_id(head, next(numbers), block.id, _CALL)
            return {"type": "tool_use", "id": id, "name": block.name, "input": input}
        case _:
            assert_never(block)


def _stop(stopped: Stopped, figures: Figures, *, calls: bool) -> dict[str, Json]:
    return {"stop_reason": _stop_reason(stopped, figures, calls=calls), "stop_sequence": stopped.stop_string}


def _stop_reason(stopped: Stopped, figures: Figures, *, calls: bool) -> str:
    match stopped.ending:
        case "stop":
            return "tool_use" if calls else "end_turn"
        case "stop_string":
            return "stop_sequence"
        case "length":
            return "max_tokens" if figures.context_left else "model_context_window_exceeded"
        case "interrupted":
            # It was cut short, which is what this says.
            return "max_tokens"
        case _:
            assert_never(stopped.ending)


def usage(figures: Figures) -> dict[str, Json]:
    """In this API the input's tokens are those that were not cached."""
    return {
        "input_tokens": figures.start_position - figures.reused_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": figures.reused_tokens,
        "output_tokens": figures.generated_tokens,
    }


def _particulars(head: Head, stopped: Stopped, ended: Ended, tokens: Iterable[ScoredToken]) -> dict[str, Json]:
    """Strata's own figures; the API has no place for logprobs, so they stand here."""
    value = strata(head, stopped, ended)
    if head.logprobs:
        value["logprobs"] = logprobs(tuple(tokens))
    return {"timings": timings(ended.figures), "strata": value}


def stream(events: Iterable[Event]) -> Iterator[dict[str, Json]]:
    """The stream events of an answer, from `message_start` to `message_stop`; `message_delta` has the figures."""
    blocks = _Blocks()
    for event in events:
        yield from blocks.push(event)


class _Blocks:
    """Where a stream is: in which block, and what its end will need."""

    def __init__(self) -> None:
        self._head: Head | None = None
        self._index = -1
        self._open: Text | Reasoning | CallBegan | None = None
        self._numbers = itertools.count()
        self._stopped: Stopped | None = None
        self._tokens: list[ScoredToken] = []
        self._called = False

    def push(self, event: Event) -> Iterator[dict[str, Json]]:
        match event:
            case Began():
                self._head = event.head
                stop: Json = {"stop_reason": None, "stop_sequence": None, "usage": usage(event.figures)}
                yield {"type": "message_start", "message": _message(event.head, []) | stop}
            case Text():
                self._tokens += event.tokens
                if event.text:
                    yield from self._opened(event, TextBlock(""))
                    yield self._delta({"type": "text_delta", "text": event.text})
            case Reasoning():
                self._tokens += event.tokens
                if event.text:
                    yield from self._opened(event, ReasoningBlock(""))
                    yield self._delta({"type": "thinking_delta", "thinking": event.text})
            case CallBegan():
                self._called = True
                yield from self._closed()
                yield from self._opened(event, ToolCall(event.name, "", event.id))
            case CallArguments():
                yield self._delta({"type": "input_json_delta", "partial_json": event.text})
            case Stopped():
                yield from self._closed()
                self._stopped = event
            case Ended():
                yield from self._end(event)
            case _:
                assert_never(event)

    def _opened(self, event: Text | Reasoning | CallBegan, empty: Block) -> Iterator[dict[str, Json]]:
        """Open a block unless one of this kind is open."""
        assert self._head is not None
        if type(self._open) is type(event):
            return
        yield from self._closed()
        self._open = event
        self._index += 1
        block = _block(empty, self._head, self._numbers)
        if isinstance(empty, ReasoningBlock):
            block["signature"] = ""
        yield {"type": "content_block_start", "index": self._index, "content_block": block}

    def _closed(self) -> Iterator[dict[str, Json]]:
        if self._open is None:
            return
        if isinstance(self._open, Reasoning):
            yield self._delta({"type": "signature_delta", "signature": _SIGNATURE})
        yield {"type": "content_block_stop", "index": self._index}
        self._open = None

    def _delta(self, delta: dict[str, Json]) -> dict[str, Json]:
        return {"type": "content_block_delta", "index": self._index, "delta": delta}

    def _end(self, event: Ended) -> Iterator[dict[str, Json]]:
        assert self._head is not None and self._stopped is not None
        last: dict[str, Json] = {
            "type": "message_delta",
            "delta": _stop(self._stopped, event.figures, calls=self._called),
            "usage": usage(event.figures),
        }
        yield last | _particulars(self._head, self._stopped, event, self._tokens)
        yield {"type": "message_stop"}


_TYPES = {404: "not_found_error", 400: "invalid_request_error"}


def error(error: StrataError) -> dict[str, Json]:
    """An error object; the message ends with what to do, `code` and `param` are Strata's own."""
    kind = error.kind
    type_ = _TYPES.get(kind.http, "api_error")
    value: Json = {"type": type_, "message": error.sentence, "code": kind.code, "param": error.param, **error.details}
    return {"type": "error", "error": value, "request_id": None}
