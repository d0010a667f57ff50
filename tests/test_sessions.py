"""Conversations on disk: never half written, never lost, never another's."""

from __future__ import annotations

import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from strata_cli.errors import StrataError
from strata_cli.store.sessions import SessionFile
from tests.shell import Done, process, strata

USER = {"role": "user", "content": "Hi"}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return tmp_path / "s.json"


@pytest.fixture
def chat(tiny_model: Path, session: Path):
    """`strata chat --session` on the tiny model, greedy and short."""

    def run(*args: str, stdin: bytes | str | None = None) -> Done:
        begun = ["chat", "-t", "1", "-m", str(tiny_model), "--temp", "0", "-n", "6", "--session", str(session)]
        return strata(*begun, *args, stdin=stdin)

    return run


def kept(session: Path) -> list[dict]:
    return json.loads(session.read_bytes())


# The file itself


def test_a_new_file_is_its_owners_and_an_old_one_keeps_its_mode(session: Path) -> None:
    file = SessionFile(str(session))
    assert file.read() is None
    file.keep(b"[]")
    assert mode(session) == 0o600
    session.chmod(0o640)
    file.keep(b"[1]")
    assert (mode(session), session.read_bytes(), file.known) == (0o640, b"[1]", b"[1]")


def test_nothing_is_left_beside_it(session: Path) -> None:
    SessionFile(str(session)).keep(b"[]")
    assert os.listdir(session.parent) == ["s.json"]


def test_what_another_program_wrote_stays_and_this_one_goes_elsewhere(session: Path) -> None:
    mine, theirs = SessionFile(str(session)), SessionFile(str(session))
    mine.read(), theirs.read()
    assert mine.keep(b"mine") is None
    moved = theirs.keep(b"theirs")
    assert moved == str(session.with_name("s-2.json")) == theirs.name
    assert (session.read_bytes(), Path(moved).read_bytes()) == (b"mine", b"theirs")
    assert theirs.keep(b"theirs, more") is None
    third = SessionFile(str(session))
    assert third.keep(b"third") == str(session.with_name("s-3.json"))


def test_a_file_that_is_there_is_not_saved_over(session: Path) -> None:
    session.write_bytes(b"a letter")
    with pytest.raises(StrataError, match="holds something else"):
        SessionFile(str(session)).replace(b"[]")
    assert session.read_bytes() == b"a letter"
    known = SessionFile(str(session))
    known.read()
    known.replace(b"[]")
    assert session.read_bytes() == b"[]"


def test_an_empty_file_and_a_removed_one_can_be_written(session: Path) -> None:
    session.touch()
    file = SessionFile(str(session))
    file.replace(b"[]")
    session.unlink()
    assert file.keep(b"[1]") is None
    assert session.read_bytes() == b"[1]"


