"""Demanded tool calls: the grammar of each template's format, and answers that have to be calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from strata_cli.conversation.messages import Json, Tool, ToolCall
from strata_cli.engine import Grammar
from strata_cli.engine.llama.constraint import LlamaConstraint
from strata_cli.errors import INVALID_REQUEST, NOT_IN_THIS_BUILD, StrataError
from strata_cli.generation.structured.call_grammar import call_grammar, markers_of
from strata_cli.prompt.toolformat import Learnt
from tests.shell import Done, strata
from tests.test_toolformat import DATA, OWN, SINGLE, answer_in, learnt, published, rendered

WEATHER: dict[str, Json] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
        "sure": {"type": "boolean"},
        "unit": {"type": "string", "enum": ["celsius", "kelvin"]},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}


def tool(name: str, parameters: Json) -> Tool:
    return Tool({"type": "function", "function": {"name": name, "description": "d", "parameters": parameters}})


TOOLS = (tool("get_weather", WEATHER), tool("noop", {"type": "object", "properties": {}}))
FULL = ToolCall("get_weather", {"city": "São Paulo", "days": 3, "sure": True, "unit": "kelvin"}, "abcdefgh1")
FEW = ToolCall("get_weather", {"city": "Oslo", "days": 9}, "abcdefgh1")
NONE = ToolCall("noop", {}, "abcdefgh2")
WRONG = {
    "another name": ToolCall("get_winter", {"city": "Oslo", "days": 9}, "abcdefgh1"),
    "a wrong type": ToolCall("get_weather", {"city": "Oslo", "days": "many"}, "abcdefgh1"),
    "a value out of range": ToolCall("get_weather", {"city": "Oslo", "days": 12}, "abcdefgh1"),
    "one missing": ToolCall("get_weather", {"city": "Oslo"}, "abcdefgh1"),
    "a choice that is none": ToolCall("get_weather", {"city": "Oslo", "days": 9, "unit": "feet"}, "abcdefgh1"),
}
# Their lists of calls have fields of the template's own, which no parser needs.
OWN_FIELDS = {"CohereForAI-c4ai-command-r7b-12-2024-tool_use", "marked", "words"}


def templates() -> list[object]:
    return [pytest.param(DATA / f"{name}.jinja", id=name) for name in OWN] + published()


def constraint(found: Learnt, *, several: bool = True) -> LlamaConstraint:
    assert found.format is not None
    text = call_grammar(found.format, found.turn, TOOLS, several=several)
    if text is None:
        pytest.skip("no grammar for calls within an envelope")
    return LlamaConstraint(Grammar("calls", text, markers_of(found.format, found.turn)), lambda _: None)  # type: ignore[arg-type, return-value]


def written(path: Path, *calls: ToolCall) -> tuple[Learnt, str]:
    """What the template writes for these calls, from where an answer begins."""
    reader, found = learnt(path)
    if found.format is None or path.stem in OWN_FIELDS:
        pytest.skip("no calls that could be demanded")
    turn = rendered(reader, "", calls)
    assert turn is not None
    text, _ = answer_in(reader, found, turn)
    content = next((marker for marker in found.turn.content if marker and text.startswith(marker)), "")
    return found, text[len(content) :] if found.format.recipient is not None else text[len(content) :].lstrip()


def accepted(found: Learnt, text: str, grammar: LlamaConstraint) -> bool:
    """Whether a beginning of the text is a whole document, and nothing follows but the turn's end."""
    assert found.format is not None
    ends = (end for end in range(len(text), 0, -1) if grammar.complete(text[:end]))
    end = next(ends, None)
    if end is None:
        return False
    rest = text[end:].strip()
    return not rest or rest in found.format.section[1] or (found.format.recipient is not None and rest == "<|call|>")


@pytest.mark.parametrize("calls", [(FULL,), (FEW,), (NONE,), (FEW, NONE)], ids=["full", "few", "none", "two"])
@pytest.mark.parametrize("path", templates())
def test_what_a_template_writes_may_be_written(path: Path, calls: tuple[ToolCall, ...]) -> None:
    if len(calls) > 1 and (path.stem in SINGLE or path.stem in ("bare", "envelope")):
        pytest.skip("one call only")
    found, text = written(path, *calls)
    if calls[0].name not in text:
        pytest.skip("the template writes no call without arguments")
    assert accepted(found, text, constraint(found)), text


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("path", templates())
def test_what_a_tool_does_not_take_may_not_be_written(path: Path, wrong: ToolCall) -> None:
    found, text = written(path, wrong)
    assert not accepted(found, text, constraint(found)), text


