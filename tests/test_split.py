"""Answers told apart: golden events, the same for every way of cutting, no character lost."""

from __future__ import annotations

import datetime
import functools
import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strata_cli.conversation.messages import Json, JsonObject, Message, Tool, ToolCall
from strata_cli.conversation.request import Request
from strata_cli.generation.split import (
    Answer,
    CallArguments,
    CallBegan,
    CallEnded,
    CallFailed,
    Content,
    Markup,
    Reasoning,
    Splitter,
    gather,
)
from strata_cli.generation.split.feed import Feed, Marks
from strata_cli.generation.split.notation import Broken, Literal, json_text, json_value, nothing, whole
from strata_cli.generation.split.shown import shown
from strata_cli.prompt.adapt import Reader
from strata_cli.prompt.tags import FAMILIES
from strata_cli.prompt.template import ChatTemplate
from strata_cli.prompt.toolformat import Learnt, Turn
from strata_cli.prompt.toolformat.pieces import pieces
from strata_cli.prompt.turn import Opening, compose
from tests.splitting import chunked, every_cut, plain, split

DATA = Path(__file__).parent / "data" / "toolformat"


def tool(name: str, properties: Json) -> Tool:
    return Tool({"type": "function", "function": {"name": name, "parameters": {"properties": properties}}})


TOOLS = (
    tool(
        "weather",
        {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "flags": {"type": "array"},
            "more": {"type": "object"},
        },
    ),
    tool("clock", {}),
)


def template(name: str) -> ChatTemplate:
    now = datetime.datetime(2025, 1, 1)
    return ChatTemplate((DATA / f"{name}.jinja").read_text(encoding="utf-8"), now=now)


@functools.cache
def learnt(name: str) -> Learnt:
    return shown(Reader(template(name)))


def cases() -> list[object]:
    return [
        pytest.param(path.stem, case, id=f"{path.stem}-{number}")
        for path in sorted(DATA.glob("*.json"))
        for number, case in enumerate(json.loads(path.read_text(encoding="utf-8"))["cases"])
    ]


@pytest.mark.parametrize(("name", "case"), cases())
def test_golden_events_for_every_cut(name: str, case: dict[str, object]) -> None:
    where, begun, said = case["where"], case["begun"], case["said"]
    events = every_cut(learnt(name), case["text"], TOOLS, where=where, begun=begun, said=said)  # type: ignore[arg-type]
    assert plain(events) == case["events"]


# Reasoning

THINK = Learnt(Turn(FAMILIES[0], ("<think>\n", "<think>"), ("\n</think>\n\n", "\n</think>\n", "\n</think>",
                                                            "</think>\n\n", "</think>\n", "</think>")))  # fmt: skip


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>\nhm\n</think>\n\nHi", Answer("hm", "Hi")),
        ("  \n<think>hm</think>Hi", Answer("hm", "Hi")),
        ("<think>\n\n\n</think>\n\n\nHi", Answer("\n", "\nHi")),
        ("<think>\n</think>Hi", Answer("", "Hi")),
        ("Hi <think>hm</think>", Answer("", "Hi <think>hm</think>")),
        ("<think>a<think>b</think>c</think>", Answer("a<think>b", "c</think>")),
        ("<think>hm", Answer("hm")),
        ("<think>hm\n</thin", Answer("hm\n</thin")),
        ("<thin", Answer("", "<thin")),
        ("<|think|>hm", Answer("", "<|think|>hm")),
        ("", Answer()),
        (" \n", Answer("", " \n")),
    ],
)
def test_a_block_that_the_model_opens_itself(text: str, answer: Answer) -> None:
    assert gather(every_cut(THINK, text)) == answer


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.open)
def test_every_family_is_told_apart(family: object) -> None:
    turn = Turn(family, (family.open,), (family.close,))  # type: ignore[attr-defined, arg-type]
    text = f"hm{family.close}Hi"  # type: ignore[attr-defined]
    assert gather(every_cut(Learnt(turn), text, where="reasoning")) == Answer("hm", "Hi")
    opened = family.open + text  # type: ignore[attr-defined]
    assert gather(every_cut(Learnt(turn), opened)) == Answer("hm", "Hi")


@pytest.mark.parametrize("family", [family for family in FAMILIES if family.inline], ids=lambda family: family.open)
def test_a_template_without_reasoning_may_belong_to_a_model_that_reasons(family: object) -> None:
    text = f"{family.open}\nhm\n{family.close}\n\nHi"  # type: ignore[attr-defined]
    found = learnt("silent")
    assert found.turn.family is None
    assert gather(every_cut(found, text)) == Answer("hm", "Hi")


