"""What tool calls look like is learnt from templates: small ones of our own, and published ones where they are."""

from __future__ import annotations

import datetime
import functools
import json
from pathlib import Path

import pytest

from strata_cli.conversation.messages import Json, JsonObject, Message, Tool, ToolCall
from strata_cli.conversation.request import Request
from strata_cli.generation.split import Splitter, gather
from strata_cli.generation.split.shown import SIMPLE_ONLY, shown
from strata_cli.prompt.adapt import Reader
from strata_cli.prompt.template import ChatTemplate
from strata_cli.prompt.toolformat import Learnt, learn
from strata_cli.prompt.toolformat.learn import NOT_PRINTED, NOT_READABLE
from strata_cli.prompt.toolformat.pieces import common_end, common_start, framed, pieces, runs
from strata_cli.prompt.toolformat.schema import name_of, types_of
from strata_cli.prompt.turn import compose
from tests.splitting import every_cut, split

DATA = Path(__file__).parent / "data" / "toolformat"
CORPUS = Path(__file__).parents[2] / "shared" / "corpus" / "templates"
NOW = datetime.datetime(2025, 1, 1)

OWN = {
    "addressed": "parameters",
    "arrows": "name and JSON",
    "bare": "bare JSON",
    "barelist": "bare JSON",
    "barepython": "literals",
    "elements": "parameters",
    "envelope": "recipient",
    "fences": "name and JSON",
    "identified": "name and JSON",
    "keyed": "name as key",
    "list": "JSON list",
    "lone": "JSON in tags",
    "marked": "JSON list",
    "numbered": "name and JSON",
    "pairs": "parameters",
    "parameters": "parameters",
    "python": "literals",
    "quoted": "literals",
    "silent": None,
    "tags": "JSON in tags",
    "told": None,
    "typed": "parameters",
    "words": "JSON list",
    "wrapped": "parameters",
}

PUBLISHED = {
    "Apriel-1.6-15b-Thinker-fixed": "JSON list",
    "Bielik-11B-v3.0-Instruct": "JSON in tags",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "JSON list",
    "GLM-4.6": "parameters",
    "GigaChat3-10B-A1.8B": "JSON in tags",
    "HuggingFaceTB-SmolLM3-3B": None,
    "Kimi-K2-Thinking": "name and JSON",
    "LFM2-8B-A1B": None,
    "LFM2.5-8B-A1B": "literals",
    "MiMo-VL": "JSON in tags",
    "MiniMax-M2": "parameters",
    "NVIDIA-Nemotron-Nano-v2": "JSON list",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "JSON in tags",
    "Qwen-QwQ-32B": "JSON in tags",
    "Qwen-Qwen2.5-7B-Instruct": "JSON in tags",
    "Qwen-Qwen3-0.6B": "JSON in tags",
    "Qwen3.5-4B": "parameters",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "name and JSON",
    "deepseek-ai-DeepSeek-V3.1": "name and JSON",
    "fireworks-ai-llama-3-firefunction-v2": "JSON list",
    "google-gemma-2-2b-it": None,
    "google-gemma-4-31B-it": "literals",
    "ibm-granite-granite-3.3-2B-Instruct": None,
    "meetkai-functionary-medium-v3.2": "name and JSON",
    "meta-llama-Llama-3.1-8B-Instruct": "bare JSON",
    "microsoft-Phi-3.5-mini-instruct": None,
    "mistralai-Mistral-Nemo-Instruct-2407": "JSON list",
    "openai-gpt-oss-120b": "recipient",
    "openbmb-MiniCPM5-1B": "parameters",
    "upstage-Solar-Open-100B": "name and JSON",
}
SINGLE = {"GigaChat3-10B-A1.8B", "meta-llama-Llama-3.1-8B-Instruct", "openai-gpt-oss-120b"}
"""Templates that write only the first of two calls, or refuse two."""


def reader_of(path: Path) -> Reader:
    return Reader(ChatTemplate(path.read_text(encoding="utf-8"), bos="<BOS>", eos="<EOS>", now=NOW))


@functools.cache
def learnt(path: Path) -> tuple[Reader, Learnt]:
    reader = reader_of(path)
    return reader, shown(reader)


def published() -> list[object]:
    found = sorted(CORPUS.glob("*.jinja"))
    return [pytest.param(path, id=path.stem) for path in found] or [
        pytest.param(CORPUS, marks=pytest.mark.skip("the published templates are not here"))
    ]


def kind(found: Learnt) -> str | None:
    return None if found.format is None else found.format.kind


