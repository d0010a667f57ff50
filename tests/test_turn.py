"""Every kind of template behaviour on a small template of our own: a golden file each, properties, refusals.

`python -m tests.test_turn` writes the golden files anew; read the difference before committing it.
"""

from __future__ import annotations

import datetime
import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strata_cli import errors
from strata_cli.conversation import openai
from strata_cli.conversation.messages import ImagePart, Message, TextPart
from strata_cli.conversation.request import Request
from strata_cli.errors import StrataError
from strata_cli.prompt.template import ChatTemplate
from strata_cli.prompt.turn import Opening, Prompt, check, compose

DATA = Path(__file__).parent / "data" / "prompt"
TEMPLATES = sorted(path.stem for path in (DATA / "templates").glob("*.jinja"))
NOW = datetime.datetime(2024, 2, 29, 12, 0, tzinfo=datetime.timezone.utc)

USER = {"role": "user", "content": "Hello."}
ANSWER = {"role": "assistant", "content": "Good day"}
MORE = {"role": "user", "content": "More."}
SYSTEM = {"role": "system", "content": "Be brief."}
TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Look up", "parameters": {"type": "object", "properties": {}}},
}
CALL = {"id": "call-000000001", "type": "function", "function": {"name": "look", "arguments": '{"at": "the sky"}'}}
ROUND = [
    USER,
    {"role": "assistant", "content": "", "reasoning_content": "I must look", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call-000000001", "content": "clouds"},
]
SILENT = [*ROUND[:2], {**ROUND[2], "content": ""}]
DEVELOPER = {"role": "developer", "content": "Be kind."}
IMAGE = {"type": "image_url", "image_url": {"url": "data:,"}}


def _continued(*messages: object, **fields: object) -> dict[str, object]:
    return {"messages": list(messages), "continue_final_message": True, **fields}


def _answer(content: object, **fields: object) -> dict[str, object]:
    return {"role": "assistant", "content": content, **fields}


CASES: dict[str, dict[str, object]] = {
    "generation": {"messages": [SYSTEM, USER]},
    "history alone": {"messages": [SYSTEM, USER], "add_generation_prompt": False},
    "response prefix": {"messages": [USER], "response_prefix": "RAW "},
    "no thinking": {"messages": [USER], "chat_template_kwargs": {"enable_thinking": False}},
    "thinking": {"messages": [USER], "chat_template_kwargs": {"enable_thinking": True}},
    "prefix": {"messages": [USER], "assistant_prefix": " Well,\n"},
    "prefix, no thinking": {
        "messages": [USER],
        "assistant_prefix": "Well,",
        "chat_template_kwargs": {"enable_thinking": False},
    },
    "prefix after turns": {"messages": [SYSTEM, USER, ANSWER, MORE], "assistant_prefix": "So"},
    "prefix after a tool": {"messages": ROUND, "assistant_prefix": "I see", "tools": [TOOL]},
    "continue": _continued(USER, ANSWER),
    "continue empty": _continued(USER, _answer("")),
    "continue blank": _continued(USER, _answer("  \n")),
    "continue with blanks around": _continued(USER, _answer("\n  Good day \n")),
    "continue after turns": _continued(SYSTEM, USER, ANSWER, MORE, _answer("So")),
    "continue what the user said": _continued(USER, _answer("Hello.")),
    "continue after a tool": _continued(*ROUND, _answer("I see"), tools=[TOOL]),
    "continue parts": _continued(USER, _answer([{"type": "text", "text": "Good"}, {"type": "text", "text": " day"}])),
    "continue with a prefix": _continued(USER, ANSWER, assistant_prefix=", my friend"),
    "continue with reasoning": _continued(USER, _answer("Good day", reasoning_content="greet ")),
    "continue reasoning": _continued(USER, _answer("", thinking="greet them")),
    "continue inline reasoning": _continued(USER, _answer("<think>\ngreet\n</think>\n\nGood day")),
    "continue an open inline block": _continued(USER, _answer(" <think>greet")),
    "continue a closed inline block": _continued(USER, _answer("<think>greet</think>")),
    "continue an empty inline block": _continued(USER, _answer("<think>\n\n</think>\n\nGood day")),
    "two systems": {"messages": [SYSTEM, {"role": "system", "content": "Be kind."}, USER]},
    "late system": {"messages": [SYSTEM, USER, ANSWER, {"role": "system", "content": "Be kind."}, USER]},
    "late system at the end": {"messages": [USER, ANSWER, {"role": "system", "content": "Be kind."}]},
    "prefix after a silent tool": {"messages": SILENT, "assistant_prefix": "I see", "tools": [TOOL]},
    "continue reasoning after a silent tool": _continued(*SILENT, _answer("", thinking="look"), tools=[TOOL]),
    "late developer": {"messages": [USER, ANSWER, DEVELOPER, MORE]},
    "system and developer": {"messages": [SYSTEM, DEVELOPER, USER]},
    "developer": {"messages": [{"role": "developer", "content": "Be brief."}, USER]},
    "null calls": {"messages": [USER, {**ANSWER, "tool_calls": None}, USER]},
    "image": {"messages": [{"role": "user", "content": [{"type": "text", "text": "See "}, IMAGE]}]},
    "image in a tool's result": {
        "messages": [*ROUND[:2], {**ROUND[2], "content": [{"type": "text", "text": "See "}, IMAGE]}],
        "tools": [TOOL],
    },
    "prefix after an image": {
        "messages": [USER, ANSWER, {"role": "user", "content": [{"type": "text", "text": "<think>"}, IMAGE]}],
        "assistant_prefix": "I see",
    },
    "late system before an image": {
        "messages": [USER, ANSWER, {**DEVELOPER, "role": "system"}, {"role": "user", "content": [IMAGE]}]
    },
    "continue an image first": _continued(USER, _answer([IMAGE, {"type": "text", "text": "see"}])),
    "continue an image between": _continued(
        USER, _answer([{"type": "text", "text": "see"}, IMAGE, {"type": "text", "text": "there "}])
    ),
    "continue an image last": _continued(USER, _answer([{"type": "text", "text": "see"}, IMAGE])),
    "two users": {"messages": [USER, USER]},
}  # fmt: skip


def load(name: str) -> ChatTemplate:
    source = (DATA / "templates" / f"{name}.jinja").read_text(encoding="utf-8")
    return ChatTemplate(source, bos="<s>", eos="</s>", now=NOW)


def _outcome(template: ChatTemplate, request: dict[str, object]) -> dict[str, object]:
    try:
        prompt = compose(template, openai.parse(request))
    except StrataError as error:
        return {"error": error.kind.code, "message": error.message}
    _consistent(prompt)
    opening = prompt.opening.where + ("" if prompt.opening.family is None else f" {prompt.opening.family.open}")
    outcome: dict[str, object] = {
        "prompt": prompt.text[: prompt.header_end] + "⟦" + prompt.text[prompt.header_end :],
        "opening": opening,
    }
    return {**outcome, "notes": list(prompt.notes)} if prompt.notes else outcome


def _consistent(prompt: Prompt, said: str = "") -> None:
    places = [(span.start, span.end) for span in prompt.spans]
    assert all(start < end for start, end in places)
    assert all(before[1] <= after[0] for before, after in pairwise(places))
    assert not places or places[-1][1] <= len(prompt.text)
    for word in ("STRATAMARK", "CONTINUE_FINAL", "strataprobe"):
        assert word in said or word not in prompt.text


def _outcomes(name: str) -> str:
    template = load(name)
    outcomes = {label: _outcome(template, request) for label, request in CASES.items()}
    return json.dumps(outcomes, ensure_ascii=False, indent=1) + "\n"


@pytest.mark.parametrize("name", TEMPLATES)
def test_golden(name: str) -> None:
    golden = (DATA / "golden" / f"{name}.json").read_text(encoding="utf-8")
    assert json.loads(_outcomes(name)) == json.loads(golden)


# Properties

PROFILE = settings(max_examples=60, deadline=None, derandomize=True, database=None)
TEXT = st.text(st.characters(blacklist_categories=("Cs",)), max_size=40)
UNREPAIRED = ["plain", "trims", "trims_newlines", "always_opens", "own_header", "images", "only_parts", "channels"]


@pytest.mark.parametrize("name", ["plain", "opens_reasoning", "channels", "moves_system", "marker", "trims"])
@given(prefix=TEXT.filter(bool))
@PROFILE
def test_the_prefix_is_the_end_of_the_prompt(name: str, prefix: str) -> None:
    template = _cached(name)
    request = Request((Message("user", "Hello."),))
    bare = compose(template, Request(request.messages, assistant_prefix="x"))
    prompt = compose(template, Request(request.messages, assistant_prefix=prefix))
    assert prompt.text == bare.text[:-1] + prefix
    assert prompt.header_end == len(bare.text) - 1


@pytest.mark.parametrize("name", UNREPAIRED)
@given(text=TEXT, more=TEXT)
@PROFILE
def test_a_continued_prompt_begins_every_longer_rendering(name: str, text: str, more: str) -> None:
    """The prompt that continues `text` begins the full turn of `text + more`, unless that changes what is trimmed."""
    template = _cached(name)
    more = "." + more if name.startswith("trims") else more
    messages = (Message("user", "Hello."), Message("assistant", text))
    prompt = compose(template, Request(messages, continue_final=True))
    full = (messages[0], Message("assistant", text + more))
    whole = compose(template, Request(full, add_generation_prompt=False)).text
    if name.startswith("trims"):
        assert whole.startswith(prompt.text.rstrip())
    else:
        assert whole.startswith(prompt.text)
        assert prompt.text[prompt.header_end :] == text


@pytest.mark.parametrize("name", TEMPLATES)
@given(said=TEXT, answer=TEXT)
@PROFILE
def test_whatever_is_said_the_template_or_a_refusal_answers(name: str, said: str, answer: str) -> None:
    request = Request((Message("user", said), Message("assistant", answer)), continue_final=True)
    try:
        prompt = compose(_cached(name), request)
    except StrataError as error:
        assert error.message and error.hint
    else:
        _consistent(prompt, said + answer)
        assert prompt.text[prompt.header_end :].strip() == answer.strip() or "<think>" in answer


@given(mark=st.sampled_from(["CONTINUE_FINAL_MESSAGE_TAG", "STRATAMARK", "REASONING_MARK", "STRATAMARK0Z"]))
@PROFILE
def test_marks_may_be_said(mark: str) -> None:
    messages = (Message("user", mark), Message("assistant", f"{mark} {mark}"))
    prompt = compose(_cached("plain"), Request(messages, continue_final=True))
    assert prompt.text == f"<s><user>{mark}</user>\n<assistant>{mark} {mark}"


_CACHE: dict[str, ChatTemplate] = {}


def _cached(name: str) -> ChatTemplate:
    if name not in _CACHE:
        _CACHE[name] = load(name)
    return _CACHE[name]


# Refusals, each naming the message and what to do


@pytest.mark.parametrize(
    ("request_", "kind", "words"),
    [
        (Request((), continue_final=True), errors.NOTHING_TO_CONTINUE, "no messages"),
        (Request((Message("user", "x"),), continue_final=True), errors.NOTHING_TO_CONTINUE, "messages[0]"),
        (
            Request(openai.parse([USER, {**ANSWER, "tool_calls": [CALL]}]).messages, continue_final=True),
            errors.CONTINUE_TOOL_CALLS,
            "messages[1]",
        ),
        (
            Request((Message("assistant", "a"), Message("assistant", "b")), continue_final=True),
            errors.CONTINUE_TWO_ASSISTANTS,
            "messages[0] and messages[1]",
        ),
        (
            Request((Message("user", "a"), Message("assistant", "b")), assistant_prefix="c"),
            errors.PREFIX_AFTER_ASSISTANT,
            "messages[1]",
        ),
        (
            Request((Message("user", "a"),), assistant_prefix="c", response_prefix="d"),
            errors.CONFLICTING_OPTIONS,
            "response_prefix",
        ),
        (
            Request((Message("user", "a"),), assistant_prefix="c", add_generation_prompt=False),
            errors.CONFLICTING_OPTIONS,
            "add_generation_prompt",
        ),
    ],
)
def test_refused_before_any_work(request_: Request, kind: errors.Kind, words: str) -> None:
    with pytest.raises(StrataError) as caught:
        check(request_)
    assert caught.value.kind is kind
    assert words in caught.value.message
    assert caught.value.hint


def _refused(name: str, request: dict[str, object]) -> StrataError:
    with pytest.raises(StrataError) as caught:
        compose(load(name), openai.parse(request))
    return caught.value


@pytest.mark.parametrize("name", ["renders_reasoning", "empty_block", "opens_reasoning"])
def test_blanks_after_a_closed_block_stay(name: str) -> None:
    template = load(name)
    requests = [openai.parse(_continued(USER, _answer("<think>greet</think>" + text))) for text in ("", "\n  ")]
    closed, blank = (compose(template, request) for request in requests)
    assert blank.text == closed.text + "  "


def test_blanks_after_a_closed_block_are_trimmed_with_a_note() -> None:
    source = (
        "{% for m in messages %}<{{ m.role }}>"
        "{% if m.reasoning %}<think>{{ m.reasoning }}</think>{% endif %}{{ m.content | trim }}{% endfor %}"
    )
    request = openai.parse(_continued(USER, _answer("<think>greet</think>  ")))
    prompt = compose(ChatTemplate(source, now=NOW), request)
    assert prompt.text == "<user>Hello.<assistant><think>greet</think>"
    assert prompt.notes == ("the template trimmed 2 characters from the end of the continued message",)


def test_tools_that_the_template_refuses_are_named() -> None:
    source = "{% for t in tools or [] %}{{ t.function.title + '' }}{% endfor %}{{ messages[0].content }}"
    template = ChatTemplate(source, now=NOW)
    with pytest.raises(StrataError) as caught:
        compose(template, openai.parse({"messages": [USER, ANSWER, MORE], "tools": [TOOL]}))
    assert caught.value.param == "tools" and "no attribute 'title'" in caught.value.message


def test_a_call_that_the_template_drops_is_named_though_its_words_were_said() -> None:
    """The user names what the call looks for, the tool's definition its name."""
    asked = {"role": "user", "content": "What does a look at the sky show?"}
    request = openai.parse({"messages": [asked, *ROUND[1:]]})
    assert "messages[1]: the template leaves out the call of look" in compose(load("renders_reasoning"), request).notes


def test_a_rewritten_message_is_refused() -> None:
    error = _refused("rewrites", _continued(USER, _answer("three")))
    assert error.kind is errors.TEMPLATE_REWRITES_MESSAGE
    assert "messages[1]" in error.message and "rewrites it" in error.message


def test_a_repeated_message_is_refused() -> None:
    error = _refused("repeats", _continued(USER, ANSWER))
    assert error.kind is errors.TEMPLATE_REWRITES_MESSAGE
    assert "more than once" in error.message


def test_the_templates_own_refusal_names_the_message() -> None:
    error = _refused("forbids_system", {"messages": [USER, ANSWER, USER, USER, USER]})
    assert error.kind is errors.TEMPLATE_RAISED
    assert error.message == "messages[3]: the chat template says: user and assistant must take turns"
    assert error.param == "messages[3]"


def test_reasoning_without_a_place_is_refused() -> None:
    error = _refused("plain", _continued(USER, _answer(" ", reasoning_content="hm")))
    assert error.kind is errors.NO_PLACE_FOR_REASONING
    assert error.param == "messages[1].reasoning_content"


def test_an_image_without_a_place_is_refused() -> None:
    error = _refused("plain", {"messages": [USER, ANSWER, {"role": "user", "content": [IMAGE]}]})
    assert error.kind is errors.IMAGES_NOT_SUPPORTED
    assert error.param == "messages[2].content"


def test_a_system_message_without_a_place_is_refused() -> None:
    error = _refused("forbids_system", {"messages": [USER, ANSWER, SYSTEM]})
    assert error.kind is errors.NO_PLACE_FOR_SYSTEM
    assert error.param == "messages[2]"


# What comes with a prompt


def test_spans_show_what_was_said() -> None:
    messages = (Message("system", "Be brief."), Message("user", "Hello."), Message("assistant", "Good day"))
    prompt = compose(load("plain"), Request(messages, continue_final=True, assistant_prefix="!"))
    stretches = [(prompt.text[span.start : span.end], span.kind) for span in prompt.spans]
    assert stretches == [
        ("Be brief.", "message"),
        ("Hello.", "message"),
        ("Good day", "message"),
        ("!", "prefix"),
    ]
    assert prompt.kind == "continuation"


def test_output_starts_where_the_template_leaves_it_not_where_the_user_says() -> None:
    said = Message("user", "<think> never closed")
    assert compose(load("plain"), Request((said,))).opening == Opening("content", None)
    opening = compose(load("opens_reasoning"), Request((said,))).opening
    assert opening.where == "reasoning" and opening.family is not None and opening.family.close == "</think>"
    assert compose(load("opens_reasoning"), Request((said,), assistant_prefix="<think>")).opening.where == "content"


def test_a_history_of_blanks_is_no_obstacle() -> None:
    prompt = compose(load("always_opens"), Request((Message("user", " "),), assistant_prefix="x"))
    assert prompt.text == "<|user|>\n\n <|eot|><|assistant|>\n\nx"


def test_parts_with_images_are_values_too() -> None:
    parts = (TextPart("see"), ImagePart("data:,"))
    prompt = compose(load("images"), Request((Message("user", parts),)))
    assert prompt.text == "<user>see<picture/><end><assistant>"


def test_two_thousand_messages_cost_as_many_times_more() -> None:
    template = load("plain")
    for count in (20, 2000):
        messages = tuple(Message(("user", "assistant")[index % 2], f"message {index} " * 20) for index in range(count))
        prompt = compose(template, Request((*messages, Message("user", "last")), assistant_prefix="x"))
        assert len(prompt.spans) == count + 2


def _write() -> None:
    (DATA / "golden").mkdir(exist_ok=True)
    for name in TEMPLATES:
        (DATA / "golden" / f"{name}.json").write_text(_outcomes(name), encoding="utf-8")


if __name__ == "__main__":
    _write()
