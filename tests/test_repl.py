"""The REPL at a keyboard: the line through prompt-toolkit's pipe, the program in a terminal of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from strata_cli.cli.repl import ARGUMENTS, history_file, loop
from strata_cli.environment import Environment, Interrupt, Stream
from strata_cli.errors import Interrupted, StrataError
from strata_cli.output.terminal import repl
from strata_cli.output.terminal.repl import Reader, edit
from tests.desk import Desk, desk_over
from tests.shell import strata

# A fork of a process with threads is safe here: what is forked becomes another program at once.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

COMMANDS = {"/undo": "Take back.", "/set": "Settings.", "/save": "Save."}


# The line


@contextmanager
def reading(history: Path | None = None) -> Iterator[Callable[[str | bytes], list[str]]]:
    """A reader at a pipe: the inputs that some keys bring; Ctrl-C and Ctrl-D are there by name."""
    with create_pipe_input() as keys:
        reader = Reader(
            COMMANDS, ARGUMENTS, history, lambda columns: "bar", Interrupt(), input=keys, output=DummyOutput()
        )

        def typed(text: str | bytes) -> list[str]:
            keys.send_bytes(text) if isinstance(text, bytes) else keys.send_text(text)
            keys.send_text("\x04")
            inputs = []
            while True:
                try:
                    inputs.append(reader.ask())
                except KeyboardInterrupt:
                    inputs.append("Ctrl-C")
                except EOFError:
                    return inputs

        yield typed


@pytest.mark.parametrize(
    ("keys", "inputs"),
    {
        "enter": ("Hi\rAnd?\r", ["Hi", "And?"]),
        "nothing": ("\r", [""]),
        "spaces": ("/prefix  two \r", ["/prefix  two "]),
        "alt-enter": ("one\x1b\rtwo\r", ["one\ntwo"]),
        "ctrl-j": ("one\ntwo\r", ["one\ntwo"]),
        "paste": ("\x1b[200~one\r\n\ttwo\nthree\x1b[201~\r", ["one\n\ttwo\nthree"]),
        "ctrl-c": ("\x03", ["Ctrl-C"]),
        "ctrl-c-clears": ("half\x03Hi\r", ["Hi"]),
        "like-a-mouse": ("a\x1b[31mb\x1b[<1mc\r", ["abc"]),
        "unicode": ("Ça va 🙂 日本\r", ["Ça va 🙂 日本"]),
    }.values(),
    ids=lambda value: None,
)
def test_keys(keys: str, inputs: list[str]) -> None:
    with reading() as typed:
        assert typed(keys) == inputs


def test_bytes_that_are_no_text_become_replacements(tmp_path: Path) -> None:
    with reading(tmp_path / "history") as typed:
        (text,) = typed(b"a\xffb\xc3\r")
        assert text.startswith("a\ufffdb") and text.encode()


def test_a_paste_of_many_lines_arrives_whole() -> None:
    text = "\n".join(f"line {number}" for number in range(5000))
    with reading() as typed:
        assert typed(f"\x1b[200~{text}\x1b[201~\r") == [text]


def test_completion_offers_what_fits(tmp_path: Path) -> None:
    (tmp_path / "talk.json").touch()
    completer = repl._Commands(COMMANDS, ARGUMENTS)

    def offered(text: str) -> list[str]:
        return [found.text for found in completer.get_completions(Document(text), None)]  # type: ignore[arg-type]

    assert offered("/s") == ["/set", "/save"]
    assert offered("/set top") == ["top_k", "top_p"]
    assert offered("/think ") == ["on", "off", "auto"]
    assert offered(f"/save {tmp_path}/ta") == ["lk.json"]
    assert offered("/undo ") == offered("x") == offered("/prefix /") == []


# History


def test_history_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "state" / "strata" / "history"
    with reading(file) as typed:
        typed("one\x1b\rtwo\r")
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(repl._history(file).load_history_strings()) == ["one\ntwo"]
    file.chmod(0o644)
    with reading(file) as typed:
        typed("three\r")
    assert file.stat().st_mode & 0o777 == 0o600


def test_history_that_cannot_be_written_is_forgotten(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    for place in (blocked / "history", tmp_path, Path("/proc/nowhere/history")):
        with reading(place) as typed:
            assert typed("one\rtwo\r") == ["one", "two"]


def test_a_history_that_breaks_later_stops_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with reading(folder / "history") as typed:
        shutil.rmtree(folder)
        assert typed("one\rtwo\r") == ["one", "two"]


def test_where_the_history_is() -> None:
    def place(**variables: str) -> Path | None:
        nowhere = Stream(None, Interrupt())
        return history_file(Environment(None, False, nowhere, nowhere, variables))

    assert place(HOME="/home/me") == Path("/home/me/.local/state/strata/history")
    assert place(HOME="/home/me", XDG_STATE_HOME="/state") == Path("/state/strata/history")
    assert place() is None


# The loop


@pytest.fixture
def desk(endless_model: Path) -> Iterator[Desk]:
    desk = desk_over(endless_model)
    yield desk
    desk.talk.conversation.engine.close()


class Typist:
    """A reader that brings these inputs; an exception is raised."""

    def __init__(self, *inputs: str | BaseException) -> None:
        self.inputs = list(inputs)

    def ask(self) -> str:
        now = self.inputs.pop(0)
        if isinstance(now, BaseException):
            raise now
        return now


def run_loop(desk: Desk, *inputs: str | BaseException) -> list[str | BaseException]:
    """What was not read any more when the loop ended."""
    typist = Typist(*inputs)
    assert loop(desk.talk, typist) == 0  # type: ignore[arg-type]
    return typist.inputs


CTRL_C = KeyboardInterrupt()


def test_the_loop_ends_when_the_user_leaves(desk: Desk) -> None:
    for leaving in ("/exit", "/bye", EOFError(), OSError(5, "gone")):
        assert run_loop(desk, "Hi", leaving, "more") == ["more"]


def test_the_second_ctrl_c_in_a_row_leaves(desk: Desk) -> None:
    assert run_loop(desk, CTRL_C, CTRL_C, "more") == ["more"]
    assert run_loop(desk, CTRL_C, "Hi", CTRL_C, EOFError(), "more") == ["more"]


def test_ctrl_c_after_a_stopped_answer_leaves_but_not_by_the_same_gesture(desk: Desk) -> None:
    now = 0.0
    desk.talk.environment.clock = lambda: now
    desk.limit(None)
    desk.stop_after(3)

    class Later(Typist):
        def ask(self) -> str:
            nonlocal now
            now += 0.6
            return super().ask()

    typist = Later("Hi", CTRL_C, CTRL_C, "more")
    assert loop(desk.talk, typist) == 0  # type: ignore[arg-type]
    assert typist.inputs == ["more"] and desk.unfinished


def test_the_loop_reads_keys_and_talks(desk: Desk) -> None:
    with create_pipe_input() as keys:
        reader = Reader(
            {}, {}, None, desk.talk.toolbar, desk.talk.environment.interrupt, input=keys, output=DummyOutput()
        )
        keys.send_text("/nothing\rHi\r/prefix Well\rAnd?\r/exit\r")
        assert loop(desk.talk, reader) == 0
    assert desk.talk.dialogue.turns == 2
    assert desk.answer is not None and desk.answer.startswith("Well")


def test_a_signal_leaves_the_prompt(desk: Desk) -> None:
    interrupt = desk.talk.environment.interrupt
    with create_pipe_input() as keys:
        reader = Reader({}, {}, None, lambda columns: _terminate(), interrupt, input=keys, output=DummyOutput())
        with pytest.raises(Interrupted):
            reader.ask()
    assert interrupt.signal == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def _terminate() -> str:
    os.kill(os.getpid(), signal.SIGTERM)
    return "bar"


# The editor


def editor(folder: Path, script: str, *args: str) -> dict[str, str]:
    """$VISUAL as a shell script that gets its own arguments before the file's name."""
    program = folder / "an editor"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"VISUAL": " ".join([f"'{program}'", *args]), "EDITOR": "false"}


