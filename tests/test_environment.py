"""The process: its streams, its colours, its signals. What a signal does is seen in a child."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strata_cli import environment as process
from strata_cli.environment import Environment, Interrupt, ReaderGone, Stream, listening
from strata_cli.errors import OUTPUT_FAILED, Interrupted, StrataError

ROOT = Path(__file__).parents[1]


Child = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def child() -> Iterator[Child]:
    """Starts a Python process that has the module's names."""
    started: list[subprocess.Popen[str]] = []

    def start(program: str, **more: object) -> subprocess.Popen[str]:
        lines = (
            "import os, signal, sys, time",
            "from strata_cli import environment",
            "from strata_cli.environment import *",
            "from strata_cli.errors import Interrupted",
            "def say(text): os.write(1, (text + '\\n').encode())",
            textwrap.dedent(program),
        )
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT} | more
        started.append(subprocess.Popen([sys.executable, "-c", "\n".join(lines)], **pipes))
        return started[-1]

    yield start
    for running in started:
        running.kill()
        running.wait()
        for pipe in (running.stdin, running.stdout, running.stderr):
            if pipe is not None:
                pipe.close()


def line(running: subprocess.Popen[str]) -> str:
    assert running.stdout is not None
    return running.stdout.readline().strip()


# Interrupt


def test_an_interrupt_is_set_and_cleared() -> None:
    interrupt = Interrupt()
    assert not interrupt and bytes(interrupt.memory) == b"\0\0"
    interrupt.set(15)
    assert interrupt and interrupt.signal == 15 and bytes(interrupt.memory) == b"\x01\0"
    interrupt.clear()
    assert not interrupt and interrupt.signal == 0


def test_the_flag_stays_at_its_place() -> None:
    """Compiled code holds the address."""
    interrupt = Interrupt()
    view = memoryview(interrupt.memory)
    interrupt.set()
    assert view[0] == 1


# Stream


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for descriptor in (reading, writing):
        try:
            os.close(descriptor)
        except OSError as error:
            assert error.errno == errno.EBADF


def test_a_stream_writes_at_once(pipe: tuple[int, int]) -> None:
    Stream(pipe[1], Interrupt()).text("naïve \ud800\n")
    assert os.read(pipe[0], 100).decode() == "naïve ?\n"


def test_a_stream_writes_all(pipe: tuple[int, int]) -> None:
    data = os.urandom(1_000_000)
    received: list[bytes] = []

    def read() -> None:
        while part := os.read(pipe[0], 70_000):
            received.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    Stream(pipe[1], Interrupt()).write(data)
    os.close(pipe[1])
    reader.join()
    assert b"".join(received) == data


