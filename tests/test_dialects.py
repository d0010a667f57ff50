"""Both dialects: equal requests from equal input, answers that the official packages read, and no input that breaks."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import ErrorResponse, RawMessageStreamEvent
from anthropic.types import Message as AnthropicMessage
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types import ErrorObject
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BaseModel, TypeAdapter

from strata_cli import errors
from strata_cli.conversation.dialects import DIALECTS, Dialect, dialect_of
from strata_cli.conversation.incoming import load_json
from strata_cli.conversation.reply import (
    Began,
    CallArguments,
    CallBegan,
    Delta,
    Ended,
    Ending,
    Event,
    Figures,
    Head,
    Logprob,
    Reasoning,
    ScoredToken,
    Stopped,
    Text,
    gather,
)
from strata_cli.errors import StrataError
from strata_cli.output.json import line

# Equal requests

USER = {"role": "user", "content": "Hello."}
ANSWER = {"role": "assistant", "content": "Well, "}
TEXT = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}}
CALL = {"id": "1", "type": "function", "function": {"name": "look", "arguments": {"place": "x"}}}
USE = {"type": "tool_use", "id": "1", "name": "look", "input": {"place": "x"}}
FUNCTION = {"name": "look", "description": "Looks.", "parameters": SCHEMA}
TOOL = {"name": "look", "description": "Looks.", "input_schema": SCHEMA}


def asking(*messages: object, **fields: object) -> dict[str, object]:
    return {"messages": list(messages), **fields}


PAIRS: dict[str, tuple[object, object]] = {
    "a user's message": (asking(USER), asking(USER)),
    "a list of messages": ([USER], [USER]),
    "a system message": (
        asking({"role": "system", "content": "Be terse."}, USER),
        asking(USER, system="Be terse."),
    ),
    "a system message in parts": (asking({"role": "system", "content": TEXT}, USER), asking(USER, system=TEXT)),
    "parts": (asking({"role": "user", "content": TEXT}), asking({"role": "user", "content": TEXT})),
    "an image": (
        asking(
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}]}
        ),
        asking(
            {
                "role": "user",
                "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}],
            }
        ),
    ),
    "turns": (asking(USER, ANSWER, USER), asking(USER, ANSWER, USER)),
    "an answer to continue": (
        asking(USER, ANSWER, continue_final_message=True),
        asking(USER, ANSWER),
    ),
    "a complete answer": (asking(USER, ANSWER), asking(USER, ANSWER, continue_final_message=False)),
    "a prefix": (asking(USER, assistant_prefix="So"), asking(USER, assistant_prefix="So")),
    "no prefix": (asking(USER, assistant_prefix=None), asking(USER, assistant_prefix="")),
    "a response prefix": (asking(USER, response_prefix="So"), asking(USER, response_prefix="So")),
    "no generation prompt": (asking(USER, add_generation_prompt=False), asking(USER, add_generation_prompt=False)),
    "template variables": (asking(USER, chat_template_kwargs={"a": 1}), asking(USER, chat_template_kwargs={"a": 1})),
    "thinking": (
        asking(USER, chat_template_kwargs={"enable_thinking": True}),
        asking(USER, thinking={"type": "adaptive"}),
    ),
    "no thinking": (
        asking(USER, chat_template_kwargs={"enable_thinking": False}),
        asking(USER, thinking={"type": "disabled"}),
    ),
    "tools": (
        asking(USER, tools=[{"type": "function", "function": FUNCTION}], tool_choice="auto"),
        asking(USER, tools=[TOOL], tool_choice={"type": "auto"}),
    ),
    "tools that are not to be called": (
        asking(USER, tools=[{"type": "function", "function": FUNCTION}], tool_choice="none"),
        asking(USER, tools=[TOOL], tool_choice={"type": "none"}),
    ),
    "a call and its result": (
        asking(
            USER,
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "1", "content": "4"},
        ),
        asking(
            USER,
            {"role": "assistant", "content": [USE]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "4"}]},
        ),
    ),
    "reasoning, text, a call, its result in parts, and more": (
        asking(
            USER,
            {"role": "assistant", "content": TEXT, "reasoning_content": "Hm.", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "1", "content": TEXT},
            {"role": "user", "content": [{"type": "text", "text": "And?"}]},
        ),
        asking(
            USER,
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, *TEXT, USE]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "1", "content": TEXT},
                    {"type": "text", "text": "And?"},
                ],
            },
        ),
    ),
    "sampling": (
        asking(USER, max_completion_tokens=9, temperature=0, top_p=0.5, seed=7, stop="END", min_p=0.1, top_k=3),
        asking(USER, max_tokens=9, temperature=0, top_p=0.5, seed=7, stop_sequences=["END"], min_p=0.1, top_k=3),
    ),
    "a stream": (asking(USER, stream=True), asking(USER, stream=True)),
    "logprobs": (asking(USER, logprobs=True, top_logprobs=3), asking(USER, logprobs=True, top_logprobs=3)),
    "metadata": (asking(USER, metadata={"user_id": "u"}), asking(USER, metadata={"user_id": "u"})),
    "what has no effect": (asking(USER, model="m"), asking(USER, model="m")),
    "what nobody knows": (asking(USER, colour="red"), asking(USER, colour="red")),
}


@pytest.mark.parametrize(("openai", "anthropic"), PAIRS.values(), ids=PAIRS)
def test_equal_requests(openai: object, anthropic: object) -> None:
    assert DIALECTS["openai"].parse(openai) == DIALECTS["anthropic"].parse(anthropic)


# Which dialect it is

SPOKEN: list[tuple[Dialect, object]] = [
    ("openai", asking(USER)),
    ("openai", [USER]),
    ("openai", None),
    ("openai", "text"),
    ("openai", asking(USER, max_tokens=5, model="m", stream=True, temperature=0)),
    ("openai", asking({"role": "system", "content": "a"}, USER)),
    ("openai", asking({"role": "user", "content": TEXT})),
    ("openai", asking(USER, system=None)),
    ("openai", asking(USER, tools=[{"type": "function", "function": FUNCTION}], tool_choice="auto")),
    ("openai", asking({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]})),
    ("openai", asking({"role": "user", "content": [{"type": "image", "image": "u"}]})),
    ("openai", asking({"role": "developer", "content": "a"}, USER, thinking={"type": "enabled"})),
    ("openai", asking(USER, {"role": "assistant", "tool_calls": [CALL]}, system="a")),
    ("anthropic", asking(USER, system="a")),
    ("anthropic", asking(USER, stop_sequences=["a"])),
    ("anthropic", asking(USER, thinking={"type": "disabled"})),
    ("anthropic", asking(USER, tools=[TOOL])),
    ("anthropic", asking(USER, tool_choice={"type": "auto"})),
    ("anthropic", asking({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]})),
    ("anthropic", asking(USER, {"role": "assistant", "content": [USE]})),
    ("anthropic", [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "u"}}]}]),
    ("anthropic", asking({"role": "user", "content": [{**TEXT[0], "cache_control": {"type": "ephemeral"}}]})),
]


@pytest.mark.parametrize(("dialect", "value"), SPOKEN)
def test_the_dialect_is_seen(dialect: Dialect, value: object) -> None:
    assert dialect_of(value) == dialect


# Answers, read by the official packages

FIGURES = Figures(40, 2, 42, 30, 0, 458, 0.5, 0.0, 0.0)
TOKENS = st.builds(
    ScoredToken,
    st.builds(Logprob, st.binary(min_size=1, max_size=4), st.floats(-1e9, 0)),
    st.lists(st.builds(Logprob, st.binary(max_size=4), st.just(float("-inf")) | st.floats(-9, 0)), max_size=2).map(
        tuple
    ),
)
WORDS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8)


@st.composite
def calls(draw: st.DrawFn) -> list[Delta]:
    arguments = json.dumps(draw(st.dictionaries(WORDS, st.integers(-99, 99) | WORDS, max_size=2)), ensure_ascii=False)
    cuts = sorted(draw(st.lists(st.integers(0, len(arguments)), max_size=3)))
    pieces = [arguments[a:b] for a, b in zip([0, *cuts], [*cuts, len(arguments)], strict=True) if a < b]
    given = draw(st.none() | st.from_regex(r"[a-z0-9]{9}", fullmatch=True))
    return [CallBegan(draw(WORDS), given), *map(CallArguments, pieces)]


@st.composite
def answers(draw: st.DrawFn, *, logprobs: bool | None = None, most: int = 3) -> list[Event]:
    """The events of an answer as a generation could bring them."""
    scored = draw(st.booleans()) if logprobs is None else logprobs
    tokens = st.lists(TOKENS, max_size=2).map(tuple) if scored else st.just(())
    said = st.builds(lambda *args: [Text(*args)], WORDS, tokens) | st.builds(
        lambda *args: [Reasoning(*args)], WORDS, tokens
    )
    if scored:
        said |= st.builds(lambda token: [Text("", (token,))], TOKENS)
    usage = draw(st.sampled_from([None, True, False]))
    head = Head("5eed", 1700000000, "tiny", 7, ("a note",), draw(st.sampled_from([{}, {"k": "v"}])), usage, scored)
    events: list[Event] = [Began(head, FIGURES)]
    for _ in range(draw(st.integers(1, most))):
        for deltas in draw(st.lists(said | calls(), max_size=6)):
            events += deltas
        ending = draw(st.sampled_from(get_args(Ending)))
        events.append(Stopped(ending, "END" if ending == "stop_string" else None))
    left = draw(st.sampled_from([0, 458]))
    return [*events, Ended(Figures(40, 2, 42, 30, 12, left, 0.5, 1.5, 0.6), draw(st.sampled_from([(), ("late",)])))]


def sent(value: dict[str, Any]) -> dict[str, Any]:
    """A value after the way over the wire."""
    return json.loads(line(value))


EXTRA = {"timings", "strata", "reasoning_content", "code", "param", "index"}


_adapter = functools.cache(TypeAdapter)


def strict(model: Any, value: dict[str, Any]) -> Any:
    """A value as the package's type, no conversion allowed, and nothing in it that is neither the API's nor ours."""
    parsed = _adapter(model).validate_python(value, strict=True)
    foreign = set(extras(parsed)) - EXTRA
    assert not foreign, foreign
    return parsed


def extras(value: object) -> Iterator[str]:
    if isinstance(value, BaseModel):
        yield from value.model_extra or ()
        for name in type(value).model_fields:
            yield from extras(getattr(value, name))
    elif isinstance(value, list):
        for item in value:
            yield from extras(item)


def test_strict_is_strict() -> None:
    reply = sent(DIALECTS["openai"].reply(gather(ONE_WORD)))
    strict(ChatCompletion, reply)
    for broken in ({**reply, "created": "now"}, {**reply, "object": "completion"}, {**reply, "colour": 1}):
        with pytest.raises((ValueError, AssertionError)):
            strict(ChatCompletion, broken)


ONE_WORD: list[Event] = [
    Began(Head("5eed", 1700000000, "tiny", 7), FIGURES),
    Text("a"),
    Stopped("stop"),
    Ended(FIGURES),
]


@settings(deadline=None)
@given(answers())
def test_openai_answers(events: list[Event]) -> None:
    reply = sent(DIALECTS["openai"].reply(gather(events)))
    whole = strict(ChatCompletion, reply)
    chunks = [sent(chunk) for chunk in DIALECTS["openai"].stream(events)]
    state = ChatCompletionStreamState()
    for chunk in chunks:
        list(state.handle_chunk(strict(ChatCompletionChunk, chunk)))
    # The final completion is this snapshot, but for those that were cut short, which the package does not give out.
    final = json.loads(state.current_completion_snapshot.model_dump_json())
    for choice in final["choices"]:
        for call in choice["message"].get("tool_calls") or []:
            call.pop("index"), call["function"].pop("parsed_arguments")
        choice["message"].pop("parsed")
        # The stream says nothing where there are no tokens.
        choice["logprobs"] = choice["logprobs"] or (
            {"content": [], "refusal": None} if events[0].head.logprobs else None
        )
    expected = json.loads(whole.model_dump_json())
    assert final["choices"] == expected["choices"]
    assert final["usage"] == (None if events[0].head.usage is False else expected["usage"])
    assert [final[key] for key in ("id", "model", "created")] == [reply[key] for key in ("id", "model", "created")]
    assert [chunks[-1][key] for key in ("timings", "strata")] == [reply[key] for key in ("timings", "strata")]
    assert all("usage" in chunk for chunk in chunks) == bool(events[0].head.usage) or len(chunks) == 1


@settings(deadline=None)
@given(answers(most=1))
def test_anthropic_answers(events: list[Event]) -> None:
    reply = sent(DIALECTS["anthropic"].reply(gather(events)))
    whole = strict(AnthropicMessage, reply)
    stream = [sent(event) for event in DIALECTS["anthropic"].stream(events)]
    snapshot, buffers = None, {}
    for event in stream:
        parsed = strict(RawMessageStreamEvent, event)
        snapshot = accumulate_event(event=parsed, current_snapshot=snapshot, json_bufs=buffers)
    expected = {**whole.to_dict(), "content": [block.to_dict() for block in whole.content]}
    final = snapshot.to_dict()
    for block in final["content"]:
        block.pop("parsed_output", None)
    for key in ("id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"):
        assert final[key] == expected[key], key
    (last,) = (event for event in stream if event["type"] == "message_delta")
    assert [last[key] for key in ("timings", "strata")] == [reply[key] for key in ("timings", "strata")]
    indices = [event["index"] for event in stream if event["type"] == "content_block_start"]
    assert indices == [event["index"] for event in stream if event["type"] == "content_block_stop"]
    assert indices == list(range(len(reply["content"])))


@settings(deadline=None)
@given(answers(most=1))
def test_accounting_is_the_same_in_both(events: list[Event]) -> None:
    openai, anthropic = (sent(DIALECTS[name].reply(gather(events))) for name in ("openai", "anthropic"))
    anthropic["strata"].pop("logprobs", None)
    assert openai["strata"] == anthropic["strata"] and openai["timings"] == anthropic["timings"]
    usage = anthropic["usage"]
    assert openai["usage"]["prompt_tokens"] == usage["input_tokens"] + usage["cache_read_input_tokens"]
    assert openai["usage"]["prompt_tokens_details"]["cached_tokens"] == usage["cache_read_input_tokens"]
    assert openai["usage"]["completion_tokens"] == usage["output_tokens"]


ENDINGS = [
    (Stopped("stop"), False, 9, "stop", "end_turn"),
    (Stopped("stop"), True, 9, "tool_calls", "tool_use"),
    (Stopped("stop_string", "END"), False, 9, "stop", "stop_sequence"),
    (Stopped("length"), False, 9, "length", "max_tokens"),
    (Stopped("length"), True, 9, "length", "max_tokens"),
    (Stopped("length"), False, 0, "length", "model_context_window_exceeded"),
    (Stopped("interrupted"), False, 9, "length", "max_tokens"),
]


@pytest.mark.parametrize(("stopped", "called", "left", "openai", "anthropic"), ENDINGS)
def test_endings(stopped: Stopped, called: bool, left: int, openai: str, anthropic: str) -> None:
    call: list[Event] = [CallBegan("f"), CallArguments("{}")] if called else []
    reply = gather([ONE_WORD[0], *call, stopped, Ended(Figures(40, 2, 42, 30, 12, left, 0.5, 1.5, 0.6))])
    assert DIALECTS["openai"].reply(reply)["choices"][0]["finish_reason"] == openai
    message = DIALECTS["anthropic"].reply(reply)
    assert (message["stop_reason"], message["stop_sequence"]) == (anthropic, stopped.stop_string)


def test_bytes_that_are_no_text_by_themselves() -> None:
    halves = tuple(ScoredToken(Logprob(bytes([byte]), -1.0)) for byte in "é".encode())
    head = Head("5eed", 1700000000, "tiny", 7, logprobs=True)
    reply = gather([Began(head, FIGURES), Text("é", halves), *ONE_WORD[2:]])
    items = DIALECTS["openai"].reply(reply)["choices"][0]["logprobs"]["content"]
    assert [item["token"] for item in items] == ["\ufffd", "\ufffd"]
    assert bytes(byte for item in items for byte in item["bytes"]).decode() == "é"
    assert DIALECTS["anthropic"].reply(reply)["strata"]["logprobs"] == items


@pytest.mark.parametrize("kind", errors.KINDS.values(), ids=lambda kind: kind.code)
def test_errors_are_the_packages_own(kind: errors.Kind) -> None:
    error = StrataError(kind, "it broke", param="p")
    strict(ErrorResponse, sent(DIALECTS["anthropic"].error(error)))
    value = sent(DIALECTS["openai"].error(error))["error"]
    strict(ErrorObject, value)
    assert value["code"] == kind.code


# Whatever comes

NAMES = st.sampled_from(
    ["messages", "role", "content", "type", "text", "tools", "function", "name", "arguments", "tool_calls", "id",
     "tool_choice", "system", "input", "input_schema", "source", "thinking", "tool_use_id", "signature", "stop",
     "stop_sequences", "max_tokens", "temperature", "top_logprobs", "logprobs", "n", "seed", "stream",
     "stream_options", "include_usage", "metadata", "assistant_prefix", "continue_final_message", "url", "image_url",
     "add_generation_prompt", "chat_template_kwargs", "cache_control", "refusal", "is_error", "data", "media_type"]
)  # fmt: skip
KINDS = st.sampled_from(
    ["user", "assistant", "system", "tool", "developer", "text", "image", "image_url", "tool_use", "tool_result",
     "thinking", "redacted_thinking", "document", "refusal", "function", "custom", "auto", "none", "any", "enabled",
     "base64", "url", "input_audio", ""]
)  # fmt: skip
LEAVES = (
    st.none() | st.booleans() | KINDS | st.text(max_size=3) | st.integers(-3, 3) | st.floats()
    | st.sampled_from([10**400, -(10**400), 2**63, 1e308, "\ud800", "\0", float("nan"), float("inf"), 0.5, -0.0])
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=5),
    max_leaves=12,
)
MESSAGES = st.fixed_dictionaries(
    {"role": KINDS, "content": VALUES | st.lists(st.fixed_dictionaries({"type": KINDS}, optional={"text": LEAVES}))},
    optional={"tool_calls": VALUES, "name": VALUES, "reasoning_content": VALUES},
)
REQUESTS = st.builds(
    lambda messages, fields: {**fields, "messages": messages},
    st.lists(MESSAGES, max_size=3) | VALUES,
    st.dictionaries(NAMES, VALUES, max_size=5),
)


@given(st.sampled_from(get_args(Dialect)), VALUES | REQUESTS | st.lists(MESSAGES, max_size=3))
@settings(max_examples=150, deadline=None)
def test_no_request_breaks_a_parser(dialect: Dialect, value: object) -> None:
    assert dialect_of(value) in DIALECTS
    try:
        request = DIALECTS[dialect].parse(value)
    except StrataError as error:
        assert error.message and "\n" not in error.sentence
        json.loads(line(DIALECTS[dialect].error(error)))
    else:
        assert all("\n" not in note for note in request.notes)


@given(
    st.text(max_size=20)
    | VALUES.map(lambda value: json.dumps(value))
    | st.integers(0, 2000).map(lambda depth: '{"a":[' * depth + "]}" * depth)
    | st.sampled_from(["1e400", "-1e400", "[1e999999]", "1" * 5000, '{"a":1,"a":1}', '"\\ud800"', "NaN", "[Infinity]"])
)
@settings(max_examples=100, deadline=None)
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        value = load_json(text, "input")
    except StrataError as error:
        assert error.kind is errors.INVALID_JSON and "\n" not in error.sentence
    else:
        json.loads(line({"value": value}), parse_constant=pytest.fail)


def test_what_two_programs_could_read_in_two_ways_is_refused() -> None:
    for text, words in {
        '{"messages": [], "messages": [1]}': "'messages' twice",
        '{"a": {"b": 1, "b": 1}}': "'b' twice",
        "[1e400]": "too large",
        "[" * 101 + "]" * 101: "too deeply",
        '{"a":' * 90 + "[" * 11 + "]" * 11 + "}" * 90: "too deeply",
    }.items():
        with pytest.raises(StrataError) as caught:
            load_json(text, "input")
        assert words in caught.value.message
    assert load_json("[" * 100 + "]" * 100, "input")
    assert load_json(json.dumps([[]] * 1000), "input")
    assert load_json(str(10**400), "input") == 10**400