@pytest.mark.parametrize(
    ("script", "before", "after"),
    [
        ('printf " more\\n" >> "$1"', "text", "text more"),
        ('printf "a\\r\\nb\\r\\n" > "$1"', "one\ntwo", "a\nb"),
        ('printf "a\\r\\nb\\n" > "$1"', "one\r\ntwo\n", "a\r\nb\n"),
        ('printf "\\357\\273\\277x\\n" > "$1"', "text", "x"),
        ('printf "x\\n\\n" > "$1"', "text", "x\n"),
        (': > "$1"', "text", ""),
        ("true", "Ça va 🙂\n\n", "Ça va 🙂\n\n"),
        ('test "$1" = --wait && test "$2" = "a b" && printf x > "$3"', "text", "x"),
    ],
)
def test_an_editor_changes_the_text(tmp_path: Path, script: str, before: str, after: str) -> None:
    args = ("--wait", "'a b'") if "--wait" in script else ()
    assert edit(before, editor(tmp_path, script, *args), Interrupt()) == after


def test_an_editor_that_fails_changes_nothing(tmp_path: Path) -> None:
    for variables in (
        editor(tmp_path, 'echo x > "$1"; exit 3'),
        {"VISUAL": "/no/such/editor"},
        {"EDITOR": "'open"},
        editor(tmp_path, "printf '\\377\\377' > \"$1\""),
    ):
        with pytest.raises(StrataError):
            edit("text", variables, Interrupt())


