"""OpenAI requests: every field honoured, noted or refused, and the error names it."""

from __future__ import annotations

import pytest

from strata_cli import errors
from strata_cli.conversation.messages import ImagePart, Message, TextPart, ToolCall
from strata_cli.conversation.openai import parse
from strata_cli.conversation.request import Delivery, SamplingOptions, ToolChoice
from strata_cli.errors import StrataError

USER = {"role": "user", "content": "Hello."}
FUNCTION = {"name": "look", "parameters": {}}


def test_a_list_is_a_conversation() -> None:
    assert parse([USER]) == parse({"messages": [USER]})
    assert parse([USER]).messages == (Message("user", "Hello."),)


def test_everything_of_a_message() -> None:
    (message,) = parse(
        [
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "u"}}],
                "thinking": "r",
                "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                "name": "n",
                "prefix": True,
            }
        ]
    ).messages
    assert message == Message(
        "assistant",
        (TextPart("a"), ImagePart("u")),
        reasoning="r",
        tool_calls=(ToolCall("f", "{}", "1"),),
        name="n",
        extra={"prefix": True},
    )
    assert parse([{"role": "tool", "content": None, "tool_call_id": "1"}]).messages == (
        Message("tool", tool_call_id="1"),
    )


@pytest.mark.parametrize("name", ["reasoning_content", "thinking", "reasoning"])
def test_three_names_of_reasoning(name: str) -> None:
    assert parse([{"role": "assistant", "content": "", name: "r"}]).messages[0].reasoning == "r"


@pytest.mark.parametrize("calls", [None, []])
def test_no_calls_are_no_calls(calls: object) -> None:
    assert parse([{"role": "assistant", "content": "a", "tool_calls": calls}]).messages == (Message("assistant", "a"),)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "u"}},
        {"type": "image_url", "image_url": "u"},
        {"type": "image", "image": "u"},
        {"type": "image", "url": "u"},
    ],
)
def test_images(part: object) -> None:
    assert parse([{"role": "user", "content": [part]}]).messages[0].content == (ImagePart("u"),)


def test_everything_of_a_request() -> None:
    request = parse(
        {
            "messages": [USER],
            "tools": [{"type": "function", "function": FUNCTION}],
            "tool_choice": "auto",
            "assistant_prefix": "So",
            "chat_template_kwargs": {"enable_thinking": False},
            "max_completion_tokens": 5,
            "max_tokens": 9,
            "temperature": 0,
            "top_p": 0.5,
            "top_k": 40,
            "min_p": 0.1,
            "seed": 7,
            "stop": "\n",
            "repeat_penalty": 1.1,
            "presence_penalty": -1,
            "frequency_penalty": 2,
            "n": 1,
            "stream": False,
            "logprobs": False,
            "response_format": {"type": "text"},
            "assistant": None,
        }
    )
    assert request.tools[0].definition == {"type": "function", "function": FUNCTION}
    assert request.assistant_prefix == "So"
    assert request.template_kwargs == {"enable_thinking": False}
    assert request.sampling == SamplingOptions(
        max_tokens=5,
        temperature=0.0,
        top_k=40,
        top_p=0.5,
        min_p=0.1,
        seed=7,
        repeat_penalty=1.1,
        presence_penalty=-1.0,
        frequency_penalty=2.0,
        stop=("\n",),
    )
    assert request.notes == ()


def test_the_fields_that_begin_an_answer() -> None:
    assert parse({"messages": [USER]}).add_generation_prompt
    continued = parse({"messages": [USER], "continue_final_message": True})
    assert continued.continue_final and not continued.add_generation_prompt
    assert not parse({"messages": [USER], "add_generation_prompt": False}).add_generation_prompt
    assert parse({"messages": [USER], "assistant_prefix": None}).assistant_prefix == ""
    assert parse({"messages": [USER], "response_prefix": "x"}).response_prefix == "x"


def test_stop_texts() -> None:
    assert parse({"messages": [USER], "stop": ["a", "b"]}).sampling.stop == ("a", "b")


def test_tool_choice_none_hides_the_tools() -> None:
    tools = [{"type": "function", "function": FUNCTION}]
    assert parse({"messages": [USER], "tools": tools, "tool_choice": "none"}).tools == ()