@pytest.mark.parametrize("name", OWN)
def test_each_own_template_shows_its_kind(name: str) -> None:
    _, found = learnt(DATA / f"{name}.jinja")
    assert kind(found) == OWN[name]
    assert found.note == {"silent": NOT_PRINTED, "told": NOT_READABLE}.get(name, "")


@pytest.mark.parametrize("path", published())
def test_each_published_template_shows_its_kind(path: Path) -> None:
    _, found = learnt(path)
    if path.stem in PUBLISHED:
        assert kind(found) == PUBLISHED[path.stem]
    assert found.note == ("" if found.format is not None else NOT_PRINTED)


# Calls that a template renders come back as they were

STRINGS: JsonObject = {
    "city": 'Oslo "north" it\'s\n</tool_call> 日本 {"a": [1]} </b> é\n',
    "path": 'C:\\new\\"',
    "empty": "",
    "number": "12",
}
VALUES: JsonObject = {
    "days": 12,
    "share": -2.5e-3,
    "on": True,
    "off": False,
    "nothing": None,
    "more": {"deep": {"list": [1, "two", {"three": '3 "</tool_call>"\n'}], "no": None}},
    "list": ["a", 1, [True]],
}
EASY: JsonObject = {"city": "x"}


def tool(name: str) -> Tool:
    types = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array"}
    properties: Json = {key: {"type": types.get(type(value), "null")} for key, value in {**STRINGS, **VALUES}.items()}
    parameters: Json = {"type": "object", "properties": properties}
    return Tool({"type": "function", "function": {"name": name, "description": "d", "parameters": parameters}})


TOOLS = (tool("get_weather"), tool("ask"))
FIRST = ToolCall("get_weather", {**STRINGS, **VALUES}, "abcdefgh1")


def rendered(reader: Reader, content: str, calls: tuple[ToolCall, ...]) -> str | None:
    """An assistant's turn with these calls, from the end of the user's words on."""
    how = reader.calls()
    given = tuple(
        call if how.mapping else ToolCall(call.name, json.dumps(call.arguments, ensure_ascii=False), call.id)
        for call in calls
    )
    empty = None if how.null_content else ""
    messages = [Message("user", "USERSWORDS"), Message("assistant", content or empty, tool_calls=given)]
    text = reader.attempt(messages)
    return None if text is None else text.rpartition("USERSWORDS")[2]


def answer_in(reader: Reader, found: Learnt, turn: str) -> tuple[str, bool]:
    generation = (reader.attempt([Message("user", "USERSWORDS")], generation=True) or "").rpartition("USERSWORDS")[2]
    if found.turn.start and turn.startswith(generation):
        return turn[len(generation) :], True
    plain = reader.attempt([Message("user", "USERSWORDS"), Message("assistant", "TEXT")]) or ""
    header = plain.rpartition("USERSWORDS")[2].partition("TEXT")[0]
    return turn[len(max(common_start(turn, generation), common_start(turn, header), key=len)) :], False


def same(given: tuple[ToolCall, ...], read: tuple[ToolCall, ...]) -> bool:
    return [(call.name, dict(call.arguments)) for call in given] == [  # type: ignore[arg-type]
        (call.name, json.loads(str(call.arguments))) for call in read
    ]


CALLS = {
    "strings": (ToolCall("get_weather", STRINGS, "abcdefgh1"),),
    "values": (ToolCall("get_weather", VALUES, "abcdefgh1"),),
    "none": (ToolCall("ask", {}, "abcdefgh1"),),
    "two": (FIRST, ToolCall("ask", EASY, "abcdefgh2")),
    "the same twice": (FIRST, ToolCall("get_weather", FIRST.arguments, "abcdefgh2")),
}


def comes_back(path: Path, content: str, calls: tuple[ToolCall, ...]) -> None:
    reader, found = learnt(path)
    if found.format is None:
        pytest.skip("no calls in this template")
    if path.stem in SINGLE or path.stem in ("bare", "envelope"):
        calls = calls[:1]
    turn = rendered(reader, content, calls)
    assert turn is not None
    text, begun = answer_in(reader, found, turn)
    events = split(found, text, TOOLS, begun=begun)
    answer = gather(events)
    if content and content not in turn:
        return
    assert not answer.failed
    if answer.calls or calls[0].name in turn:
        assert same(calls, answer.calls)
    assert content in answer.content + answer.reasoning


@pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("name", OWN)
def test_calls_of_own_templates_come_back(name: str, calls: tuple[ToolCall, ...]) -> None:
    comes_back(DATA / f"{name}.jinja", "", calls)


@pytest.mark.parametrize("content", ["", "Let me look."], ids=["alone", "after text"])
@pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("path", published())
def test_calls_of_published_templates_come_back(path: Path, calls: tuple[ToolCall, ...], content: str) -> None:
    comes_back(path, content, calls)


@pytest.mark.parametrize("path", published())
def test_a_published_templates_calls_are_the_same_however_they_are_cut(path: Path) -> None:
    reader, found = learnt(path)
    turn = rendered(reader, "", CALLS["values"]) if found.format is not None else None
    if turn is None:
        pytest.skip("no calls in this template")
    text, begun = answer_in(reader, found, turn)
    every_cut(found, text, TOOLS, begun=begun)


# So do reasoning and content


OPENS_NO_ANSWER = {"NVIDIA-Nemotron-Nano-v2"}
"""Templates that put a finished answer inside a block which they never close."""


@pytest.mark.parametrize("reasoning", [None, "Let me\n\nthink."], ids=["without", "with"])
@pytest.mark.parametrize("path", published())
def test_reasoning_and_content_of_published_templates_come_back(path: Path, reasoning: str | None) -> None:
    reader, found = learnt(path)
    user = Message("user", "USERSWORDS")
    prompt = compose(reader.template, Request((user,)))
    turn = reader.attempt([user, Message("assistant", "Hello,\n there.", reasoning)]) or ""
    if not turn.startswith(prompt.text) or path.stem in OPENS_NO_ANSWER:
        pytest.skip("a finished turn does not begin with this template's generation prompt")
    splitter = Splitter.after(prompt, found.turn)
    answer = gather(splitter.push(turn[len(prompt.text) :]) + splitter.finish())
    assert answer.content.startswith("Hello,\n there.")
    assert answer.reasoning == (reasoning if reasoning and reasoning in turn else "")


# What learning is made of


def test_what_was_learnt_is_kept_with_the_template() -> None:
    reader, found = learnt(DATA / "tags.jinja")
    assert shown(reader) is found
    assert learn(reader) is learn(Reader(reader.template))


def test_arguments_that_a_template_drops_are_a_note() -> None:
    source = (DATA / "elements.jinja").read_text().replace("value.items()", "value.items() if item is not none")
    found = shown(Reader(ChatTemplate(source, now=NOW)))
    assert (kind(found), found.note) == ("parameters", SIMPLE_ONLY)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('</a>\n<b c="', ["</a>", "\n", "<b", " ", "c", "=", '"']),
        ("[CALLS][{x", ["[CALLS]", "[", "{", "x"]),
        ("<|a|>of b<", ["<|a|>", "of", " ", "b", "<"]),
    ],
)
def test_text_falls_into_pieces(text: str, parts: list[str]) -> None:
    assert pieces(text) == parts


def test_texts_are_compared_piece_by_piece() -> None:
    assert common_start("<a>\n<bc>", "<a>\n<bd>") == "<a>\n"
    assert common_end(">\n<p=", "</p>\n<p=") == "\n<p="


def test_a_closing_may_be_left_out_in_part() -> None:
    assert runs("\n</a>\n</b>") == ("</a>\n</b>", "</a>", "</b>")
    assert framed("\n", "x", "\n") == ("\nx\n", "\nx", "x\n", "x")


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "string"}, {"string"}),
        ({"type": ["integer", "null"]}, {"integer", "null"}),
        ({"type": "integer", "nullable": True}, {"integer", "null"}),
        ({"enum": ["a", 1]}, {"string", "integer"}),
        ({"const": True}, {"boolean"}),
        ({"anyOf": [{"type": "array"}, {"oneOf": [{"type": "null"}]}]}, {"array", "null"}),
        ({"$ref": "#/$defs/thing"}, {"object"}),
        ({"$ref": "#/properties/key"}, set()),
        ({"$ref": "elsewhere"}, set()),
        ({}, set()),
        (True, set()),
    ],
)
def test_types_come_from_the_schema(schema: Json, types: set[str]) -> None:
    parameters: Json = {"properties": {"key": schema}, "$defs": {"thing": {"type": "object"}}}
    defined = Tool({"function": {"name": "f", "parameters": parameters}})
    assert types_of(defined, "key") == types
    assert types_of(defined, "other") == set()
    assert name_of(defined) == "f"
    assert types_of(Tool({}), "key") == set()
    assert name_of(Tool({"type": "other"})) is None