def test_no_text_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    variables = editor(tmp_path, 'ls -l "$1" | cut -c1-10 > "$1"')
    assert edit("text", variables, Interrupt()) == "-rw-------"
    assert os.listdir(tmp_path) == ["an editor"]


# The program in a terminal

PROMPT = r"\x1b\[\?2004h"
"""What the line editor writes when it is ready."""
# What a signal or a key costs on a machine that is busy with other tests.
LONG = 30


def heed_ctrl_c() -> None:
    """Where the tests run in the background, the signal is ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """The program in a terminal of its own."""

    def __init__(self, command: list[str], home: Path, **variables: str) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "HOME": str(home),
            "TERM": "xterm-256color",
            # Nobody answers where the cursor is.
            "PROMPT_TOOLKIT_NO_CPR": "1",
            **variables,
        }
        self.child = pexpect.spawn(
            command[0], command[1:], env=environment, timeout=LONG, encoding="utf-8", codec_errors="replace",
            dimensions=(24, 80), searchwindowsize=4000, preexec_fn=heed_ctrl_c,
        )  # fmt: skip

    def see(self, pattern: str) -> str:
        """Wait for it; returns what came before."""
        self.child.expect(pattern)
        return self.child.before or ""

    def type(self, text: str) -> None:
        self.child.send(text + "\r")

    def ask(self, text: str, then: str = PROMPT) -> str:
        self.type(text)
        return self.see(then)

    def stream(self, text: str = "Hi") -> None:
        """Ask, and wait until the answer is coming."""
        self.type(text)
        self.see("2004l")
        self.see_more()

    def see_more(self) -> None:
        """Wait for so much text that some of it must be new, whatever was shown again."""
        for _ in range(20):
            self.see(r"[^\r\n]{20}")

    def ended(self) -> tuple[int | None, int | None]:
        """Wait for the end; exit status and signal."""
        self.child.expect(pexpect.EOF)
        self.child.close()
        return self.child.exitstatus, self.child.signalstatus

    @property
    def echoes(self) -> bool:
        """Whether the terminal is in the mode in which it was."""
        flags = termios.tcgetattr(self.child.child_fd)[3]
        return bool(flags & termios.ECHO and flags & termios.ICANON)


@pytest.fixture
def terminal(endless_model: Path, tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Starts `strata chat` on a model that never ends its answers, with a session in s.json."""
    started = []

    def start(*args: str, ready: str = PROMPT, **variables: str) -> Terminal:
        command = chat(endless_model, "--session", str(tmp_path / "s.json"), *args)
        terminal = Terminal(command, tmp_path, **variables)
        started.append(terminal)
        terminal.see(ready)
        return terminal

    yield start
    for terminal in started:
        terminal.child.close(force=True)


