"""Anthropic requests: every field honoured, noted or refused, and the error names it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from strata_cli import errors
from strata_cli.conversation.anthropic import error, parse
from strata_cli.conversation.messages import ImagePart, Message, TextPart, ToolCall
from strata_cli.conversation.request import Delivery, SamplingOptions
from strata_cli.conversation.structure import Schema, Structure
from strata_cli.errors import StrataError

USER = {"role": "user", "content": "Hello."}
ANSWER = {"role": "assistant", "content": "Well, "}
SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}}
PNG = {"type": "base64", "media_type": "image/png", "data": "iVBO"}


def blocks(*content: object, role: str = "user") -> dict[str, object]:
    return {"messages": [{"role": role, "content": list(content)}], "continue_final_message": False}


def text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def test_everything_of_a_request() -> None:
    request = parse(
        {
            "messages": [USER],
            "system": "Be terse.",
            "tools": [{"name": "look", "description": "Looks.", "input_schema": SCHEMA}],
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": False},
            "max_tokens": 5,
            "temperature": 0,
            "top_p": 0.5,
            "top_k": 40,
            "stop_sequences": ["\n", "END"],
            "stream": True,
            "thinking": {"type": "disabled"},
            "metadata": {"user_id": "u"},
            "min_p": 0.1,
            "seed": 7,
            "repeat_penalty": 1.1,
            "assistant_prefix": "So",
            "chat_template_kwargs": {"a": 1},
            "logprobs": True,
            "top_logprobs": 2,
            "container": None,
        }
    )
    assert request.messages == (Message("system", "Be terse."), Message("user", "Hello."))
    function = {"name": "look", "description": "Looks.", "parameters": SCHEMA}
    assert request.tools[0].definition == {"type": "function", "function": function}
    assert list(request.tools[0].definition["function"]) == list(function)
    assert request.assistant_prefix == "So"
    assert request.template_kwargs == {"enable_thinking": False, "a": 1}
    assert request.sampling == SamplingOptions(
        max_tokens=5, temperature=0.0, top_k=40, top_p=0.5, min_p=0.1, seed=7, repeat_penalty=1.1, stop=("\n", "END")
    )
    assert request.delivery == Delivery(stream=True, logprobs=2, metadata={"user_id": "u"})
    assert request.notes == ()


@pytest.mark.parametrize("system", ["Be terse.", [text("Be "), text("terse.")]])
def test_system(system: object) -> None:
    first, _ = parse({"messages": [USER], "system": system}).messages
    content = first.content if isinstance(first.content, str) else "".join(part.text for part in first.content)
    assert (first.role, content) == ("system", "Be terse.")


@pytest.mark.parametrize("system", [None, "", []])
def test_no_system(system: object) -> None:
    assert parse({"messages": [USER], "system": system}) == parse([USER])


def test_a_system_message_in_its_place() -> None:
    assert parse([USER, {"role": "system", "content": "Now in French."}]).messages[1] == Message(
        "system", "Now in French."
    )


def test_parts() -> None:
    image = {"type": "image", "source": PNG}
    linked = {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}
    assert parse(blocks(text("a"), image, linked)).messages == (
        Message("user", (TextPart("a"), ImagePart("data:image/png;base64,iVBO"), ImagePart("https://x/y.png"))),
    )


def test_results_are_turns_of_their_own() -> None:
    request = parse(
        blocks(
            {"type": "tool_result", "tool_use_id": "1", "content": "4"},
            {"type": "tool_result", "tool_use_id": "2", "content": [text("no")], "is_error": True},
            {"type": "tool_result", "tool_use_id": "3"},
            text("And?"),
        )
    )
    assert request.messages == (
        Message("tool", "4", tool_call_id="1"),
        Message("tool", (TextPart("no"),), tool_call_id="2", extra={"is_error": True}),
        Message("tool", None, tool_call_id="3"),
        Message("user", (TextPart("And?"),)),
    )


def test_an_answer_with_everything() -> None:
    call = {"type": "tool_use", "id": "1", "name": "look", "input": {"place": "x"}}
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    request = parse(blocks(thinking, text("I look."), call, role="assistant"))
    calls = (ToolCall("look", {"place": "x"}, "1"),)
    assert request.messages == (Message("assistant", (TextPart("I look."),), reasoning="Hm.", tool_calls=calls),)
    assert request.notes == ()
    (message,) = parse(blocks(call, role="assistant")).messages
    assert message == Message("assistant", None, tool_calls=calls)


def test_what_changes_its_place_is_noted() -> None:
    thinking = {"type": "thinking", "thinking": "b", "signature": ""}
    request = parse(blocks(text("a"), thinking, role="assistant"))
    assert request.messages[0].reasoning == "b"
    assert any("messages[0].content[1]" in note for note in request.notes)
    request = parse(blocks({"type": "redacted_thinking", "data": "x"}, text("a"), role="assistant"))
    assert any("encrypted" in note for note in request.notes)


def test_a_final_answer_is_continued() -> None:
    request = parse([USER, ANSWER])
    assert request.continue_final and not request.add_generation_prompt
    assert request.messages[-1] == Message("assistant", "Well, ")
    assert not parse([USER]).continue_final
    for field in ({"continue_final_message": False}, {"add_generation_prompt": True}):
        request = parse({"messages": [USER, ANSWER], **field})
        assert not request.continue_final and request.add_generation_prompt


def test_an_answer_that_comes_back_is_read() -> None:
    sent = {"id": "msg_1", "type": "message", "model": "m", "stop_reason": "end_turn", "usage": {}, **ANSWER}
    assert parse([USER, sent]) == parse([USER, ANSWER])


@pytest.mark.parametrize(
    ("thinking", "kwargs"),
    [
        ({"type": "enabled", "budget_tokens": 1024}, {"enable_thinking": True}),
        ({"type": "adaptive"}, {"enable_thinking": True}),
        ({"type": "disabled"}, {"enable_thinking": False}),
        (None, {}),
    ],
)
def test_thinking(thinking: object, kwargs: Mapping[str, bool]) -> None:
    assert parse({"messages": [USER], "thinking": thinking}).template_kwargs == kwargs


def test_a_document_is_asked_for() -> None:
    request = parse({"messages": [USER], "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}})
    assert request.structure == Structure(Schema(SCHEMA), field="output_config.format")
    assert parse({"messages": [USER], "output_config": {"format": None}}).structure is None


def test_tool_choice_none_hides_the_tools() -> None:
    tools = [{"name": "look", "input_schema": SCHEMA}]
    assert len(parse({"messages": [USER], "tools": tools}).tools) == 1
    assert parse({"messages": [USER], "tools": tools, "tool_choice": {"type": "none"}}).tools == ()


def test_cache_control_is_noted_once() -> None:
    cached = {"cache_control": {"type": "ephemeral"}}
    tool = {"name": "look", "input_schema": SCHEMA, **cached}
    request = parse({"messages": [{"role": "user", "content": [{**text("a"), **cached}]}], "tools": [tool], **cached})
    (note,) = request.notes
    assert "cache_control" in note


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        ({"messages": [USER], "model": "m"}, "model"),
        ({"messages": [USER], "service_tier": "auto"}, "service_tier"),
        ({"messages": [USER], "stop": "x"}, "stop"),
        ({"messages": [USER], "thinking": {"type": "enabled", "budget_tokens": 9}}, "thinking.budget_tokens"),
        (blocks({**text("a"), "citations": [{}]}), "messages[0].content[0].citations"),
        (blocks({**text("a"), "colour": 1}), "messages[0].content[0].colour"),
        ({"messages": [USER], "tools": [{"name": "f", "input_schema": {}, "input_examples": []}]}, "input_examples"),
    ],
)
def test_notes(request_: object, named: str) -> None:
    (note,) = parse(request_).notes
    assert named in note


TOOLS = {"tools": [{"name": "f", "input_schema": {}}]}


@pytest.mark.parametrize(
    ("request_", "param"),
    [
        (
            {"messages": [USER], **TOOLS, "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
            "tool_choice.disable_parallel_tool_use",
        ),
        ({"messages": [USER], "tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools[0].type"),
        ({"messages": [USER], "tools": [{**TOOLS["tools"][0], "defer_loading": True}]}, "tools[0].defer_loading"),
        ({"messages": [USER], "output_config": {"effort": "low"}}, "output_config.effort"),
        ({"messages": [USER], "mcp_servers": [{}]}, "mcp_servers"),
        ({"messages": [USER], "container": "c"}, "container"),
        ({"messages": [USER], "thinking": {"type": "between_tools"}}, "thinking.type"),
        ({"messages": [USER], "thinking": {"type": "adaptive", "display": "omitted"}}, "thinking.display"),
        (blocks({"type": "document", "source": {}}), "messages[0].content[0].type"),
        (blocks({"type": "server_tool_use"}, role="assistant"), "messages[0].content[0].type"),
        (blocks({"type": "web_search_tool_result"}, role="assistant"), "messages[0].content[0].type"),
        (blocks({"type": "image", "source": {"type": "file"}}), "messages[0].content[0].source.type"),
    ],
)
def test_what_cannot_be_done_is_refused(request_: object, param: str) -> None:
    with pytest.raises(StrataError) as caught:
        parse(request_)
    assert caught.value.kind is errors.NOT_IN_THIS_BUILD
    assert caught.value.param == param
    assert caught.value.hint


@pytest.mark.parametrize(
    ("request_", "param"),
    [
        (7, None),
        ({}, "messages"),
        ({"messages": "a"}, "messages"),
        ({"messages": ["a"]}, "messages[0]"),
        ({"messages": [{"role": "tool", "content": "a"}]}, "messages[0].role"),
        ({"messages": [{"role": ["user"], "content": "a"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        ({"messages": [USER], "system": 7}, "system"),
        ({"messages": [USER], "system": [7]}, "system[0]"),
        ({"messages": [USER], "system": [{"type": "image", "source": PNG}]}, "system[0].type"),
        (blocks(7), "messages[0].content[0]"),
        (blocks({"type": "video"}), "messages[0].content[0].type"),
        (blocks({"type": {}}), "messages[0].content[0].type"),
        (blocks({"type": "text"}), "messages[0].content[0].text"),
        (blocks({"type": "image"}), "messages[0].content[0].source"),
        (blocks({"type": "image", "source": {}}), "messages[0].content[0].source.type"),
        (blocks({"type": "image", "source": {**PNG, "data": 7}}), "messages[0].content[0].source.data"),
        (blocks({"type": "tool_result"}), "messages[0].content[0].tool_use_id"),
        (blocks({"type": "tool_result", "tool_use_id": "1", "content": 7}), "messages[0].content[0].content"),
        (blocks({"type": "tool_use", "id": "1", "name": "f"}), "messages[0].content[0].type"),
        (blocks({"type": "tool_result", "tool_use_id": "1"}, role="assistant"), "messages[0].content[0].type"),
        (blocks({"type": "tool_use", "name": "f"}, role="assistant"), "messages[0].content[0].id"),
        (blocks({"type": "tool_use", "id": "1"}, role="assistant"), "messages[0].content[0].name"),
        (
            blocks({"type": "tool_use", "id": "1", "name": "f", "input": "{}"}, role="assistant"),
            "messages[0].content[0].input",
        ),
        (blocks({"type": "thinking", "signature": "s"}, role="assistant"), "messages[0].content[0].thinking"),
        (
            blocks({"type": "thinking", "thinking": "t", "signature": 7}, role="assistant"),
            "messages[0].content[0].signature",
        ),
        ({"messages": [USER], "tools": {}}, "tools"),
        ({"messages": [USER], "tools": [7]}, "tools[0]"),
        ({"messages": [USER], "tools": [{"input_schema": {}}]}, "tools[0].name"),
        ({"messages": [USER], "tools": [{"name": "f"}]}, "tools[0].input_schema"),
        ({"messages": [USER], "tool_choice": "auto"}, "tool_choice"),
        ({"messages": [USER], "tool_choice": {"type": "some"}}, "tool_choice.type"),
        ({"messages": [USER], "output_config": 7}, "output_config"),
        ({"messages": [USER], "output_config": {"format": "json"}}, "output_config.format"),
        ({"messages": [USER], "output_config": {"format": {"type": "json"}}}, "output_config.format.type"),
        ({"messages": [USER], "output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema"),
        ({"messages": [USER], "thinking": True}, "thinking"),
        ({"messages": [USER], "thinking": {"type": 7}}, "thinking.type"),
        ({"messages": [USER], "stop_sequences": "a"}, "stop_sequences"),
        ({"messages": [USER], "stop_sequences": [""]}, "stop_sequences"),
        ({"messages": [USER], "max_tokens": 0}, "max_tokens"),
        ({"messages": [USER], "max_tokens": 1.5}, "max_tokens"),
        ({"messages": [USER], "metadata": []}, "metadata"),
        ({"messages": [USER], "assistant_prefix": 7}, "assistant_prefix"),
        ({"messages": [USER], "continue_final_message": 1}, "continue_final_message"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(request_: object, param: str | None) -> None:
    with pytest.raises(StrataError) as caught:
        parse(request_)
    assert caught.value.kind is errors.INVALID_REQUEST
    assert caught.value.param == param
    assert caught.value.hint


def test_two_ways_at_once_are_refused() -> None:
    with pytest.raises(StrataError) as caught:
        parse({"messages": [USER, ANSWER], "continue_final_message": True, "add_generation_prompt": True})
    assert caught.value.kind is errors.CONFLICTING_OPTIONS


@pytest.mark.parametrize("kind", errors.KINDS.values(), ids=lambda kind: kind.code)
def test_errors(kind: errors.Kind) -> None:
    value = error(StrataError(kind, "it broke", hint="mend it", param="p"))
    types = {400: "invalid_request_error", 404: "not_found_error", 500: "api_error"}
    assert value["type"] == "error"
    assert value["error"] == {"type": types[kind.http], "message": "it broke; mend it", "code": kind.code, "param": "p"}
