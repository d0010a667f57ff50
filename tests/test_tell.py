"""Reasoning, content and calls, told apart in every form in which an answer is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strata_cli.engine import llama
from tests import scripted
from tests.shell import Done, strata

TEMPLATE = """\
{%- if tools %}<|im_start|>system
# Tools
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif %}
{%- for m in messages %}<|im_start|>{{ m.role }}
{% if m.role == 'assistant' and m.reasoning_content %}<think>
{{ m.reasoning_content }}
</think>

{% endif %}{{ m.content or '' }}
{%- for call in m.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

THOUGHT = "<think>\nRain is likely.\n</think>\n\n"
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo \\"S\\"", "days": 3}}\n</tool_call>'
ARGUMENTS = {"city": 'Oslo "S"', "days": 3}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
    },
}
HI = {"role": "user", "content": "What does </think> mean? <tool_call>"}


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """`strata chat` with a model that says the script; the engine is the only thing that is not real."""
    model = tmp_path / "scripted.gguf"
    model.touch()

    def run(script: str, *args: str, dialect: str = "openai", terminal: bool = False, **fields: object) -> Done:
        monkeypatch.setattr(llama, "open_model", scripted.opening(TEMPLATE, script))
        request = {"messages": [HI], **fields}
        command = ["chat", "-m", str(model), "--dialect", dialect, *args]
        return strata(*command, stdin=json.dumps(request), terminal=terminal)

    return run


def test_reasoning_stands_apart_from_the_answer(say) -> None:
    message = say(THOUGHT + "It will rain.", "--format", "json").json["choices"][0]["message"]
    assert message["content"] == "It will rain."
    assert message["reasoning_content"] == "Rain is likely."


def test_in_text_reasoning_goes_to_stderr(say) -> None:
    done = say(THOUGHT + "It will rain.")
    assert done.text == "It will rain.\n"
    assert done.err == "Rain is likely.\n"


def test_reasoning_can_be_hidden(say) -> None:
    done = say(THOUGHT + "It will rain.", "--hide-thinking")
    assert (done.text, done.err) == ("It will rain.\n", "")


def test_a_prefix_that_opens_reasoning_makes_reasoning(say) -> None:
    done = say("likely.\n</think>\n\nYes.", "--format", "json", assistant_prefix="<think>\nRain is ")
    message = done.json["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("likely.", "Yes.")


def test_a_continued_reasoning_goes_on_as_reasoning(say) -> None:
    messages = [HI, {"role": "assistant", "content": "", "reasoning_content": "Rain is"}]
    done = say(" likely.\n</think>\n\nYes.", "--format", "json", messages=messages, continue_final_message=True)
    message = done.json["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == (" likely.", "Yes.")


def test_a_call_is_a_call(say) -> None:
    choice = say(THOUGHT + "Let me see.\n" + CALL, "--format", "json", tools=[TOOL]).json["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"].strip() == "Let me see."
    [call] = choice["message"]["tool_calls"]
    assert call["function"]["name"] == "weather"
    assert json.loads(call["function"]["arguments"]) == ARGUMENTS


def test_a_call_after_a_prefix(say) -> None:
    done = say("see.\n" + CALL, "--format", "json", tools=[TOOL], assistant_prefix="Let me ")
    message = done.json["choices"][0]["message"]
    assert message["content"].strip() == "see."
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["weather"]


def test_a_prefix_that_begins_the_call(say) -> None:
    done = say(CALL[30:], "--format", "json", tools=[TOOL], assistant_prefix=CALL[:30])
    [call] = done.json["choices"][0]["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == ARGUMENTS


def test_in_text_a_call_is_a_line_of_json(say) -> None:
    done = say("Let me see.\n" + CALL, tools=[TOOL])
    *_, last = done.text.splitlines()
    assert json.loads(last) == {"name": "weather", "arguments": ARGUMENTS}


def test_without_tools_a_call_is_text(say) -> None:
    assert say(CALL, "--format", "json").json["choices"][0]["message"]["content"] == CALL


@pytest.mark.parametrize(
    ("script", "status"),
    [
        (CALL.replace("3}}", "3}"), "invalid_json"),
        (CALL[:-20], "unclosed"),
        (CALL.replace("weather", "wether"), "unknown_tool"),
        (CALL.replace('"name": "weather", ', ""), "missing_name"),
    ],
)
def test_a_malformed_call_is_text_and_noted(say, script: str, status: str) -> None:
    reply = say(script, "--format", "json", tools=[TOOL]).json
    message = reply["choices"][0]["message"]
    assert message["content"].strip() == script.strip()
    assert not message.get("tool_calls")
    assert any(status in note for note in reply["strata"]["notes"])


@pytest.mark.parametrize("script", [THOUGHT + "Yes.", "Yes.\n" + CALL, THOUGHT + CALL + "\n" + CALL, CALL[:-5]])
def test_the_stream_folds_to_the_answer(say, script: str) -> None:
    whole = say(script, "--format", "json", tools=[TOOL]).json["choices"][0]
    content = reasoning = ""
    arguments: dict[int, str] = {}
    reason = None
    for chunk in say(script, "--format", "jsonl", tools=[TOOL]).lines:
        for choice in chunk["choices"]:
            delta, reason = choice["delta"], choice["finish_reason"] or reason
            content += delta.get("content") or ""
            reasoning += delta.get("reasoning_content") or ""
            for call in delta.get("tool_calls") or []:
                index = call["index"]
                arguments[index] = arguments.get(index, "") + call["function"].get("arguments", "")
    assert content == (whole["message"]["content"] or "")
    assert reasoning == whole["message"].get("reasoning_content", "")
    assert list(arguments.values()) == [
        call["function"]["arguments"] for call in whole["message"].get("tool_calls") or []
    ]
    assert reason == whole["finish_reason"]


def test_anthropic_blocks(say) -> None:
    tool = {"name": "weather", "input_schema": TOOL["function"]["parameters"]}
    fields = {"max_tokens": 1000, "tools": [tool]}
    reply = say(THOUGHT + "Let me see.\n" + CALL, "--format", "json", dialect="anthropic", **fields).json
    assert [block["type"] for block in reply["content"]] == ["thinking", "text", "tool_use"]
    assert reply["content"][0]["thinking"] == "Rain is likely."
    assert reply["content"][2]["input"] == ARGUMENTS
    assert reply["stop_reason"] == "tool_use"