def chat(model: Path, *args: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "strata_cli",
        "chat",
        "-t",
        "1",
        "-m",
        str(model),
        "--temp",
        "0",
        "-c",
        "300000",
        *args,
    ]


def kept(folder: Path, name: str = "s.json") -> list[dict]:
    return json.loads((folder / name).read_bytes())


def test_ctrl_c_stops_the_answer_and_continue_goes_on(terminal, tmp_path: Path) -> None:
    at = terminal()
    at.stream()
    at.child.sendintr()
    at.see("stopped; /continue goes on")
    at.see(PROMPT)
    begun = kept(tmp_path)[-1]
    assert begun["unfinished"] is True
    at.stream("/continue")
    at.child.sendintr()
    at.see("stopped; /continue goes on")
    at.see(PROMPT)
    assert "1 tokens evaluated" in at.ask("/tokens")
    whole = kept(tmp_path)[-1]
    assert whole["content"].startswith(begun["content"]) and len(whole["content"]) > len(begun["content"])
    at.type("/exit")
    assert at.ended() == (0, None)


def test_a_large_paste_is_one_message_and_ctrl_c_stops_its_prompt(terminal, tmp_path: Path) -> None:
    at = terminal()
    text = "\n".join(f"/line {number} and more" for number in range(5000))
    at.child.send("say\x1b[200~\n" + text + "\x1b[201~")
    at.see("line 4999 and more")
    at.child.send("\r")
    at.see("prompt [━╺]")
    at.child.sendintr()
    at.see("stopped before the answer began")
    at.see(PROMPT)
    assert kept(tmp_path)[0] == {"role": "user", "content": "say\n" + text}
    assert (tmp_path / ".local/state/strata/history").stat().st_mode & 0o777 == 0o600
    assert "no command" in at.ask("/line")
    at.child.sendeof()
    assert at.ended() == (0, None)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["term", "hup"])
def test_a_signal_ends_the_prompt_and_gives_the_terminal_back(terminal, number: int) -> None:
    at = terminal()
    assert not at.echoes
    at.child.send("half a line")
    at.see("half a line")
    at.child.kill(number)
    at.child.expect(pexpect.EOF)
    echoes = at.echoes
    at.child.close()
    assert (at.child.signalstatus, echoes) == (number, True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["term", "hup"])
def test_a_signal_keeps_the_answer_that_was_coming(terminal, tmp_path: Path, number: int) -> None:
    at = terminal()
    at.stream()
    at.child.kill(number)
    at.child.expect(pexpect.EOF)
    echoes = at.echoes
    at.child.close()
    assert (at.child.signalstatus, echoes) == (number, True)
    assert kept(tmp_path)[-1]["unfinished"] is True
    at = terminal("-n", "4", ready="the last answer is unfinished")
    at.see(PROMPT)
    before = kept(tmp_path)[-1]["content"]
    at.ask("/continue", "cut by its limit")
    at.see(PROMPT)
    assert kept(tmp_path)[-1]["content"].startswith(before)


def test_a_closed_terminal_keeps_the_answer_that_was_coming(terminal, tmp_path: Path) -> None:
    at = terminal()
    at.stream()
    process = at.child.ptyproc
    process.fileobj.close()
    _, status = os.waitpid(process.pid, 0)
    process.closed = process.terminated = at.child.closed = at.child.terminated = True
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGHUP
    assert kept(tmp_path)[-1]["unfinished"] is True


