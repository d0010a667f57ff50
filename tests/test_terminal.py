"""The real program in a real shell and a real terminal: pipes, signals, job control, colour."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests import tiny
from tests.shell import process

TIMEOUT = 60
CONTEXT = 200_000
LONG = f"--temp 0 -c {CONTEXT} Hi"
STRATA = f"{shlex.quote(sys.executable)} -m strata_cli"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """No variable of the caller's that changes what is shown, and an empty home."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    path = os.pathsep.join(p for p in sys.path if p)
    return {**kept, "PYTHONPATH": path, "HOME": str(tmp_path), "TERM": "xterm"}


@pytest.fixture
def model(tiny_model: Path) -> str:
    return f"-t 1 -m {shlex.quote(str(tiny_model))}"


@pytest.fixture(scope="module")
def endless_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that is trained for so long a context that none of these answers ends."""
    return tiny.write(tmp_path_factory.mktemp("endless") / "endless.gguf", context=CONTEXT, endless=True)


@pytest.fixture
def endless(endless_model: Path) -> str:
    """A model and a prompt for an answer that goes on until it is stopped."""
    return f"-t 1 -m {shlex.quote(str(endless_model))} {LONG}"


@pytest.fixture
def vocabulary(tiny_model: Path) -> str:
    """The same model for a command that needs no threads."""
    return f"-m {shlex.quote(str(tiny_model))}"


def sh(command: str, environment: dict[str, str], shell: str = "bash", **more: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [shell, "-c", command], env=environment, capture_output=True, timeout=TIMEOUT, check=False, **more
    )


@pytest.fixture
def terminal(environment: dict[str, str]) -> Iterator[object]:
    """Starts a shell command in a terminal of its own; what is still running at the end is killed."""
    children: list[pexpect.spawn] = []

    def start(command: str, columns: int = 80, **variables: str) -> pexpect.spawn:
        child = pexpect.spawn(
            "bash",
            ["--norc", "-c", command] if command else ["--norc", "-i"],
            env={**environment, "PS1": "ready> ", **variables},
            dimensions=(24, columns),
            timeout=TIMEOUT,
            encoding=None,
        )
        children.append(child)
        return child

    yield start
    for child in children:
        child.close(force=True)


def test_a_reader_that_leaves(environment: dict[str, str], endless: str) -> None:
    done = sh(f"{STRATA} chat {endless} </dev/null | head -c 5; echo ${{PIPESTATUS[0]}}", environment)
    assert done.stdout.endswith(b"0\n")
    assert done.stderr == b""


def test_a_full_disk(environment: dict[str, str], model: str) -> None:
    done = sh(f"{STRATA} chat {model} -n 5 --temp 0 Hi </dev/null >/dev/full", environment)
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr and done.stderr.count(b"\n") == 1
    done = sh(f"{STRATA} chat {model} -n 5 --temp 0 -o /dev/full Hi </dev/null", environment)
    assert done.returncode == 1


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(environment: dict[str, str], model: str, closed: str) -> None:
    done = sh(f"{STRATA} chat --stats {model} -n 5 --temp 0 Hi {closed}", environment)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


def test_a_file_does_not_become_stdout(environment: dict[str, str], model: str, tmp_path: Path) -> None:
    file = tmp_path / "prompt"
    file.write_text("Hi")
    assert sh(f"{STRATA} chat {model} -n 5 -f prompt >&- 2>&-", environment, cwd=tmp_path).returncode == 0
    assert file.read_text() == "Hi"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_end_it_by_themselves(endless_model: Path, environment: dict[str, str], number: signal.Signals) -> None:
    args = ["chat", "-t", "1", "-m", str(endless_model), *LONG.split()]
    child = process(*args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    assert child.stdout is not None
    first = os.read(child.stdout.fileno(), 1)
    child.send_signal(number)
    rest, errors = child.communicate(timeout=TIMEOUT)
    assert (child.returncode, errors) == (-number, b"")
    assert first + rest[-1:] == first + b"\n"


def test_nohup_is_honoured(tiny_model: Path, environment: dict[str, str]) -> None:
    command = f"trap '' HUP; exec {STRATA} chat -t 1 -m {shlex.quote(str(tiny_model))} -n 50 --temp 1.5 --seed 3 Hi"
    child = subprocess.Popen(["bash", "-c", command], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert child.stdout is not None
    os.read(child.stdout.fileno(), 1)
    child.send_signal(signal.SIGHUP)
    child.communicate(timeout=TIMEOUT)
    assert child.returncode == 0


def test_an_answer_to_a_file_is_kept_when_it_is_stopped(
    endless_model: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "answer"
    args = ["chat", "--stats", "-t", "1", "-m", str(endless_model), "-o", str(file), *LONG.split()]
    child = process(*args, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
    deadline = time.monotonic() + TIMEOUT
    while not any(path.stat().st_size for path in tmp_path.glob(".strata.*")):
        assert child.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=TIMEOUT)
    assert child.returncode == -signal.SIGINT
    assert file.stat().st_size > 1
    assert not list(tmp_path.glob(".strata.*"))


def test_a_shell_loop_stops_at_ctrl_c(terminal, endless: str) -> None:
    child = terminal(f"for i in 1 2 3; do echo round $i; {STRATA} chat {endless}; done; echo over")
    child.expect(b"round 1\r\n.")
    child.sendintr()
    child.expect(pexpect.EOF)
    assert b"round 2" not in child.before and b"over" not in child.before


def test_ctrl_z_and_back(terminal, endless: str) -> None:
    child = terminal("")
    child.expect(b"ready> ")
    child.sendline(f"{STRATA} chat {endless}; echo status=$?".encode())
    child.expect(b"status=.*\r\n.")
    time.sleep(0.5)
    child.send(b"\x1a")
    child.expect(b"Stopped")
    child.expect(b"ready> ")
    child.sendline(b"fg")
    child.expect(b"chat.*\r\n.")
    time.sleep(0.5)
    child.sendintr()
    child.expect(b"ready> ")


def test_ctrl_c_while_waiting_for_input(terminal, model: str) -> None:
    child = terminal(f"sleep 30 | {STRATA} chat {model} Hi")
    child.expect(b"waiting for standard input")
    child.sendintr()
    child.expect(pexpect.EOF)
    assert b"Traceback" not in child.before


def test_an_open_and_silent_stdin_is_explained(environment: dict[str, str], model: str) -> None:
    done = sh(f"sleep 10 | {STRATA} chat {model} -n 2 --temp 0 Hi", environment)
    assert done.returncode == 0
    assert b"waiting for standard input" in done.stderr
    done = sh(f"sleep 3 | {STRATA} chat {model} -n 2 --temp 0 --input none Hi", environment)
    assert b"waiting" not in done.stderr


def test_a_loop_with_read_keeps_its_input(environment: dict[str, str], vocabulary: str) -> None:
    loop = f"printf 'a\\nb\\nc\\n' | while read w; do {STRATA} render {vocabulary} --input none $w | grep -c '^'; done"
    assert len(sh(loop, environment).stdout.split()) == 3


ESCAPE = b"\x1b["


def test_colour_is_for_terminals_and_for_those_who_ask(terminal, environment: dict[str, str], vocabulary: str) -> None:
    render = f"{STRATA} render -q {vocabulary} --prefix Sure Hi"

    def shown(command: str, **variables: str) -> bytes:
        child = terminal(command, **variables)
        child.expect(pexpect.EOF)
        return child.before

    assert ESCAPE in shown(render)
    assert ESCAPE not in shown(render, NO_COLOR="1")
    assert ESCAPE in shown(render + " --color always", NO_COLOR="1")
    assert ESCAPE not in shown(render, TERM="dumb")
    assert ESCAPE not in shown(render + " --color never")
    assert ESCAPE not in sh(render + " </dev/null", environment).stdout
    assert ESCAPE in sh(render + " </dev/null", {**environment, "FORCE_COLOR": "1"}).stdout
    assert ESCAPE not in sh(render + " </dev/null", {**environment, "FORCE_COLOR": "1", "NO_COLOR": "1"}).stdout


@pytest.mark.parametrize("term", ["xterm", "dumb", ""])
def test_twenty_columns_and_dumb_terminals(terminal, model: str, term: str) -> None:
    child = terminal(f"{STRATA} chat {model} -n 20 --temp 1.5 --seed 3 --stats Hi", columns=20, TERM=term)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert b"decode:" in child.before
    if term != "xterm":
        assert b"\x1b" not in child.before


def test_help_on_a_full_disk(environment: dict[str, str]) -> None:
    done = sh(f"{STRATA} --help >/dev/full", environment)
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr and done.stderr.count(b"\n") == 1


def test_help_on_twenty_columns(terminal) -> None:
    child = terminal(f"{STRATA} chat --help", columns=20)
    child.expect(pexpect.EOF)
    assert b"--prefix" in child.before


def test_no_terminal_at_all(environment: dict[str, str], model: str) -> None:
    done = sh(f"setsid -w {STRATA} chat {model} -n 5 --temp 0 Hi </dev/null", environment)
    assert (done.returncode, done.stderr) == (0, b"")


def test_control_characters_of_a_prompt_are_shown_not_obeyed(terminal, vocabulary: str) -> None:
    child = terminal(f"{STRATA} render -q {vocabulary} --color never $'a\\x1b]0;title\\x07b'")
    child.expect(pexpect.EOF)
    assert b"\x1b]0" not in child.before and "␛]0;title␇".encode() in child.before