@pytest.mark.parametrize("path", templates())
def test_a_second_call_may_follow_or_not(path: Path) -> None:
    if path.stem in SINGLE or path.stem in ("bare", "envelope"):
        pytest.skip("one call only")
    found, text = written(path, FEW, NONE)
    if "noop" not in text:
        pytest.skip("the template writes no call without arguments")
    assert accepted(found, text, constraint(found))
    assert not accepted(found, text, constraint(found, several=False))


def test_a_schema_that_cannot_be_enforced_is_refused_by_its_keyword() -> None:
    _, found = learnt(DATA / "tags.jinja")
    assert found.format is not None
    odd = tool("f", {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}})
    text = call_grammar(found.format, found.turn, [odd], several=True)
    with pytest.raises(StrataError) as refused:
        LlamaConstraint(Grammar("calls", text or ""), lambda _: None)  # type: ignore[arg-type, return-value]
    assert refused.value.kind is NOT_IN_THIS_BUILD
    assert "uniqueItems" in refused.value.message


# From the command line to the answer

SHORT: dict[str, Json] = {
    "type": "object",
    "properties": {"days": {"type": "integer", "minimum": 1, "maximum": 9}, "unit": {"enum": ["a", "b"]}},
    "required": ["days", "unit"],
    "additionalProperties": False,
}
FUNCTIONS = [
    {"type": "function", "function": {"name": name, "description": "d", "parameters": SHORT}} for name in ("look", "go")
]


@pytest.fixture
def template() -> Path:
    """One whose calls are JSON between tags."""
    return DATA / "tags.jinja"


def asked(model: Path, template: Path, *args: str, **fields: Any) -> Done:
    request = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 400, "tools": FUNCTIONS, **fields}
    options = ("-t", "1", "-m", str(model), "--seed", "5", "--template", str(template), "--format", "json")
    return strata("chat", *options, *args, stdin=json.dumps(request))


def calls_of(done: Done) -> list[tuple[str, Any]]:
    assert done.status == 0, (done.err, done.out)
    found = done.json["choices"][0]["message"].get("tool_calls") or []
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in found]


def valid(arguments: Any) -> bool:
    return set(arguments) == {"days", "unit"} and arguments["days"] in range(1, 10) and arguments["unit"] in ("a", "b")


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def test_a_named_tool_is_called_once(tiny_model: Path, template: Path) -> None:
    done = asked(tiny_model, template, tool_choice=named("go"))
    [(name, arguments)] = calls_of(done)
    assert name == "go" and valid(arguments)
    assert done.json["choices"][0]["finish_reason"] == "tool_calls"


def test_a_required_call_is_of_any_tool(tiny_model: Path, template: Path) -> None:
    [(name, arguments)] = calls_of(asked(tiny_model, template, tool_choice="required", parallel_tool_calls=False))
    assert name in ("look", "go") and valid(arguments)


def test_without_parallel_calls_there_is_one(tiny_model: Path, template: Path) -> None:
    choices = [
        calls_of(asked(tiny_model, template, tool_choice="required", parallel_tool_calls=False, seed=seed))
        for seed in range(3)
    ]
    assert [len(calls) for calls in choices] == [1, 1, 1]


def test_allowed_tools_leave_others_out(tiny_model: Path, template: Path) -> None:
    allowed = {"mode": "required", "tools": [named("look")]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed}
    calls = calls_of(asked(tiny_model, template, tool_choice=choice, parallel_tool_calls=False))
    assert [name for name, _ in calls] == ["look"]


def test_the_demo_model_calls_where_it_never_would(demo_model: Path, template: Path) -> None:
    free = asked(demo_model, template, temperature=0, max_tokens=30)
    assert calls_of(free) == []
    [(name, arguments)] = calls_of(asked(demo_model, template, temperature=0, tool_choice=named("look")))
    assert name == "look" and valid(arguments)


@pytest.mark.parametrize("logprobs", [True, None], ids=["with logprobs", "without"])
def test_a_marker_that_is_one_token_is_written_as_one(demo_model: Path, tmp_path: Path, logprobs: bool | None) -> None:
    """As a model that was taught the format would; its text in many tokens is what none has seen."""
    special = tmp_path / "special.jinja"
    source = (DATA / "tags.jinja").read_text()
    special.write_text(source.replace("<call>", "<jupyter_start>").replace("</call>", "<jupyter_code>"))
    done = asked(demo_model, special, "--debug", temperature=0, tool_choice=named("look"), logprobs=logprobs)
    [(name, arguments)] = calls_of(done)
    assert name == "look" and valid(arguments)
    if logprobs:
        tokens = [item["token"] for item in done.json["choices"][0]["logprobs"]["content"]]
        assert "<jupyter_start>" in tokens and "<jupyter_code>" in tokens
    usage = done.json["usage"]["completion_tokens"]
    assert usage < 60