def test_what_may_be_a_marker_waits_and_nothing_else() -> None:
    splitter = Splitter(THINK.turn, Opening("reasoning", FAMILIES[0]))
    assert splitter.push("a < b") == [Reasoning("a < b")]
    assert splitter.push("</th") == []
    assert splitter.push("e") == [Reasoning("</the")]
    assert splitter.push(" end\n") == [Reasoning(" end")]
    assert splitter.push("\n") == [Reasoning("\n")]
    assert splitter.push("</think>") == []
    assert splitter.push("x") == [Markup("\n</think>"), Content("x")]
    assert splitter.push(" <think>") == [Content(" <think>")]
    assert splitter.finish() == []


def test_arguments_come_as_they_are_written() -> None:
    splitter = Splitter(learnt("tags").turn, Opening("content", None), learnt("tags").format, TOOLS)
    assert splitter.push('<call>\n{"name": "weather"') == [CallBegan(0, "weather", None, '<call>\n{"name": "weather"')]
    pushed = splitter.push(', "arguments": {"city": "Os')
    assert [event.text for event in pushed if isinstance(event, CallArguments)] == ["{", '"', "city", '"', ":", " ",
                                                                                   '"', "Os"]  # fmt: skip
    assert [type(event) for event in splitter.push('lo"}}')][-1] is CallEnded
    assert splitter.push("\n") == []
    assert splitter.finish() == [Markup("\n")]


# Where an answer starts

CONVERSATION = (Message("user", "What is </think> and <think> and <call>?"),)


def test_words_of_the_user_change_nothing() -> None:
    chat = template("tags")
    prompt = compose(chat, Request(CONVERSATION))
    splitter = Splitter.after(prompt, learnt("tags").turn, learnt("tags").format, TOOLS)
    assert splitter.push("Tags.") + splitter.finish() == [Content("Tags.")]


@pytest.mark.parametrize(
    ("name", "prefix", "text", "answer"),
    [
        ("tags", "<think>\nWell", "hm\n</think>\n\nHi", Answer("hm", "Hi")),
        ("tags", "<think>\nWell\n</think>\n\n", "Hi", Answer("", "Hi")),
        ("tags", "<think>\nWell\n</th", "ink>\n\nHi", Answer("", "Hi")),
        ("tags", "Hi", "<think>", Answer("", "<think>")),
        ("tags", '<call>\n{"name": "clock", "argum', 'ents": {}}', Answer(calls=(ToolCall("clock", "{}"),))),
        ("envelope", "Hel", "lo<|return|>", Answer("", "lo")),
        ("arrows", "Hel", "lo>>>clock\n{}", Answer("", "lo", (ToolCall("clock", "{}"),))),
    ],
)
def test_a_prefix_is_read_and_not_returned(name: str, prefix: str, text: str, answer: Answer) -> None:
    prompt = compose(template(name), Request(CONVERSATION, assistant_prefix=prefix))
    splitter = Splitter.after(prompt, learnt(name).turn, learnt(name).format, TOOLS)
    events = splitter.push(text) + splitter.finish()
    assert "".join(event.source for event in events) == text
    assert gather(events) == answer


@pytest.mark.parametrize(
    ("said", "text", "answer"),
    [
        (Message("assistant", "Hel"), "lo <think>", Answer("", "lo <think>")),
        (Message("assistant", "", "Let me"), " see\n</think>\n\nHi", Answer(" see", "Hi")),
        (Message("assistant", "H", "Let me"), "i </think>", Answer("", "i </think>")),
        (Message("assistant", 'A\n<call>\n{"name": "clo'), 'ck"}', Answer(calls=(ToolCall("clock", "{}"),))),
    ],
)
def test_a_continued_message_goes_on_where_it_stopped(said: Message, text: str, answer: Answer) -> None:
    request = Request((*CONVERSATION, said), continue_final=True, add_generation_prompt=False)
    prompt = compose(template("tags"), request)
    splitter = Splitter.after(prompt, learnt("tags").turn, learnt("tags").format, TOOLS)
    assert gather(splitter.push(text) + splitter.finish()) == answer


@pytest.mark.parametrize(
    ("name", "text", "answer"),
    [
        ("envelope", "<|channel|>final<|message|>Hi", Answer("", "Hi")),
        ("arrows", "all\nHi", Answer("", "Hi")),
        ("arrows", "clock\n{}", Answer(calls=(ToolCall("clock", "{}"),))),
    ],
)
def test_a_generation_prompt_may_end_within_a_marker(name: str, text: str, answer: Answer) -> None:
    prompt = compose(template(name), Request(CONVERSATION))
    splitter = Splitter.after(prompt, learnt(name).turn, learnt(name).format, TOOLS)
    assert gather(splitter.push(text) + splitter.finish()) == answer