def test_a_killed_repl_loses_at_most_what_was_just_coming(terminal, tmp_path: Path) -> None:
    at = terminal("-n", "20")
    at.ask("One")
    first = kept(tmp_path)
    for _ in range(3):
        at.type("/set n 100000")
        at.see(PROMPT)
        at.stream("More")
        at.child.kill(signal.SIGKILL)
        at.ended()
        messages = kept(tmp_path)
        assert messages[0] == first[0] and messages[1]["content"] == first[1]["content"]
        assert messages[2] == {"role": "user", "content": "More"}
        (tmp_path / "s.json").write_text(json.dumps(first))
        at = terminal("-n", "20")


@pytest.mark.skipif(not shutil.which("bash"), reason="needs a shell with job control")
def test_ctrl_z_and_back(endless_model: Path, tmp_path: Path) -> None:
    at = Terminal(["bash", "--norc", "--noprofile", "--noediting", "-i"], tmp_path, PS1="shell> ")
    command = " ".join(f"'{word}'" for word in chat(endless_model))
    at.child.send(f"{command}\n")
    at.see(PROMPT)
    at.child.send("half\x1a")
    at.see("Stopped")
    at.see("shell> ")
    at.child.send("fg\n")
    at.see("> .*half")
    at.type(" a line")
    at.see("2004l")
    at.see_more()
    at.child.send("\x1a")
    at.see("Stopped")
    at.see("shell> ")
    at.child.send("fg\n")
    at.see_more()
    assert not at.echoes
    at.child.sendintr()
    at.see("stopped; /continue")
    at.see(PROMPT)
    at.type("/exit")
    at.see("shell> ")
    at.child.send("exit\n")
    at.child.expect(pexpect.EOF)
    at.child.close()


def test_a_resize_while_streaming(terminal, tmp_path: Path) -> None:
    at = terminal()
    at.stream()
    for size in ((10, 20), (50, 200), (2, 8), (24, 80)):
        at.child.setwinsize(*size)
        at.see_more()
    at.child.setwinsize(3, 12)
    at.child.sendintr()
    at.see(PROMPT)
    at.child.setwinsize(24, 80)
    at.ask("/tokens", "context: ")
    at.see(PROMPT)
    assert kept(tmp_path)[-1]["unfinished"] is True


def test_what_is_typed_while_an_answer_comes_waits_unseen(terminal, tmp_path: Path) -> None:
    at = terminal("-n", "800")
    at.type("Hi")
    at.see("2004l")
    at.see(r"[^\r\n]{20}")
    at.child.send("/prefix typed ahead\r")
    before = at.see("cut by its limit of tokens")
    assert "typed ahead" not in before
    at.see("the next answer begins with this text")
    at.see(PROMPT)


def test_an_edited_answer_is_continued(terminal, tmp_path: Path) -> None:
    variables = editor(tmp_path, 'test "$1" = --wait && printf "Two words" > "$2"', "--wait")
    at = terminal("-n", "9", **variables)
    at.ask("Hi")
    at.ask("/edit", "edited; /continue goes on")
    at.see(PROMPT)
    assert kept(tmp_path)[-1] == {"role": "assistant", "content": "Two words", "unfinished": True}
    at.ask("/continue", "Two.* words")
    at.see(PROMPT)
    assert kept(tmp_path)[-1]["content"].startswith("Two words")


def test_ctrl_c_belongs_to_the_editor(terminal, tmp_path: Path) -> None:
    variables = editor(tmp_path, "trap 'echo heard; exit 3' INT; echo editing; while :; do sleep 0.1; done")
    at = terminal("-n", "9", **variables)
    at.ask("Hi")
    before = kept(tmp_path)
    for _ in range(4):
        at.ask("/edit", "editing\r")
        at.child.sendintr()
        at.see("heard")
        at.see("ended with status 3; nothing was changed")
        at.see(PROMPT)
    assert kept(tmp_path) == before


