"""A conversation under way, and the JSON list that keeps it."""

from __future__ import annotations

import json

import pytest

from strata_cli.conversation import saved
from strata_cli.conversation.dialogue import Dialogue, Draft
from strata_cli.conversation.messages import ImagePart, Message, TextPart, ToolCall
from strata_cli.errors import StrataError

SYSTEM, USER = Message("system", "Be brief."), Message("user", "Hi")
DRAFT = Draft((1, 2, 3), b"\xc3")
STOPPED = Dialogue((SYSTEM, USER), prefix="He").answered("Hell", DRAFT)


def test_an_answer_takes_the_prefix_and_may_be_unfinished() -> None:
    assert (STOPPED.answer, STOPPED.unfinished, STOPPED.draft, STOPPED.prefix) == ("Hell", True, DRAFT, "")
    whole = STOPPED.answered("Hello.")
    assert whole.messages == (SYSTEM, USER, Message("assistant", "Hello."))
    assert not whole.unfinished and whole.draft is None


def test_what_is_said_next_ends_an_unfinished_answer() -> None:
    said = STOPPED.say("And?")
    assert said.messages[-2:] == (Message("assistant", "Hell"), Message("user", "And?"))
    assert not said.unfinished and said.draft is None


def test_an_edited_answer_has_no_tokens_of_its_own() -> None:
    edited = STOPPED.edited("Howdy")
    assert (edited.answer, edited.unfinished, edited.draft) == ("Howdy", True, None)
    assert STOPPED.edited("Hell") is STOPPED
    assert STOPPED.edited("").messages == (SYSTEM, USER)
    assert not STOPPED.edited("").unfinished


def test_an_answer_keeps_what_else_its_message_holds() -> None:
    message = Message("assistant", (TextPart("a"), TextPart("b")), reasoning="why", name="x")
    dialogue = Dialogue((USER, message))
    assert dialogue.answer == "ab"
    assert dialogue.answered("abc").messages[-1] == Message("assistant", "abc", reasoning="why", name="x")


def test_undo_takes_a_turn_and_clear_takes_all() -> None:
    two = STOPPED.say("And?").answered("So.")
    assert two.undone().messages == STOPPED.messages
    assert two.undone().undone().messages == (SYSTEM,)
    alone = Dialogue((SYSTEM,))
    assert alone.undone() is alone
    assert two.cleared() == alone
    assert (two.turns, alone.turns, two.asked, alone.asked) == (2, 0, True, False)


def test_undo_and_retry_keep_a_prefix_that_waits() -> None:
    waiting = Dialogue((USER, Message("assistant", "x")), prefix="He")
    assert waiting.undone().prefix == waiting.retried().prefix == waiting.edited("y").prefix == "He"


def test_the_system_message_is_replaced_and_taken_away() -> None:
    assert STOPPED.with_system("Sing.").messages[0] == Message("system", "Sing.")
    assert STOPPED.with_system("Sing.").system == "Sing."
    without = STOPPED.with_system("")
    assert without.messages == STOPPED.messages[1:] and without.system is None
    assert without.unfinished and without.draft is None


def test_only_an_answer_can_be_opened() -> None:
    assert Dialogue((USER,)).opened() == Dialogue((USER,))
    assert STOPPED.opened() is STOPPED
    assert Dialogue((USER, Message("assistant", "x"))).opened().unfinished


# The file

RICH = (
    SYSTEM,
    Message("user", (TextPart("look"), ImagePart("data:image/png;base64,AA=="))),
    Message("assistant", None, tool_calls=(ToolCall("f", '{"a": 1}', "1"), ToolCall("g", {"b": "ü"}))),
    Message("tool", "42", tool_call_id="1", name="f"),
    Message("assistant", "Ça va \u2028 \x1b[31m", reasoning="why", extra={"own": {"x": [1]}}),
)


def test_every_message_comes_back() -> None:
    loaded = saved.load(saved.dump(Dialogue(RICH, unfinished=True)), "s.json")
    assert loaded.unfinished
    assert loaded.messages[:2] + loaded.messages[3:] == RICH[:2] + RICH[3:]
    assert [call.name for call in loaded.messages[2].tool_calls] == ["f", "g"]
    assert saved.load(saved.dump(loaded), "s.json") == loaded


def test_a_message_stands_on_a_line_and_the_last_one_says_that_it_goes_on() -> None:
    lines = saved.dump(STOPPED).decode().splitlines()
    assert lines[0] == "[" and lines[-1] == "]" and len(lines) == 5
    assert json.loads(lines[3]) == {"role": "assistant", "content": "Hell", "unfinished": True}
    assert b"unfinished" not in saved.dump(STOPPED.answered("Hello."))


def test_half_a_surrogate_pair_survives() -> None:
    odd = Dialogue((Message("user", "a\ud800b"),))
    assert saved.load(saved.dump(odd), "s.json") == odd


def test_an_empty_file_is_an_empty_conversation() -> None:
    assert saved.load(b"", "s.json") == saved.load(b" \n", "s.json") == Dialogue()
    assert saved.load(saved.dump(Dialogue()), "s.json") == Dialogue()


def test_only_a_final_answer_can_be_unfinished() -> None:
    assert not saved.load(b'[{"role": "user", "content": "x", "unfinished": true}]', "s.json").unfinished
    assert not saved.load(b'[{"role": "assistant", "content": "x", "unfinished": "yes"}]', "s.json").unfinished


@pytest.mark.parametrize("data", [b"{", b'{"messages": []}', b"[1]", b'[{"content": "x"}]', b"\xff\x00", b'"x"'])
def test_a_broken_file_is_named(data: bytes) -> None:
    with pytest.raises(StrataError) as refused:
        saved.load(data, "s.json")
    assert refused.value.kind.code == "session_invalid"
    assert "left as it is" in (refused.value.hint or refused.value.kind.remedy)