NEWLINES = """{%- for m in messages %}{{ "[" ~ m.role ~ "]" }}
{%- if m.reasoning_content %}{{ "\\n<think>\\n" ~ m.reasoning_content }}
{%- elif m.role == "assistant" %}{{ "\\n" }}{% endif %}
{%- if m.role == "assistant" %}{{ "</think>\\n" }}{% endif %}{{ m.content }}{% endfor %}
{%- if add_generation_prompt %}{{ "[assistant]\\n" ~ ("<think>" if enable_thinking else "</think>") }}{% endif %}"""


@pytest.mark.parametrize(
    ("thinking", "text", "answer"),
    [
        (True, "\nhm</think>\nHi", Answer("hm", "Hi")),
        (True, "hm</think>Hi", Answer("hm", "Hi")),
        (True, "\n\nhm", Answer("\nhm")),
        (False, "\nHi", Answer("", "Hi")),
        (False, "\n\nHi", Answer("", "\nHi")),
    ],
)
def test_blanks_after_the_tag_that_ends_a_prompt_belong_to_it(thinking: bool, text: str, answer: Answer) -> None:
    chat = ChatTemplate(NEWLINES, now=datetime.datetime(2025, 1, 1))
    arguments: JsonObject = {"enable_thinking": thinking}
    prompt = compose(chat, Request(CONVERSATION, template_kwargs=arguments))
    found = shown(Reader(chat, (), arguments))
    for chunks in ([text], list(text)):
        splitter = Splitter.after(prompt, found.turn)
        events = [event for chunk in chunks for event in splitter.push(chunk)] + splitter.finish()
        assert "".join(event.source for event in events) == text
        assert gather(events) == answer


# The fold


def test_the_whole_answer_is_a_fold() -> None:
    failed = CallFailed("unclosed", "<call>{", None, None, "<call>{")
    events = [
        Reasoning("a"), Reasoning("b"), Markup("|"), Content("c"), CallBegan(0, "f", None, "("),
        CallArguments(0, "{", "{"), CallArguments(0, "}", "}"), CallEnded(0, "id", ")"),
        CallBegan(1, "g", "x", "("), CallFailed("invalid_json", "(?", "g", 1, "?"), failed, Content("d"),
    ]  # fmt: skip
    answer = gather(events)
    assert (answer.reasoning, answer.content, answer.calls) == ("ab", "cd", (ToolCall("f", "{}", "id"),))
    assert [event.status for event in answer.failed] == ["invalid_json", "unclosed"]
    assert gather([]) == Answer()


# Any text at all

NAMES = sorted(path.stem for path in DATA.glob("*.jinja"))


@functools.cache
def words(name: str) -> list[str]:
    """Pieces of what this template writes, and what may stand between them."""
    found = learnt(name)
    said = [case["text"] for case in json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))["cases"]]
    turn = found.turn
    parts = [piece for text in (*said, *turn.opens[:2], *turn.closes, *turn.content) for piece in pieces(text)]
    return sorted({*parts, *turn.opens[:2], *turn.closes, *turn.content, "<", "\n", " ", '"', "{", "}", "]", "é"})


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_text_is_told_apart_the_same_however_it_is_cut(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    found = learnt(name)
    some = data.draw(st.lists(st.sampled_from(words(name)), max_size=30))
    said = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))["cases"][0]["text"]
    start = data.draw(st.integers(0, len(said)))
    text = said[:start] + "".join(some)
    where = data.draw(st.sampled_from(["content", "reasoning"] if found.turn.family else ["content"]))
    begun = data.draw(st.booleans()) and bool(found.turn.start)
    whole_events = split(found, text, TOOLS, where=where, begun=begun)  # type: ignore[arg-type]
    assert chunked(found, list(text), TOOLS, where=where, begun=begun) == whole_events  # type: ignore[arg-type]
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    cut = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    assert chunked(found, cut, TOOLS, where=where, begun=begun) == whole_events  # type: ignore[arg-type]
    for call in gather(whole_events).calls:
        assert isinstance(json.loads(str(call.arguments)), dict)


LONG = {
    "text": ("tags", "hello < world\n", "{}"),
    "blanks": ("tags", " ", "{}"),
    "arguments": ("tags", "ab\\n cd", '<call>\n{{"name": "weather", "arguments": {{"city": "{}"}}}}'),
    "brackets": ("tags", "[", '<call>\n{{"name": "weather", "arguments": {{"city": {}'),
    "unknown": ("tags", "x", '<call>\n{{"name": "nobody", "arguments": {{"city": "{}'),
    "closings": ("parameters", "</with> x\n", "<run=weather>\n<with=city>\n{}"),
    "digits": ("parameters", "1", "<run=weather>\n<with=days>\n{}"),
    "held": ("parameters", " ", "<run=weather>\n<with=city>\nx</with>{}y"),
    "quotes": ("python", "it's, ", "<|calls|>[weather(city='{}')]"),
    "candidate": ("bare", "x", '{{"parameters": "{}'),
}


