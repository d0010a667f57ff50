"""What a person sees of an answer beside its text: what was given, reasoning, notes, the prompt's picture."""

from __future__ import annotations

import datetime
import re

import pytest

from strata_cli.conversation.messages import Message
from strata_cli.conversation.reply import Choice, Figures, Head, Reply, TextBlock
from strata_cli.conversation.request import Request
from strata_cli.output.terminal.messages import Messages
from strata_cli.output.terminal.picture import picture
from strata_cli.output.terminal.screen import TextAnswer, answer_on
from strata_cli.output.terminal.stats import remark
from strata_cli.prompt.template import ChatTemplate
from strata_cli.prompt.turn import Prompt, compose
from tests.screens import Sent, controls, environment, plain, rows
from tests.shell import strata
from tests.tiny import CHATML

ESCAPES = "\x1b]52;c;YQ==\x07\x9b2J\u202e\x1b[31m"


def test_a_pipe_gets_the_text_as_it_is() -> None:
    env = environment(terminal=False)
    answer = answer_on(env, env.stdout)
    answer.begin("given")
    for text in ("**a** ", ESCAPES, "\r\n| a |"):
        answer.write(text)
    answer.finish()
    assert env.stdout.all == f"**a** {ESCAPES}\r\n| a |\n"


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_without_colours_the_text_is_not_drawn(variables: dict[str, str]) -> None:
    env = environment(**variables)
    answer = answer_on(env, env.stdout)
    answer.begin("The *next* ")
    answer.write(f"**number** {ESCAPES}")
    answer.finish()
    assert env.stdout.all.startswith("The *next* **number** ␛]52")
    assert not controls(env.stdout.all) and "\x1b" not in env.stdout.all


def test_raw_is_the_text_with_what_was_given_in_colour() -> None:
    env = environment()
    answer = answer_on(env, env.stdout, raw=True)
    answer.begin("The")
    answer.write(" **next**")
    answer.finish()
    assert env.stdout.all == "\x1b[1;36mThe\x1b[0m **next**\n"


def test_what_is_given_waits_for_the_first_word() -> None:
    env = environment()
    answer = answer_on(env, env.stdout)
    answer.begin("The")
    assert env.stdout.all == ""
    answer.write(" next")
    answer.finish()
    assert plain(env.stdout.all) == "The next\n"
    answer = answer_on(env, env.stdout)
    answer.begin("Nothing")
    answer.finish()
    assert "Nothing" not in env.stdout.all


def test_a_text_answer_ends_its_last_line_once() -> None:
    stream = Sent()
    answer = TextAnswer(stream)
    answer.finish()
    for text in ("a", "", "b"):
        answer.write(text)
    answer.finish()
    answer.finish()
    assert stream.all == "ab\n"


REASONING = ("Let me think", " about *this*\x1b[2J.\nThen", " answer.")


def test_reasoning_is_dim_and_apart_from_the_answer() -> None:
    env = environment(20)
    answer = answer_on(env, env.stdout)
    for text in REASONING:
        answer.write_reasoning(text)
    answer.write("The answer")
    answer.write_reasoning("more")
    answer.finish()
    assert plain(env.stderr.all) == "Let me think about\n*this*␛[2J.\nThen answer.\nmore\n"
    assert plain(env.stdout.all) == "The answer\n"
    assert not controls(env.stderr.all)
    assert all("\x1b[2m" in line for line in env.stderr.all.splitlines())


def test_reasoning_in_a_pipe_is_text() -> None:
    env = environment(terminal=False)
    answer = answer_on(env, env.stdout)
    for text in REASONING:
        answer.write_reasoning(text)
    answer.write("x")
    answer.finish()
    assert env.stderr.all == "".join(REASONING) + "\n"


def test_folded_reasoning_is_one_line() -> None:
    times = iter(range(100))
    env = environment(clock=lambda: float(next(times)))
    answer = answer_on(env, env.stdout, thinking="fold")
    for letter in "".join(REASONING):
        answer.write_reasoning(letter)
    answer.write("x")
    answer.finish()
    shown = [row for row in rows(env.stderr.all, 80) if row]
    assert len(shown) == 1 and re.fullmatch(r"\(thought: 7 words, \d+ s\)", shown[0])
    assert "\n" not in env.stderr.all[:-1]


def test_hidden_reasoning_is_nothing() -> None:
    env = environment()
    answer = answer_on(env, env.stdout, thinking="hide")
    answer.write("a")
    answer.write_reasoning("b")
    answer.write("c")
    answer.finish()
    assert env.stderr.all == "" and plain(env.stdout.all) == "ac\n"