def test_how_the_answer_is_handed_over() -> None:
    assert parse({"messages": [USER]}).delivery == Delivery()
    asked = {
        "stream": True,
        "stream_options": {"include_usage": True, "include_obfuscation": False},
        "n": 2,
        "logprobs": True,
        "top_logprobs": 3,
        "metadata": {"id": "7"},
    }
    request = parse({"messages": [USER], **asked})
    assert request.delivery == Delivery(stream=True, usage=True, choices=2, logprobs=3, metadata={"id": "7"})
    assert request.notes == ()
    assert parse({"messages": [USER], "logprobs": True}).delivery.logprobs == 0
    assert parse({"messages": [USER], "top_logprobs": 0}).delivery.logprobs is None
    assert parse({"messages": [USER], "stream": False}).delivery.stream is False


def test_an_answer_that_comes_back_is_read() -> None:
    answer = {"role": "assistant", "content": "a", "refusal": None, "annotations": [], "audio": None}
    assert parse([{**answer, "function_call": None, "tool_calls": None}]).messages == (Message("assistant", "a"),)
    assert parse([{"role": "assistant", "content": None, "refusal": "No."}]).messages == (Message("assistant", "No."),)
    parts = [{"type": "refusal", "refusal": "No."}]
    assert parse([{"role": "assistant", "content": parts}]).messages == (Message("assistant", (TextPart("No."),)),)


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ({"content": [{"type": "input_audio", "input_audio": {}}]}, "messages[0].content[0].type"),
        ({"content": [{"type": "file", "file": {}}]}, "messages[0].content[0].type"),
        ({"content": None, "function_call": {"name": "f", "arguments": "{}"}}, "messages[0].function_call"),
        ({"content": None, "audio": {"id": "a"}}, "messages[0].audio"),
    ],
)
def test_what_cannot_be_read_is_refused(message: dict[str, object], param: str) -> None:
    with pytest.raises(StrataError) as caught:
        parse([{"role": "assistant", **message}])
    assert caught.value.kind is errors.NOT_IN_THIS_BUILD and caught.value.param == param


@pytest.mark.parametrize(("field", "words"), [("user", "no effect"), ("store", "no effect"), ("colour", "unknown")])
def test_notes(field: str, words: str) -> None:
    (note,) = parse({"messages": [USER], field: "x"}).notes
    assert field in note and words in note


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("verbosity", "low"),
        ("logit_bias", {"5": 1}),
        ("functions", []),
        ("reasoning_effort", "low"),
        ("audio", {}),
    ],
)
def test_what_cannot_be_done_is_refused(field: str, value: object) -> None:
    with pytest.raises(StrataError) as caught:
        parse({"messages": [USER], field: value})
    assert caught.value.kind is errors.NOT_IN_THIS_BUILD
    assert caught.value.param == field
    assert caught.value.hint


def test_two_ways_at_once_are_refused() -> None:
    with pytest.raises(StrataError) as caught:
        parse({"messages": [USER], "continue_final_message": True, "add_generation_prompt": True})
    assert caught.value.kind is errors.CONFLICTING_OPTIONS


def _message(**fields: object) -> dict[str, object]:
    return {"messages": [USER, {"role": "user", "content": "a", **fields}]}