@pytest.mark.parametrize("name", ["dumb", "", "unknown"])
def test_a_dumb_terminal(terminal, tmp_path: Path, name: str) -> None:
    at = terminal("-n", "9", ready="> ", TERM=name)
    at.child.send("Hi\n")
    shown = at.see("cut by its limit")
    shown += at.see("> ")
    at.child.sendintr()
    at.see("Ctrl-C again")
    at.child.send("/tokens\n")
    shown += at.see("context: ")
    assert "\x1b" not in shown
    at.see("> ")
    at.child.sendeof()
    assert at.ended() == (0, None)
    assert len(kept(tmp_path)) == 2


def test_history_and_completion_at_the_keyboard(terminal, tmp_path: Path) -> None:
    at = terminal("-n", "9")
    at.ask("/prefix first")
    at.child.send("half a line")
    at.see("half a line")
    at.child.sendintr()
    at.child.send("\x1b[A")
    at.see("half a line")
    at.child.send("\x1b[A\x1b[A")
    at.see("/prefix first")
    at.child.sendintr()
    at.child.send("/tok\t")
    at.see("ens")
    at.child.send("\r")
    at.see("context: ")
    at.see(PROMPT)


def test_piped_text_with_a_terminal_is_answered_once(endless_model: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("some notes\n")
    command = " ".join(f"'{word}'" for word in chat(endless_model, "-n", "9", "--session", str(tmp_path / "s.json")))
    at = Terminal(["sh", "-c", f"cat {tmp_path}/notes.txt | {command}"], tmp_path)
    assert at.ended() == (0, None)
    assert [message["role"] for message in kept(tmp_path)] == ["user", "assistant"]
    assert kept(tmp_path)[0]["content"].rstrip("\n") == "some notes"


def test_continue_with_a_terminal_finishes_the_session_and_ends(terminal, tmp_path: Path) -> None:
    session = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "the next", "unfinished": True}]
    (tmp_path / "s.json").write_text(json.dumps(session))
    at = terminal("--continue", "-n", "9", ready=r"\S")
    assert at.ended() == (0, None)
    assert kept(tmp_path)[-1]["content"].startswith("the next") and len(kept(tmp_path)) == 2


def test_without_a_terminal_there_is_no_repl(tiny_model: Path) -> None:
    done = strata("chat", "-m", str(tiny_model), terminal=True)
    assert done.status == 2 and "there is no prompt" in done.err


def test_no_home_no_history(terminal, tmp_path: Path) -> None:
    at = terminal("-n", "9", HOME="/proc/nowhere", XDG_STATE_HOME="")
    at.ask("Hi")
    at.child.sendeof()
    assert at.ended() == (0, None)


def test_a_broken_session_is_refused_before_the_model_is_loaded(endless_model: Path, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text("{")
    at = Terminal(chat(endless_model, "--session", str(tmp_path / "s.json")), tmp_path)
    at.see("left as it is")
    assert at.ended() == (2, None)
    assert (tmp_path / "s.json").read_text() == "{"


def test_two_programs_on_one_session(terminal, tmp_path: Path) -> None:
    one, two = terminal("-n", "9"), terminal("-n", "9")
    one.ask("One")
    assert "s-2.json" in two.ask("Two")
    one.ask("Three")
    two.ask("Four")
    contents = [[message["content"] for message in kept(tmp_path, name)[::2]] for name in ("s.json", "s-2.json")]
    assert contents == [["One", "Three"], ["Two", "Four"]]


def test_the_terminal_is_not_obeying_the_model(terminal) -> None:
    at = terminal("-n", "400")
    at.ask("/prefix \x11\x1b[2J\x11\x07")
    answer = at.ask("Hi", "cut by its limit").partition("2004l")[2]
    assert "␛[2J␇" in answer
    # Colours and an erased line are the program's own.
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", re.sub(r"\x1b\[(\d+;?)*[mK]", "", answer))