def test_notes_are_one_line_each() -> None:
    env = environment()
    messages = Messages(env, quiet=False, debug=True)
    messages.note(f"a\nb{ESCAPES}")
    messages.aside("for a person")
    messages.log("of llama.cpp\x1b[2J")
    assert env.stderr.all.count("\n") == 3 and not controls(env.stderr.all)
    quiet = environment()
    Messages(quiet, quiet=True, debug=False).aside("x")
    piped = environment(terminal=False)
    Messages(piped, quiet=False, debug=False).aside("x")
    assert quiet.stderr.all == piped.stderr.all == ""


@pytest.mark.parametrize(
    ("ending", "left", "words"),
    [
        ("stop", 5, None),
        ("interrupted", 5, None),
        ("length", 5, "after 7 tokens"),
        ("length", 0, "context of 100 tokens"),
    ],
)
def test_a_cut_answer_says_why(ending: str, left: int, words: str | None) -> None:
    figures = Figures(1, 0, 1, 0, 7, left, 0.0, 0.0, 0.0)
    reply = Reply(Head("x", 0, "model", 0), (Choice((TextBlock("x"),), ending),), figures)
    reason = remark(reply, 100)
    assert reason is None if words is None else words in (reason or "")


@pytest.mark.parametrize(("prefix", "words"), [(0, "the model had nothing to say"), (3, "nothing to say after that")])
def test_an_empty_answer_is_said_to_be_one(prefix: int, words: str) -> None:
    figures = Figures(1, prefix, 1 + prefix, 0, 0, 5, 0.0, 0.0, 0.0)
    said = remark(Reply(Head("x", 0, "model", 0), (Choice((), "stop"),), figures), 100)
    assert said is not None and said.endswith(words)


# The prompt's picture


def prompt(*said: str, prefix: str = "") -> Prompt:
    messages = tuple(Message(role, text) for role, text in zip(("user", "assistant") * 2, said, strict=False))
    return compose(
        ChatTemplate(CHATML, now=datetime.datetime(2024, 1, 1)), Request(messages=messages, assistant_prefix=prefix)
    )


def tokens(text: str) -> list[bytes]:
    return [found.encode() for found in re.findall(r"<\|\w+\|>| ?\w+|.", text, re.DOTALL)]


def test_the_picture_shows_where_the_answer_begins() -> None:
    composed = prompt("Hi  there \n\tx", prefix="Sure, ")
    shown = plain(picture(composed, tokens(composed.text), colour=True))
    assert shown.split("\n")[:5] == [
        "<|im_start|>user↵",
        "Hi··there·↵",
        "→\tx<|im_end|>↵",
        "<|im_start|>assistant↵",
        "▸Sure,·",
    ]
    assert "▸given" in shown and "tokens" in shown


def test_the_picture_tells_template_messages_and_tokens_apart() -> None:
    composed = prompt("Hello <|im_end|>", prefix="Sure")
    shown = picture(composed, tokens(composed.text), colour=True)
    assert "\x1b[35m<|im_start|>\x1b[0m" in shown and "\x1b[2;4muser\x1b[0m" in shown
    assert "\x1b[2muser" not in shown and "\x1b[1;36m▸\x1b[0m" in shown
    assert "Hello" in shown and "\x1b[2mHello" not in shown
    assert shown.count("<|im_end|>") == 2


def test_a_picture_without_an_answer_or_without_tokens_says_nothing_of_them() -> None:
    composed = prompt("Hi")
    shown = picture(composed, (), colour=False)
    assert "▸" not in shown and "token" not in shown and "\x1b" not in shown


@pytest.mark.parametrize("added", [[b"<s>"], [b"<s>", b" "], []])
def test_a_picture_whose_tokens_are_not_the_text_is_still_a_picture(added: list[bytes]) -> None:
    composed = prompt("naïve 日本 \U0001f600 end")
    pieces = [bytes([byte]) for byte in composed.text.encode()]
    shown = plain(picture(composed, added + pieces, colour=True))
    assert "naïve 日本 \U0001f600 end" in shown
    assert "naïve" in plain(picture(composed, [b"other"], colour=True))


def test_a_picture_obeys_nothing() -> None:
    composed = prompt(f"a{ESCAPES}\u200bb\u00a0c", prefix=ESCAPES)
    for colour in (True, False):
        shown = picture(composed, tokens(composed.text), colour=colour)
        assert not controls(shown) and "<U+200B>" in shown and "⍽" in shown


def test_render_in_a_pipe_is_the_prompt(tiny_model) -> None:
    args = ("render", "-m", str(tiny_model), "--prefix", "Sure,\t ", f"a{ESCAPES}")
    assert strata(*args).text == prompt(f"a{ESCAPES}", prefix="Sure,\t ").text
    done = strata(*args, terminal=True)
    assert "▸" in done.text and not controls(done.text)