def test_a_signal_at_the_end_of_a_wait_loses_nothing(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    real, signalled = select.select, []

    def last_moment(*arguments: object) -> object:
        ready = real(*arguments)
        if not signalled:
            signalled.append(True)
            signal.raise_signal(signal.SIGTERM)
        return ready

    monkeypatch.setattr(select, "select", last_moment)
    interrupt = Interrupt()
    with listening(interrupt):
        Stream(pipe[1], interrupt).text("all of it")
        assert interrupt.signal == signal.SIGTERM and not interrupt.blocking
    assert os.read(pipe[0], 100) == b"all of it"


def test_a_closed_pipe(pipe: tuple[int, int]) -> None:
    os.close(pipe[0])
    interrupt = Interrupt()
    with pytest.raises(ReaderGone):
        Stream(pipe[1], interrupt).text("x")
    assert not interrupt.blocking


def test_a_full_device() -> None:
    interrupt = Interrupt()
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(StrataError) as caught:
        Stream(full.fileno(), interrupt).text("x")
    assert caught.value.kind is OUTPUT_FAILED and "No space left" in caught.value.message
    assert not interrupt.blocking


def test_a_closed_descriptor_swallows() -> None:
    Stream(None, Interrupt()).text("x")


def test_writing_nothing(pipe: tuple[int, int]) -> None:
    os.close(pipe[0])
    Stream(pipe[1], Interrupt()).text("")


# Environment


def environment(*, terminal: bool = False, descriptor: int | None = None, **variables: str) -> Environment:
    interrupt = Interrupt()
    stream = Stream(descriptor, interrupt, terminal=terminal)
    return Environment(None, False, stream, stream, variables, interrupt)


@pytest.mark.parametrize(
    ("choice", "terminal", "variables", "colour"),
    [
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"TERM": "xterm-256color"}, True),
        ("auto", True, {"TERM": "dumb"}, False),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": "0"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", False, {"FORCE_COLOR": "1"}, True),
        ("auto", False, {"FORCE_COLOR": "0"}, False),
        ("auto", False, {"FORCE_COLOR": ""}, False),
        ("auto", True, {"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        ("auto", True, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ("always", False, {"NO_COLOR": "1", "TERM": "dumb"}, True),
        ("never", True, {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colour(choice: str, terminal: bool, variables: dict[str, str], colour: bool) -> None:
    here = environment(terminal=terminal, **variables)
    assert here.colour(here.stdout, choice) is colour


@pytest.mark.parametrize(("variables", "debug"), [({}, False), ({"STRATA_DEBUG": "1"}, True)])
def test_debug(variables: dict[str, str], debug: bool) -> None:
    assert environment(**variables).debug is debug
    assert not environment(STRATA_DEBUG="0").debug and not environment(STRATA_DEBUG="").debug


@pytest.mark.parametrize(("width", "columns"), [(20, 20), (203, 203), (0, 80)])
def test_columns_of_a_terminal(width: int, columns: int) -> None:
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    assert environment(terminal=True, descriptor=terminal).columns() == columns
    os.close(controller)
    os.close(terminal)


def test_columns_without_a_terminal() -> None:
    assert environment().columns() == 80


def test_this_process_knows_which_streams_are_terminals(child: Child) -> None:
    controller, terminal = pty.openpty()
    running = child(
        "here = of_this_process(); say(f'{here.stdin_terminal} {here.stdout.terminal} {here.stderr.terminal}')",
        stdin=terminal,
        stderr=terminal,
    )
    assert running.communicate()[0] == "True False True\n"
    os.close(controller)
    os.close(terminal)


def test_closed_descriptors_do_not_become_files(tmp_path: Path) -> None:
    """What is printed does not go into the file that is opened next."""
    program = (
        "import os\nfrom strata_cli.environment import occupy_closed_descriptors, of_this_process\n"
        "occupy_closed_descriptors()\nhere = of_this_process()\n"
        f"file = os.open({str(tmp_path / 'file')!r}, os.O_WRONLY | os.O_CREAT)\n"
        "here.stdout.text('answer')\nhere.stderr.text('note')\nos.write(file, b'saved %d' % file)\n"
    )
    command = f'exec "{sys.executable}" -c "$PROGRAM" <&- >&- 2>&-'
    subprocess.run(["sh", "-c", command], env={**os.environ, "PROGRAM": program}, cwd=ROOT, check=True)
    said, number = (tmp_path / "file").read_text().split()
    assert said == "saved" and int(number) > 2


def test_no_complaint_about_a_closed_pipe_at_exit(child: Child) -> None:
    running = child(
        """
        sys.stdin.readline()
        sys.stdout.write('x' * 100)
        try: of_this_process().stdout.text('y')
        except ReaderGone: end(0)
        """,
        stdin=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
    )
    assert running.stdout is not None
    running.stdout.close()
    assert running.stdin is not None and running.stderr is not None
    running.stdin.close()
    assert running.stderr.read() == "" and running.wait() == 0


# Signals

STOPS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_sets_the_flag(number: int) -> None:
    interrupt = Interrupt()
    before = signal.getsignal(number)
    with listening(interrupt):
        signal.raise_signal(number)
        assert interrupt and interrupt.signal == number
    assert signal.getsignal(number) is before
    assert signal.set_wakeup_fd(-1) == -1


def test_a_signal_ends_a_wait() -> None:
    interrupt = Interrupt()
    with listening(interrupt), pytest.raises(Interrupted):
        interrupt.blocking = True
        signal.raise_signal(signal.SIGTERM)


def test_an_exception_passes_and_the_handlers_are_as_before() -> None:
    before = [signal.getsignal(number) for number in STOPS]
    with pytest.raises(RuntimeError), listening(Interrupt()):
        raise RuntimeError
    assert [signal.getsignal(number) for number in STOPS] == before


def test_other_threads_listen_to_nothing() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[object] = []

    def listen() -> None:
        with listening(Interrupt()):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    assert seen == [before]


@pytest.mark.parametrize("number", STOPS)
def test_a_child_stops_by_itself(child: Child, number: int) -> None:
    running = child(
        """
        interrupt = Interrupt()
        with listening(interrupt):
            say('ready')
            while not interrupt: time.sleep(0.01)
            say(f'stopped by {interrupt.signal}')
        """
    )
    assert line(running) == "ready"
    running.send_signal(number)
    assert running.communicate() == (f"stopped by {int(number)}\n", "")
    assert running.returncode == 0


@pytest.mark.parametrize(("patience", "number"), [(1, signal.SIGINT), (1, signal.SIGTERM), (2, signal.SIGINT)])
def test_one_signal_more_than_patience_ends_the_child(child: Child, patience: int, number: int) -> None:
    running = child(
        f"""
        interrupt = Interrupt()
        with listening(interrupt, patience={patience}):
            say('ready')
            while True:
                if interrupt: interrupt.clear(); say('heard')
                time.sleep(0.01)
        """
    )
    assert line(running) == "ready"
    for _ in range(patience):
        running.send_signal(number)
        assert line(running) == "heard"
    running.send_signal(number)
    running.communicate()
    assert running.returncode in (128 + number, -number)


def test_compiled_code_sees_the_flag_while_python_waits(child: Child) -> None:
    """The main thread is in a C function for a second, and the flag is set before it returns."""
    running = child(
        """
        import hashlib, threading
        interrupt = Interrupt()
        def watch():
            while not interrupt: time.sleep(0.005)
            say('flag')
        with listening(interrupt):
            watcher = threading.Thread(target=watch); watcher.start()
            say('ready')
            hashlib.pbkdf2_hmac('sha256', b'', b'', 250_000)
            say('returned')
            watcher.join()
        """
    )
    assert line(running) == "ready"
    running.send_signal(signal.SIGINT)
    assert running.communicate()[0].split() == ["flag", "returned"]


def test_a_signal_ends_a_read(child: Child) -> None:
    running = child(
        """
        interrupt = Interrupt()
        with listening(interrupt):
            try:
                interrupt.blocking = True
                say('ready')
                os.read(0, 1)
            except Interrupted: say(f'interrupted by {interrupt.signal}')
        """,
        stdin=subprocess.PIPE,
    )
    assert line(running) == "ready"
    running.send_signal(signal.SIGTERM)
    assert line(running) == "interrupted by 15"
    running.communicate()


def test_a_signal_ends_a_wait_for_a_reader_that_does_not_read(child: Child) -> None:
    running = child(
        """
        interrupt = Interrupt()
        with listening(interrupt):
            reading, writing = os.pipe()
            try:
                say('ready')
                Stream(writing, interrupt).write(b'x' * 1_000_000)
            except Interrupted: say(f'interrupted by {interrupt.signal}')
        """
    )
    assert line(running) == "ready"
    # Time enough to fill the pipe; where it is not, the flag is set and the test waits in vain.
    threading.Event().wait(0.3)
    running.send_signal(signal.SIGINT)
    assert line(running) == "interrupted by 2"
    running.communicate()


def test_a_signal_that_the_parent_ignores_stays_ignored(child: Child) -> None:
    running = child(
        """
        interrupt = Interrupt()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with listening(interrupt):
            os.kill(os.getpid(), signal.SIGHUP)
            time.sleep(0.05)
            say(str(bool(interrupt)))
        die_of_ctrl_c()
        say(str(signal.getsignal(signal.SIGINT) == signal.SIG_DFL))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        die_of_ctrl_c()
        say(str(signal.getsignal(signal.SIGINT) == signal.SIG_IGN))
        """
    )
    assert running.communicate() == ("False\nTrue\nTrue\n", "")


@pytest.mark.parametrize("number", STOPS)
def test_dying_of_a_signal(child: Child, number: int) -> None:
    running = child(f"say('last words'); die_of({int(number)})")
    assert running.communicate() == ("last words\n", "")
    assert running.returncode == -number


def test_the_module_reads_nothing_at_import() -> None:
    program = "import os; os.environ = None; import strata_cli.environment"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_stop_signals_are_those_that_there_are() -> None:
    assert list(process.STOP_SIGNALS) == STOPS
