"""The REPL's commands over the tiny model, without a terminal."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from strata_cli.cli.answer import Conversation
from strata_cli.cli.commands import COMMANDS, Leave
from strata_cli.conversation.dialogue import Dialogue
from strata_cli.conversation.messages import Message
from strata_cli.errors import MODEL_RUN_FAILED, OUTPUT_FAILED, StrataError
from strata_cli.output.terminal.picture import picture
from strata_cli.store.sessions import SessionFile
from tests import tiny
from tests.desk import Desk, desk_over

# Refuses a conversation in which two messages of one role follow each other.
STRICT = (
    "{% for message in messages %}{% if loop.index0 and message.role == messages[loop.index0 - 1].role %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}<|im_start|>{{ message.role }}\n{{ message.content }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture
def desk(endless_model: Path) -> Iterator[Desk]:
    desk = desk_over(endless_model)
    yield desk
    desk.talk.conversation.engine.close()


@pytest.fixture
def short(tiny_model: Path) -> Iterator[Desk]:
    """A desk whose model ends its answers by itself."""
    desk = desk_over(tiny_model)
    yield desk
    desk.talk.conversation.engine.close()


# Stopping and going on


def test_a_stopped_answer_goes_on_from_its_own_tokens(desk: Desk) -> None:
    """Cut after every one of the first tokens: the same ids as never stopped, and one token evaluated again."""
    desk.limit(40)
    desk("Hi")
    whole = desk.talk.dialogue
    assert whole.draft is not None
    incomplete = 0
    for tokens in range(1, 30):
        desk.limit(tokens)
        desk("/retry")
        draft = desk.talk.dialogue.draft
        assert draft is not None
        incomplete += bool(draft.pending)
        desk.limit(40 - tokens)
        desk("/continue")
        assert desk.talk.prefill is not None
        assert (desk.talk.prefill.total, desk.talk.prefill.reused) == (len(draft.tokens), len(draft.tokens) - 1)
        assert desk.talk.dialogue == whole
    assert incomplete, "no cut fell into a character"


def test_ctrl_c_keeps_the_answer_and_says_how_to_go_on(desk: Desk) -> None:
    desk.limit(None)
    desk.stop_after(5)
    said = desk("Hi")
    assert "stopped; /continue goes on" in said
    assert desk.unfinished and desk.talk.dialogue.draft is not None
    assert not desk.talk.environment.interrupt
    begun = desk.answer
    assert desk.out.shown.rstrip("\n") and begun
    draft = desk.talk.dialogue.draft
    desk.stop_after(5)
    desk("/continue")
    assert desk.talk.prefill is not None and desk.talk.prefill.reused == len(draft.tokens) - 1
    assert desk.answer is not None and desk.answer.startswith(begun) and len(desk.answer) > len(begun)


def test_ctrl_c_while_the_prompt_is_evaluated_keeps_the_question(desk: Desk) -> None:
    plain = desk.talk.conversation.timeline.prefill

    def stopped(tokens, progress=None):
        desk.talk.environment.interrupt.set()
        return plain(tokens, progress)

    desk.talk.conversation.timeline.prefill = stopped  # type: ignore[method-assign]
    assert "stopped before the answer began; /retry" in desk("Hi")
    assert desk.talk.dialogue == Dialogue((Message("user", "Hi"),))
    desk.talk.conversation.timeline.prefill = plain  # type: ignore[method-assign]
    desk("/retry")
    assert desk.answer


def test_a_wait_for_the_terminal_that_a_signal_ends_loses_nothing(desk: Desk) -> None:
    from strata_cli.errors import Interrupted

    def blocked(text: str) -> None:
        desk.talk.environment.interrupt.set()
        desk.out.on_write = lambda text: None
        raise Interrupted

    desk("Hi")
    desk.out.on_write = blocked
    desk.limit(None)
    desk("/retry")
    assert desk.unfinished and desk.talk.dialogue.draft is not None
    assert len(desk.talk.dialogue.draft.tokens) > 10


def test_a_finished_answer_can_be_continued(short: Desk) -> None:
    short.limit(None)
    short("Hi")
    assert not short.unfinished
    before = short.answer
    short.limit(5)
    short("/continue")
    assert short.answer is not None and before is not None and short.answer.startswith(before)


def test_what_follows_evaluates_only_what_is_new(desk: Desk) -> None:
    desk("Hello there, who are you and what is the next number?")
    first = len(desk.talk.conversation.timeline.tokens)
    desk("And?")
    prefill = desk.talk.prefill
    assert prefill is not None
    # The text of random bytes is not always tokenised as it was sampled.
    assert prefill.reused >= first - 12 and prefill.total > first


def test_after_an_edit_only_what_changed_is_evaluated(desk: Desk) -> None:
    desk.edits = [lambda _: "the next number is 1", lambda _: "the next number is the"]
    desk("Hi", "/edit", "/continue")
    assert desk.answer is not None and desk.answer.startswith("the next number is 1")
    held = desk.talk.conversation.timeline.tokens
    desk("/edit")
    assert desk.unfinished and desk.talk.dialogue.draft is None
    prompt = desk.talk.conversation.engine.tokenize(desk.talk.conversation.compose(desk.talk.request()).text)
    common = next(i for i, pair in enumerate(zip(held, prompt, strict=False)) if pair[0] != pair[1])
    assert 0 < common < len(prompt)
    desk("/continue")
    assert desk.talk.prefill is not None
    assert (desk.talk.prefill.total, desk.talk.prefill.reused) == (len(prompt), common)


def test_after_undo_only_the_new_question_is_evaluated(desk: Desk) -> None:
    desk("Hello there")
    after_first = desk.talk.dialogue.messages
    desk("One question")
    desk("/undo")
    assert desk.talk.dialogue.messages == after_first
    prompt = desk.talk.conversation.compose(desk.talk.standing()).text
    shared = len(desk.talk.conversation.engine.tokenize(prompt))
    desk("Another question")
    assert desk.talk.prefill is not None and desk.talk.prefill.reused >= shared


def test_an_answer_that_breaks_off_is_kept(desk: Desk) -> None:
    """The model fails in the middle, or the terminal is gone: what came is there, and goes on."""
    for error in (StrataError(MODEL_RUN_FAILED, "it broke"), RuntimeError("a fault"), MemoryError()):
        seen = []

        def fail(text: str, seen=seen, error=error) -> None:
            seen.append(text)
            if len(seen) == 6:
                desk.out.on_write = lambda text: None
                raise error

        desk.out.on_write = fail
        desk("Hi" if desk.answer is None else "/retry")
        assert desk.unfinished and desk.answer
        desk("/continue")
        assert desk.answer


def test_retry_keeps_the_answer_when_no_new_one_comes(desk: Desk) -> None:
    desk("Hi")
    before = desk.talk.dialogue

    def broken(*_: object) -> None:
        raise StrataError(MODEL_RUN_FAILED, "it broke")

    plain = desk.talk.conversation.timeline.prefill
    desk.talk.conversation.timeline.prefill = broken  # type: ignore[assignment, method-assign]
    assert "it broke" in desk("/retry")
    assert desk.talk.dialogue == before
    desk.talk.conversation.timeline.prefill = plain  # type: ignore[method-assign]
    desk("/regen")
    assert desk.answer == before.answer


# Commands


INTERFACE = (
    "/continue /edit /prefix /undo /retry /regen /system /set /think /tokens /prompt /copy /save /load /model /clear "
    "/help /exit /bye"
)


def test_every_command_of_the_interface_is_there(desk: Desk) -> None:
    names = [name for command in COMMANDS for name in command.names]
    assert sorted(names) == sorted(INTERFACE.split(" "))
    said = desk("/help")
    assert all(f"{name}" in said for name in names)


def test_an_unknown_command_suggests_and_is_never_sent(desk: Desk) -> None:
    for typed in ("/undp", "/", "/home/me/notes.txt is what?", "/Continue", "/tokens\nfoo", "/helpme"):
        said = desk(typed)
        assert said.startswith("strata: ") and said.count("\n") == 1, typed
    assert "did you mean /undo?" in desk("/undp")
    assert "//" in desk("/nothing")
    assert desk.talk.dialogue == Dialogue()


def test_two_slashes_send_one(desk: Desk) -> None:
    desk("//etc/passwd is\nwhat?")
    assert desk.talk.dialogue.messages[0] == Message("user", "/etc/passwd is\nwhat?")


def test_blank_input_is_nothing(desk: Desk) -> None:
    desk("", "  ", "\n\n")
    assert desk.talk.dialogue == Dialogue()


def test_a_prefix_is_kept_to_the_last_space(desk: Desk) -> None:
    for typed, prefix in (
        ("/prefix  two before", " two before"),
        ("/prefix after ", "after "),
        ("/prefix ```python\n", "```python\n"),
        ("/prefix\nnext line", "next line"),
        ("/prefix\ttab", "tab"),
        ("/prefix", ""),
        ("/prefix ", ""),
        ("/prefix  ", " "),
    ):
        desk(typed)
        assert desk.talk.dialogue.prefix == prefix, typed
    assert "ends in a space" in desk("/prefix Sure, ", "Hi")
    assert desk.answer is not None and desk.answer.startswith("Sure, ")
    assert desk.talk.dialogue.prefix == ""


def test_a_prefix_follows_an_unfinished_answer(desk: Desk) -> None:
    desk("Hi")
    begun = desk.answer
    desk("/prefix  and so", "/continue")
    assert begun is not None and desk.answer is not None and desk.answer.startswith(begun + " and so")


def test_nothing_to_do_is_said(desk: Desk) -> None:
    for typed in ("/continue", "/edit", "/undo", "/retry", "/copy", "/prompt", "/save", "/load"):
        said = desk(typed)
        assert said.startswith("strata: ") and said.count("\n") == 1, typed
    for typed in ("/continue now", "/undo 2", "/exit please"):
        assert "takes nothing after it" in desk(typed)


def test_leaving(desk: Desk) -> None:
    for typed in ("/exit", "/bye", "/exit "):
        with pytest.raises(Leave):
            desk(typed)


def test_edits(desk: Desk) -> None:
    desk("Hi")
    before = desk.talk.dialogue

    def fails(_: str) -> str:
        raise StrataError(MODEL_RUN_FAILED, "the editor broke")

    desk.edits = [lambda text: text, fails, lambda _: "", lambda _: "New"]
    assert "nothing was changed" in desk("/edit")
    assert "the editor broke" in desk("/edit")
    assert desk.talk.dialogue == before
    assert "begins it again" in desk("/edit")
    assert desk.answer is None
    desk("/continue", "/edit")
    assert (desk.answer, desk.unfinished) == ("New", True)


def test_clear_can_be_taken_back_until_something_is_said(desk: Desk) -> None:
    desk("/system Be brief.", "Hi")
    before = desk.talk.dialogue
    assert "/undo" in desk("/clear")
    assert desk.talk.dialogue.messages == (Message("system", "Be brief."),)
    desk("/clear", "/undo")
    assert desk.talk.dialogue == before
    desk("/clear", "New", "/undo", "/undo")
    assert desk.talk.dialogue.messages == (Message("system", "Be brief."),)


def test_a_system_message_can_change_at_any_time(desk: Desk) -> None:
    desk("Hi", "/system Sing.")
    assert desk.talk.dialogue.system == "Sing."
    desk("/continue", "And?")
    assert "Sing." in desk.talk.conversation.compose(desk.talk.standing()).text
    assert "it was: Sing." in desk("/system")
    assert desk.talk.dialogue.system is None


NONSENSE = """
temperature abc|temp nan|temp inf|temp -1|temp 0x10|temp 1 2|n -3|n 1e400|top_k 1.5|top_k 99999999999999999999|top_p 2
seed -1|seed 1.5|seed 9999999999|foo 1|temprature 1|repeat_penalty 0|stop "open
"""


@pytest.mark.parametrize("typed", NONSENSE.strip().replace("\n", "|").split("|"))
def test_nonsense_settings_change_nothing(desk: Desk, typed: str) -> None:
    before = desk.talk.sampling
    said = desk(f"/set {typed}")
    assert said.startswith("strata: ") and said.count("\n") == 1
    assert desk.talk.sampling == before


def test_settings(desk: Desk) -> None:
    desk("/set temp 1.5", "/set top-k 7", "/set n 3", "/set seed 4294967294", '/set stop "a b" c', "/set min_p 1e-3")
    sampling = desk.talk.sampling
    assert (sampling.temperature, sampling.top_k, sampling.max_tokens, sampling.seed) == (1.5, 7, 3, 4294967294)
    assert (sampling.stop, sampling.min_p) == (("a b", "c"), 0.001)
    assert "top_k" in desk("/set") and "  temperature        1.5" in desk("/set")
    desk("Hi")
    desk("/set temp", "/set stop")
    assert desk.talk.sampling.temperature is None and desk.talk.sampling.stop == ()
    assert "did you mean top_k?" in desk("/set topk 3")


def test_thinking(desk: Desk) -> None:
    assert "thinking: auto" in desk("/think")
    assert "off" in desk("/think off")
    assert desk.talk.template_kwargs == {"enable_thinking": False}
    assert "off" in desk("/think")
    assert "strata: " in desk("/think hard")
    desk("/think on")
    assert desk.talk.request().template_kwargs == {"enable_thinking": True}
    desk("/think auto")
    assert desk.talk.template_kwargs == {}


def test_tokens_and_prompt(desk: Desk) -> None:
    assert "context: 0 of 2000 tokens used, 2000 left" in desk("/tokens")
    desk("/prefix the next", "Hi")
    said = desk("/tokens")
    total = len(desk.talk.dialogue.draft.tokens) if desk.talk.dialogue.draft else 0
    assert "assistant prefill: 2 tokens (prompt " in said and f"context: {total} of 2000 tokens used" in said
    desk("/prompt")
    shown, _, legend = desk.out.shown.rstrip("\n").rpartition("\n")
    prompt = desk.talk.conversation.compose(desk.talk.request())
    assert shown == picture(prompt, (), colour=False).rstrip("\n").rpartition("\n")[0]
    assert shown.startswith("<|im_start|>user↵\nHi<|im_end|>↵\n<|im_start|>assistant↵\n▸the next")
    assert legend.endswith(" tokens")


def test_the_prompt_of_a_finished_conversation_is_the_history(short: Desk) -> None:
    short.limit(None)
    short("Hi", "/prompt")
    assert "<|im_end|>↵\n\n" in short.out.shown and "▸" not in short.out.shown


def test_copy_goes_to_the_terminal_where_there_is_no_display(desk: Desk) -> None:
    desk("/prefix Ça va", "Hi")
    said = desk("/copy")
    assert "OSC 52" in said and desk.answer is not None
    coded = base64.b64encode(desk.answer.encode()).decode()
    assert desk.out.shown == f"\x1b]52;c;{coded}\x07"
    desk.out.terminal = False
    assert "there is no clipboard" in desk("/copy") and desk.out.shown == ""
    desk.out.terminal, desk.talk.environment.variables = True, {"TERM": "dumb"}
    assert "there is no clipboard" in desk("/copy") and desk.out.shown == ""


def test_copy_by_a_program(desk: Desk, tmp_path: Path) -> None:
    program = tmp_path / "xclip"
    program.write_text(f"#!/bin/sh\ncat > {tmp_path}/copied\n")
    program.chmod(0o755)
    desk.talk.environment.variables = {"DISPLAY": ":0", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    desk("Hi")
    assert "xclip" in desk("/copy")
    assert desk.answer is not None and (tmp_path / "copied").read_bytes() == desk.answer.encode()


def test_what_the_model_says_is_shown_and_never_obeyed(desk: Desk) -> None:
    desk("/prefix a\x1b[31m\x9b2J\x07\rb", "Hi")
    assert "a␛[31m<U+009B>2J␇␍b" in desk.out.shown
    desk("/prompt")
    assert "\x1b" not in desk.out.shown and "\x9b" not in desk.out.shown
    said = desk("/system \x1b[2Jx", "/system")
    assert "\x1b" not in said
    assert "\x1b" not in desk("/load \x1b[2Jx") and "\x1b" not in desk("/\x1b[2Jx")


def test_the_toolbar_fits_every_width(desk: Desk) -> None:
    desk("Hi")
    assert "unfinished: /continue" in desk.talk.toolbar(120)
    assert desk.talk.toolbar(120).startswith("tiny on CPU · context ")
    for width in range(130):
        assert len(desk.talk.toolbar(width)) <= width
    used = desk.talk.used()
    assert used is not None and f"{used:,} used, {2000 - used:,} left" in desk.talk.toolbar(40)
    desk("/clear")
    assert "0 used, 2,000 left" in desk.talk.toolbar(80)


# Errors


def test_a_full_context_keeps_everything_and_names_the_ways_out(endless_model: Path) -> None:
    desk = desk_over(endless_model, context=100)
    desk.limit(30)
    desk("Hi")
    before = desk.talk.dialogue
    said = desk("x" * 400)
    assert "more than the context of 100" in said
    assert all(way in said for way in ("/undo", "/clear", "-c"))
    assert desk.talk.dialogue.messages == (*before.messages, Message("user", "x" * 400))
    desk("/undo")
    assert desk.talk.dialogue.messages == before.messages
    desk.limit(None)
    said = desk("Go on")
    assert "the context of 100 tokens is full" in said and "/undo" in said
    assert desk.unfinished
    assert "1 more than the context" in desk("/continue")
    assert "0 left" in desk.talk.toolbar(80)
    desk("/undo", "/undo")
    desk.limit(5)
    desk("Hi")
    assert desk.answer
    desk.talk.conversation.engine.close()


def test_a_template_that_refuses_ends_nothing(tmp_path: Path) -> None:
    desk = desk_over(tiny.write(tmp_path / "strict.gguf", STRICT, endless=True))
    desk("Hi")
    odd = Dialogue((Message("user", "a"), Message("tool", "b"), Message("tool", "c")))
    desk.talk.change(odd)
    said = desk("/retry")
    assert said.startswith("strata: ") and said.count("\n") == 1
    assert desk.talk.dialogue == odd
    assert desk.talk.toolbar(80)
    desk("/clear", "Hi")
    assert desk.answer
    desk.talk.conversation.engine.close()


def test_a_fault_of_ours_is_one_line(desk: Desk) -> None:
    desk("Hi")
    before = desk.talk.dialogue
    desk.edits = []
    assert desk("/edit").startswith("strata: internal error: IndexError: ")
    assert desk.talk.dialogue == before
    desk("And?")
    assert desk.talk.dialogue.turns == 2


def test_text_that_no_vocabulary_spells_is_refused_and_can_be_undone(desk: Desk) -> None:
    assert desk("a\0b").startswith("strata: ")
    desk("/undo", "Hi")
    assert desk.answer


# Models


def test_another_model_and_back(desk: Desk, tmp_path: Path, endless_model: Path) -> None:
    other = tiny.write(tmp_path / "other.gguf", seed=3)
    desk("Hi")
    begun = desk.answer
    assert "answers from here on" in desk(f"/model {other}")
    assert desk.talk.conversation.engine.info.path == str(other)
    assert desk.talk.dialogue.draft is None and desk.unfinished
    desk("/continue")
    assert desk.answer is not None and begun is not None and desk.answer.startswith(begun)
    assert str(other) in desk("/model")
    desk(f"/model {endless_model}", "And?")
    assert desk.talk.dialogue.turns == 2 and desk.answer


def test_a_model_that_cannot_be_opened_leaves_the_old_one(desk: Desk, tmp_path: Path, endless_model: Path) -> None:
    desk("Hi")
    draft = desk.talk.dialogue.draft
    text = tmp_path / "text.gguf"
    text.write_text("no model")
    mute = tiny.write(tmp_path / "mute.gguf", None)
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(endless_model.read_bytes()[:-1000])
    for name in (tmp_path / "missing.gguf", text, mute, broken, "no-such-name"):
        said = desk(f"/model {name}")
        assert said.startswith("strata: ") and said.count("\n") == 1, name
        assert desk.talk.dialogue.draft is draft
        desk("/continue")
        draft = desk.talk.dialogue.draft


def test_a_load_that_fails_opens_the_old_model_again(desk: Desk, tmp_path: Path, endless_model: Path) -> None:
    other = tiny.write(tmp_path / "other.gguf", seed=3)
    desk("Hi")
    plain = desk.talk.reopen

    def breaks(name: str) -> Conversation:
        desk.talk.reopen = plain
        raise StrataError(MODEL_RUN_FAILED, "no memory")

    desk.talk.reopen = breaks
    said = desk(f"/model {other}")
    assert "no memory" in said and "goes on answering" in said
    assert desk.talk.conversation.engine.info.path == str(endless_model)
    desk("/continue")
    assert desk.answer


# Sessions


def session_desk(model: Path, file: Path) -> Desk:
    return desk_over(model, session=SessionFile(str(file)))


def saved(file: Path) -> list[dict]:
    return json.loads(file.read_bytes())


def test_every_change_is_in_the_session(endless_model: Path, tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    desk = session_desk(endless_model, file)
    desk("Hi")
    assert saved(file)[-1] == {"role": "assistant", "content": desk.answer, "unfinished": True}
    desk.edits = [lambda _: "Edited"]
    desk("/edit")
    assert saved(file)[-1]["content"] == "Edited"
    desk("/system Be brief.")
    assert saved(file)[0]["role"] == "system"
    desk("/undo")
    assert len(saved(file)) == 1
    desk("/clear", "/undo")
    desk.talk.conversation.engine.close()


def test_an_answer_is_saved_while_it_comes(endless_model: Path, tmp_path: Path) -> None:
    """What a power cut would leave of it: all but the last second."""
    file = tmp_path / "s.json"
    desk = session_desk(endless_model, file)
    now = 0.0
    contents = []

    def tick(_: str) -> None:
        nonlocal now
        now += 0.4
        contents.append(saved(file)[-1]["content"] if file.exists() else None)

    desk.talk.environment.clock = lambda: now
    desk.out.on_write = tick
    desk.limit(30)
    desk("Hi")
    assert contents[0] == "Hi"
    growing = [text for text in contents if text != "Hi"]
    assert len(set(growing)) > 3
    assert all(desk.answer is not None and desk.answer.startswith(text) for text in growing)
    desk.talk.conversation.engine.close()


def test_a_session_that_can_no_longer_be_written_is_said_and_goes_on(endless_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    desk = session_desk(endless_model, folder / "s.json")
    desk("Hi")
    (folder / "s.json").unlink()
    folder.rmdir()
    assert "cannot write" in desk("And?")
    assert desk.talk.dialogue.turns == 2 and desk.answer
    folder.mkdir()
    desk("More?")
    assert len(saved(folder / "s.json")) == 6
    desk.talk.conversation.engine.close()


def test_a_session_that_another_program_changed_is_kept_elsewhere(endless_model: Path, tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    desk = session_desk(endless_model, file)
    desk("Hi")
    file.write_text("[]")
    said = desk("And?")
    assert "s-2.json" in said
    assert file.read_text() == "[]" and len(saved(tmp_path / "s-2.json")) == 4
    desk.talk.conversation.engine.close()


def test_save_and_load(desk: Desk, tmp_path: Path) -> None:
    file, other = tmp_path / "a.json", tmp_path / "b.json"
    desk("Hi")
    begun = desk.talk.dialogue
    assert "saved 1 turn to" in desk(f"/save {file}")
    assert file.stat().st_mode & 0o777 == 0o600
    desk("And?")
    assert "saved 2 turns" in desk(f"/save {file}")
    other.write_text("a letter")
    assert "holds something else" in desk(f"/save {other}")
    assert other.read_text() == "a letter"
    before = desk.talk.dialogue
    for name in (other, tmp_path / "missing.json", tmp_path, "a\0b"):
        assert desk(f"/load {name}").startswith("strata: ")
    assert desk.talk.dialogue == before
    desk("/clear")
    said = desk(f"/load {file} ")
    assert "loaded 2 turns; the last answer is unfinished" in said
    assert desk.talk.dialogue.messages[:2] == begun.messages
    desk("/continue")
    desk(f"/save {file}")
    assert len(saved(file)) == 4
    assert "strata: " in desk("/save")


def test_loading_never_writes_over_the_session(endless_model: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    second.write_text('[{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]')
    desk = session_desk(endless_model, first)
    desk("Hi")
    before = first.read_bytes()
    assert "it is the session now" in desk(f"/load {second}")
    desk("And?")
    assert first.read_bytes() == before
    assert [message["content"] for message in saved(second)][:3] == ["x", "y", "And?"]
    desk.talk.conversation.engine.close()


def test_a_full_disk_does_not_end_the_talk(desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    desk.talk.session = SessionFile(str(tmp_path / "s.json"))

    def full(*_: object) -> None:
        raise StrataError(OUTPUT_FAILED, "no space left on device")

    monkeypatch.setattr(SessionFile, "_write", full)
    assert "no space left" in desk("Hi")
    assert desk.answer