@pytest.mark.parametrize("case", LONG.values(), ids=LONG)
def test_time_grows_with_the_length_only(case: tuple[str, str, str]) -> None:
    name, unit, around = case

    def seconds(size: int) -> float:
        text = around.format(unit * (size // len(unit)))
        found = learnt(name)
        splitter = Splitter(found.turn, Opening("content", None), found.format, TOOLS)
        start = time.process_time()
        for character in text:
            splitter.push(character)
        splitter.finish()
        return time.process_time() - start

    seconds(1000)
    assert seconds(24_000) < 15 * max(seconds(4_000), 0.01)  # quadratic would be 36 times


# Notations


def read_json(text: str) -> str:
    feed = Feed()
    feed.push(text)
    feed.ended = True
    parts: list[str] = []
    whole(json_value(feed, parts.append))  # type: ignore[arg-type]
    return "".join(parts)


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=10,
    ),
    st.booleans(),
)
def test_json_is_read_as_it_is_written(value: Json, indented: bool) -> None:
    text = json.dumps(value, indent=1 if indented else None, ensure_ascii=not indented)
    if text.startswith(("{", "[")):
        assert read_json(text + " rest") == text


@pytest.mark.parametrize(
    "text",
    ["{", "[1,]", "{,}", '{"a"}', '{"a": 01}', '{"a": 1.}', "{'a': 1}", '{"a": "\n"}', '{"a": "\\x"}',
     '{"a": "\\u00g0"}', '{"a": tru}', "[1 2]", '{"a": NaN}', "[" * 200, '"\\u12', '"\\', '{"a": +1}', '{"a"- 1}'],
)  # fmt: skip
def test_what_is_not_json_is_broken(text: str) -> None:
    with pytest.raises(Broken):
        read_json(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'it\\'s'", "it's"),
        ('"a\\n\\u00e9\\x41\\q"', "a\né\x41\\q"),
        ("'\\ud83d\\ude00'", "😀"),
        ("{'a': [1, (2, None,)], b: True}", {"a": [1, [2, None]], "b": True}),
        ("-1.5e3", -1500.0),
        ("Oslo town", "Oslo town"),
        ("[]", []),
        ("1e400", "1e400"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_literals_are_read(text: str, value: Json) -> None:
    feed = Feed()
    feed.push(text)
    feed.ended = True
    assert whole(Literal().value(feed)) == value


@pytest.mark.parametrize("text", ["", "'a", "[1", "[" * 200, "{'a' 1}", "{: 1}", "{'a': ,}"])
def test_broken_literals(text: str) -> None:
    feed = Feed()
    feed.push(text)
    feed.ended = True
    with pytest.raises(Broken):
        whole(Literal().value(feed))


@pytest.mark.parametrize(
    ("text", "types", "json_said"),
    [
        ("5", set(), '"5"'),
        ("5", {"string"}, '"5"'),
        ("5", {"integer"}, "5"),
        ("5", {"number"}, "5"),
        ("5", {"string", "integer"}, "5"),
        ("five", {"integer"}, '"five"'),
        ("True", {"boolean"}, "true"),
        ("None", {"string", "null"}, "null"),
        ("None", {"string"}, '"None"'),
        ("{'a': None}", {"object"}, '{"a": null}'),
        ('{"a": 1e400}', {"object"}, '{"a": 1e400}'),
        ("{broken", {"object"}, '"{broken"'),
        ("5", {"object"}, "5"),
        ("NaN", {"number"}, '"NaN"'),
    ],
)
def test_texts_between_tags_get_the_schemas_types(text: str, types: set[str], json_said: str) -> None:
    assert json_text(text, frozenset(types)) == json_said


def test_the_leftmost_and_longest_mark_is_found() -> None:
    feed = Feed()
    passed: list[str] = []
    reader = feed.until(Marks(("ab", "xabcd", "abc")), passed.append)
    next(reader)
    for chunk in ("yxab", "c"):
        feed.push(chunk)
        next(reader)
    assert passed == ["y"]
    feed.push("e")
    with pytest.raises(StopIteration) as end:
        next(reader)
    assert (end.value.value, "".join(passed)) == ("abc", "yx")
    nothing("")