@pytest.mark.parametrize(
    ("request_", "param"),
    [
        (7, None),
        ("text", None),
        ({}, "messages"),
        ({"messages": "a"}, "messages"),
        ({"messages": ["a"]}, "messages[0]"),
        ({"messages": [{"content": "a"}]}, "messages[0].role"),
        (_message(role=""), "messages[1].role"),
        (_message(content=7), "messages[1].content"),
        (_message(content={"type": "text"}), "messages[1].content"),
        (_message(content=[7]), "messages[1].content[0]"),
        (_message(content=[{"type": "text"}]), "messages[1].content[0].text"),
        (_message(content=[{"type": "video"}]), "messages[1].content[0].type"),
        (_message(content=[{"type": "image_url"}]), "messages[1].content[0].image_url"),
        (_message(name=7), "messages[1].name"),
        (_message(tool_call_id=7), "messages[1].tool_call_id"),
        (_message(reasoning=["r"]), "messages[1].reasoning"),
        (_message(tool_calls={}), "messages[1].tool_calls"),
        (_message(tool_calls=[{}]), "messages[1].tool_calls[0]"),
        (_message(tool_calls=[{"function": {}}]), "messages[1].tool_calls[0].function.name"),
        (
            _message(tool_calls=[{"function": {"name": "f", "arguments": 7}}]),
            "messages[1].tool_calls[0].function.arguments",
        ),
        ({"messages": [USER], "tools": {}}, "tools"),
        ({"messages": [USER], "tools": [7]}, "tools[0]"),
        ({"messages": [USER], "tools": [{"type": "function"}]}, "tools[0].function"),
        ({"messages": [USER], "assistant_prefix": 7}, "assistant_prefix"),
        ({"messages": [USER], "response_prefix": ["a"]}, "response_prefix"),
        ({"messages": [USER], "continue_final_message": "yes"}, "continue_final_message"),
        ({"messages": [USER], "add_generation_prompt": 1}, "add_generation_prompt"),
        ({"messages": [USER], "chat_template_kwargs": []}, "chat_template_kwargs"),
        ({"messages": [USER], "chat_template_kwargs": {"messages": []}}, "chat_template_kwargs.messages"),
        ({"messages": [USER], "temperature": "hot"}, "temperature"),
        ({"messages": [USER], "temperature": -1}, "temperature"),
        ({"messages": [USER], "temperature": True}, "temperature"),
        ({"messages": [USER], "top_p": 1.5}, "top_p"),
        ({"messages": [USER], "top_k": 1.5}, "top_k"),
        ({"messages": [USER], "min_p": float("nan")}, "min_p"),
        ({"messages": [USER], "seed": float("inf")}, "seed"),
        ({"messages": [USER], "max_tokens": 0}, "max_tokens"),
        ({"messages": [USER], "presence_penalty": 3}, "presence_penalty"),
        ({"messages": [USER], "stop": 7}, "stop"),
        ({"messages": [USER], "n": 0}, "n"),
        ({"messages": [USER], "n": 129}, "n"),
        ({"messages": [USER], "n": 10**400}, "n"),
        ({"messages": [USER], "max_tokens": 1e400}, "max_tokens"),
        ({"messages": [USER], "stream": 1}, "stream"),
        ({"messages": [USER], "stream_options": []}, "stream_options"),
        ({"messages": [USER], "stream_options": {"include_usage": "yes"}}, "stream_options.include_usage"),
        ({"messages": [USER], "logprobs": 5}, "logprobs"),
        ({"messages": [USER], "top_logprobs": 5}, "top_logprobs"),
        ({"messages": [USER], "logprobs": True, "top_logprobs": -1}, "top_logprobs"),
        ({"messages": [USER], "metadata": "a"}, "metadata"),
        (_message(refusal=7), "messages[1].refusal"),
        ({"messages": [USER], "stop": ["a", ""]}, "stop"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(request_: object, param: str | None) -> None:
    with pytest.raises(StrataError) as caught:
        parse(request_)
    assert caught.value.kind is errors.INVALID_REQUEST
    assert caught.value.param == param
    assert caught.value.hint


NAMED = {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize(
    ("fields", "choice"),
    [
        ({"tool_choice": "auto"}, None),
        ({"tool_choice": "none"}, None),
        ({"tool_choice": "required"}, ToolChoice()),
        ({"tool_choice": "required", "parallel_tool_calls": False}, ToolChoice(several=False)),
        ({"tool_choice": NAMED}, ToolChoice(("f",), several=False)),
        (
            {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [NAMED]}}},
            ToolChoice(("f",)),
        ),
    ],
)
def test_a_demanded_call(fields: dict[str, object], choice: ToolChoice | None) -> None:
    assert parse({"messages": [USER], "tools": [NAMED], **fields}).choice == choice


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tool_choice": "some"}, "tool_choice"),
        ({"tool_choice": {"type": "custom"}}, "tool_choice.type"),
        ({"tool_choice": {"type": "function"}}, "tool_choice.function"),
        ({"tool_choice": {"type": "function", "function": {"name": 1}}}, "tool_choice.function.name"),
        (
            {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}},
            "tool_choice.allowed_tools.mode",
        ),
        (
            {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required"}}},
            "tool_choice.allowed_tools.tools",
        ),
        ({"tools": [NAMED], "parallel_tool_calls": False}, "parallel_tool_calls"),
    ],
)
def test_a_demand_that_is_none_is_refused(fields: dict[str, object], param: str) -> None:
    with pytest.raises(StrataError) as caught:
        parse({"messages": [USER], **fields})
    assert caught.value.param == param