def test_a_symbolic_link_stays_one(session: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere" / "real.json"
    target.parent.mkdir()
    session.symlink_to(target)
    file = SessionFile(str(session))
    assert file.read() is None
    file.keep(b"[]")
    assert session.is_symlink() and target.read_bytes() == b"[]"
    file.keep(b"[1]")
    assert session.is_symlink() and target.read_bytes() == b"[1]"


def unwritable(tmp_path: Path) -> Path:
    """A folder in which nobody can make a file, root neither."""
    if os.getuid():
        folder = tmp_path / "closed"
        folder.mkdir(mode=0o500)
        return folder
    if not Path("/proc/self").is_dir():
        pytest.skip("root can write everywhere here")
    return Path("/proc/self")


def test_a_folder_that_takes_no_file_is_told_at_once(tmp_path: Path) -> None:
    for name in (tmp_path / "missing" / "s.json", unwritable(tmp_path) / "s.json"):
        file = SessionFile(str(name))
        assert file.read() is None
        with pytest.raises(StrataError, match="cannot write"):
            file.check()
        with pytest.raises(StrataError, match="cannot write"):
            file.keep(b"[]")


def test_names_that_cannot_be_are_errors(tmp_path: Path) -> None:
    for name in (str(tmp_path), "a\0b", "x" * 5000):
        with pytest.raises(StrataError, match="cannot read"):
            SessionFile(name).read()
    SessionFile("/dev/null").keep(b"[]")


def test_two_writers_at_once_lose_nothing(session: Path) -> None:
    files = [SessionFile(str(session)) for _ in range(4)]
    writers = [
        threading.Thread(target=lambda own=index, file=file: [file.keep(f"{own} {n}".encode()) for n in range(20)])
        for index, file in enumerate(files)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(path.read_bytes() for path in session.parent.iterdir()) == [b"0 19", b"1 19", b"2 19", b"3 19"]


WRITER = """
import sys
from strata_cli.store.sessions import SessionFile
file = SessionFile(sys.argv[1])
number = int((file.read() or b"0").split()[0])
print(number, flush=True)
while True:
    number += 1
    file.keep(f"{number} ".encode() + b"x" * 30000 + b" end")
"""


def kill_in_a_loop(session: Path, times: int) -> int:
    """Kill a writer at any moment, again and again; returns the last number that it wrote."""
    chance = random.Random(1)
    number = 0
    for _ in range(times):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(session)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.PIPE,
        )
        assert writer.stdout is not None
        with writer, writer.stdout:
            begun = int(writer.stdout.readline())
            assert begun >= number
            number = begun
            time.sleep(chance.uniform(0, 0.03))
            writer.kill()
        if session.exists():
            data = session.read_bytes()
            assert data.endswith(b" end") and mode(session) == 0o600
    return number


def test_a_killed_writer_leaves_a_whole_file(session: Path) -> None:
    assert kill_in_a_loop(session, 10) > 0
    file = SessionFile(str(session))
    file.read()
    file.keep(b"[]")
    assert os.listdir(session.parent) == ["s.json"]


# strata chat --session


def test_a_conversation_grows_with_every_call(chat, session: Path) -> None:
    first = chat("Hi")
    assert first.status == 0, first
    assert [message["role"] for message in kept(session)] == ["user", "assistant"]
    assert mode(session) == 0o600
    chat("-n", "400", "And?")
    messages = kept(session)
    assert [message["role"] for message in messages] == ["user", "assistant"] * 2
    assert [message["content"] for message in messages[::2]] == ["Hi", "And?"]


def test_an_answer_that_was_cut_is_unfinished_and_continue_goes_on(chat, session: Path, tiny_model: Path) -> None:
    chat("Hi")
    begun = kept(session)[-1]
    assert begun["unfinished"] is True
    assert chat("--continue").status == 0
    messages = kept(session)
    assert len(messages) == 2
    assert messages[-1]["content"].startswith(begun["content"])
    assert len(messages[-1]["content"]) > len(begun["content"])
    assert chat("--continue", "-n", "2000", "-c", "4000").status == 0
    assert "unfinished" not in kept(session)[-1]


def test_a_session_is_also_a_conversation_on_standard_input(chat, session: Path, tiny_model: Path) -> None:
    chat("Hi")
    data = session.read_bytes()
    plain = json.dumps([USER, {"role": "assistant", "content": kept(session)[-1]["content"]}])
    args = ["chat", "-t", "1", "-m", str(tiny_model), "--temp", "0", "-n", "9"]
    assert strata(*args, "--continue", stdin=data).out == strata(*args, "--continue", stdin=plain).out != b""
    assert strata(*args, stdin=data).out == strata(*args, stdin=plain).out
    rendered = [strata("render", "-m", str(tiny_model), "--continue", stdin=text).out for text in (data, plain)]
    assert rendered[0] == rendered[1]


def test_a_prefix_and_a_system_message_are_kept(chat, session: Path) -> None:
    chat("-s", "Be brief.", "--prefix", "  Well,", "Hi")
    chat("-s", "Be long.", "And?")
    messages = kept(session)
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user", "assistant"]
    assert messages[0]["content"] == "Be long."
    assert messages[2]["content"].startswith("  Well,")


@pytest.mark.parametrize("data", [b"{", b'{"messages": []}', b'[{"content": "x"}]', b"a letter", b"\xff\xfe\x00"])
def test_a_broken_session_is_refused_and_left_as_it_was(chat, session: Path, data: bytes) -> None:
    session.write_bytes(data)
    done = chat("Hi")
    assert (done.status, done.out) == (2, b"")
    assert done.err.count("\n") == 1 and "left as it is" in done.err
    assert session.read_bytes() == data


def test_an_answered_conversation_and_nothing_more_is_no_question(chat, session: Path) -> None:
    chat("Hi")
    before = session.read_bytes()
    for stdin in (None, b""):
        done = chat(stdin=stdin)
        assert (done.status, done.out) == (2, b"") and "there is no prompt" in done.err and "--continue" in done.err
        assert chat("--prefix", "x", stdin=stdin).status == 2
    assert session.read_bytes() == before
    assert chat("--continue", stdin=b"").status == 0


def test_a_question_in_a_session_is_answered_without_another(chat, session: Path) -> None:
    session.write_text(json.dumps([USER]))
    assert chat(stdin=b"").status == 0
    assert [message["role"] for message in kept(session)] == ["user", "assistant"]


def test_a_request_is_no_session_and_the_error_says_what_is(chat, session: Path) -> None:
    session.write_text(json.dumps({"messages": [USER]}))
    done = chat("Hi")
    assert done.status == 2 and 'only the list under "messages"' in done.err and "left as it is" in done.err


def test_a_session_that_cannot_be_written_is_refused_before_any_work(tiny_model: Path, tmp_path: Path) -> None:
    for folder in (tmp_path / "missing", unwritable(tmp_path)):
        done = strata("chat", "-m", str(tiny_model), "--session", str(folder / "s.json"), "Hi")
        assert (done.status, done.out) == (1, b"")
        assert "cannot write" in done.err


def test_a_wrong_request_leaves_the_session_as_it_was(chat, session: Path) -> None:
    chat("Hi")
    before = session.read_bytes()
    assert chat("-c", "12", "x" * 400).status == 3
    assert chat("--prefix", "x").status == 2
    assert session.read_bytes() == before
    lines = json.dumps({"messages": [USER]})
    assert chat("--input", "jsonl", stdin=lines).status == 2
    assert session.read_bytes() == before


def test_a_terminated_answer_is_kept_as_unfinished(endless_model: Path, session: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        child = process(
            "chat", "-t", "1", "-m", str(endless_model), "-c", "500000", "--temp", "0", "--session", str(session),
            "Hi", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        assert child.stdout is not None
        first = os.read(child.stdout.fileno(), 1)
        child.send_signal(number)
        rest, errors = child.communicate(timeout=60)
        assert child.returncode == -number, errors
        last = kept(session)[-1]
        assert last["unfinished"] is True
        assert (first + rest).decode().rstrip("\n").startswith(last["content"].rstrip("\n"))
        session.unlink()