def test_anthropics_demand_gives_a_tool_use(tiny_model: Path, template: Path) -> None:
    tools = [{"name": "look", "input_schema": SHORT}]
    for choice in (
        {"type": "any", "disable_parallel_tool_use": True},
        {"type": "tool", "name": "look", "disable_parallel_tool_use": True},
    ):
        done = asked(tiny_model, template, tools=tools, tool_choice=choice)
        assert done.status == 0, (done.err, done.out)
        uses = [block for block in done.json["content"] if block["type"] == "tool_use"]
        assert uses and all(use["name"] == "look" and valid(use["input"]) for use in uses)
        assert done.json["stop_reason"] == "tool_use"


def test_a_tool_that_anthropic_names_is_used_once(tiny_model: Path, template: Path) -> None:
    tools = [{"name": "look", "input_schema": SHORT}]
    for seed in range(3):
        done = asked(tiny_model, template, tools=tools, tool_choice={"type": "tool", "name": "look"}, seed=seed)
        assert done.status == 0, (done.err, done.out)
        assert [block["type"] for block in done.json["content"]].count("tool_use") == 1


def test_a_stream_brings_the_call_too(tiny_model: Path, template: Path) -> None:
    done = asked(tiny_model, template, "--format", "jsonl", tool_choice=named("go"))
    assert done.status == 0, done.err
    lines = [json.loads(line) for line in done.out.splitlines()]
    deltas = [call for line in lines if line["choices"] for call in line["choices"][0]["delta"].get("tool_calls", [])]
    assert valid(json.loads("".join(call["function"].get("arguments", "") for call in deltas)))


@pytest.mark.parametrize(
    "prefix",
    [
        "<ca",
        "<call>",
        '<call>\n{"name": "g',
        'Let me see.\n<call>\n{"name": "go", "arguments": {"days": 4',
    ],
)
def test_a_prefix_may_begin_the_call(tiny_model: Path, template: Path, prefix: str) -> None:
    [(name, arguments)] = calls_of(asked(tiny_model, template, tool_choice=named("go"), assistant_prefix=prefix))
    assert name == "go" and valid(arguments)
    assert arguments["days"] == 4 or "4" not in prefix


def test_prose_may_come_before_the_call(tiny_model: Path, template: Path) -> None:
    done = asked(tiny_model, template, tool_choice=named("go"), assistant_prefix="Let me see.\n")
    assert [name for name, _ in calls_of(done)] == ["go"]


def test_a_prefix_that_breaks_off_from_the_call_is_refused(tiny_model: Path, template: Path) -> None:
    prefix = 'Well.\n<call>\n{"name": "look"'
    done = asked(tiny_model, template, tool_choice=named("go"), assistant_prefix=prefix)
    assert done.status == 2
    error = done.json["error"]
    assert error["code"] == INVALID_REQUEST.code and error["param"] == "assistant_prefix"
    assert f"character {prefix.index('look') + 1}, 'l'" in error["message"] and "'go\"" in error["message"]


def test_a_call_that_is_cut_fails(tiny_model: Path, template: Path) -> None:
    done = asked(tiny_model, template, tool_choice=named("go"), max_tokens=12)
    assert done.status == 4
    assert done.json["error"]["code"] == "structured_output_failed"
    assert "cut before it was complete" in done.json["error"]["message"]


def test_one_that_is_cut_after_whole_ones_fails_too(tiny_model: Path, template: Path) -> None:
    """The model with random weights never stops calling."""
    done = asked(tiny_model, template, tool_choice="required")
    assert done.status == 4
    error = done.json["error"]
    assert "cut before it was complete" in error["message"] and error["text"].count("</call>") >= 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"tool_choice": named("fly")}, "there is no tool 'fly'"),
        ({"tool_choice": "required", "tools": []}, "there are no tools"),
        ({"tool_choice": "required", "response_format": {"type": "json_object"}}, "a document"),
    ],
)
def test_demands_that_cannot_be_met_are_refused(tiny_model: Path, template: Path, fields: Any, words: str) -> None:
    done = asked(tiny_model, template, **fields)
    assert done.status == 2
    assert done.json["error"]["param"] == "tool_choice" and words in done.json["error"]["message"]


def test_a_template_without_calls_is_refused(tiny_model: Path) -> None:
    done = asked(tiny_model, DATA / "silent.jinja", tool_choice="required")
    assert done.status != 0
    assert done.json["error"]["code"] == NOT_IN_THIS_BUILD.code
    assert "does not show" in done.json["error"]["message"]
