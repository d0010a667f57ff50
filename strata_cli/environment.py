"""The process as seen by the program: streams, terminals, colour, clock, signals. Nothing is read at import.

Everything that differs between a terminal, a pipe and a test stands in one `Environment`, made once by `main`.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn

from strata_cli.errors import OUTPUT_FAILED, Interrupted, StrataError

STOP_SIGNALS = tuple(
    number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None
)


PIECE = 4096
"""Bytes that a pipe takes at once when it takes any (PIPE_BUF)."""


class Interrupt:
    """A flag that a signal sets and that compiled code can read while Python waits for it.

    `memory` is two bytes, the second always zero: read as a C string it is empty until the flag is set.
    `signal` is the number of the signal that set it, or 0. While `blocking` is true the main thread waits in a
    system call that would be taken up again after the signal, so its handler raises.
    """

    __slots__ = ("blocking", "memory", "signal")

    def __init__(self) -> None:
        self.memory = bytearray(2)
        self.signal = 0
        self.blocking = False

    def set(self, number: int = 2) -> None:
        self.signal = number
        self.memory[0] = 1

    def clear(self) -> None:
        self.signal = 0
        self.memory[0] = 0

    def __bool__(self) -> bool:
        return self.memory[0] != 0


class ReaderGone(Exception):
    """Whoever read this stream closed it."""


class Stream:
    """One of the process's outputs, as bytes that are written at once. A closed descriptor swallows what it gets."""

    def __init__(self, descriptor: int | None, interrupt: Interrupt, *, terminal: bool = False) -> None:
        self.descriptor = descriptor
        self.terminal = terminal
        self._interrupt = interrupt

    def write(self, data: bytes) -> None:
        """Write all of it; raises ReaderGone on a closed pipe and StrataError OUTPUT_FAILED on a full disk."""
        if self.descriptor is None:
            return
        rest = memoryview(data)
        try:
            while rest:
                self._wait(self.descriptor)
                rest = rest[os.write(self.descriptor, rest[:PIECE]) :]
        except BrokenPipeError:
            raise ReaderGone from None
        except OSError as error:
            raise StrataError(OUTPUT_FAILED, f"the output could not be written: {error.strerror}") from None

    def _wait(self, descriptor: int) -> None:
        """Wait until the reader takes a piece. A signal ends a wait for one that takes none, and never cuts a write."""
        try:
            self._wait_or_signal(descriptor)
        except Interrupted:
            # A signal between the end of the wait and that of its `try` is one that came while the reader was ready.
            self._interrupt.blocking = False
            if descriptor not in select.select([], [descriptor], [], 0)[1]:
                raise

    def _wait_or_signal(self, descriptor: int) -> None:
        self._interrupt.blocking = True
        try:
            select.select([], [descriptor], [])
        finally:
            self._interrupt.blocking = False

    def text(self, text: str) -> None:
        self.write(text.encode("utf-8", "replace"))


class Environment:
    """Streams, variables, clock and interrupt of this process, or of a test."""

    def __init__(
        self,
        stdin: int | None,
        stdin_terminal: bool,
        stdout: Stream,
        stderr: Stream,
        variables: Mapping[str, str],
        interrupt: Interrupt | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.stdin, self.stdin_terminal = stdin, stdin_terminal
        self.stdout, self.stderr = stdout, stderr
        self.variables = variables
        self.interrupt = Interrupt() if interrupt is None else interrupt
        self.clock, self.wall_clock = clock, wall_clock

    @property
    def debug(self) -> bool:
        return self.variables.get("STRATA_DEBUG", "") not in ("", "0")

    def colour(self, stream: Stream, choice: str = "auto") -> bool:
        """Whether colour codes go to this stream: the option first, then NO_COLOR, FORCE_COLOR, then the terminal."""
        if choice != "auto":
            return choice == "always"
        if self.variables.get("NO_COLOR"):
            return False
        if self.variables.get("FORCE_COLOR", "") not in ("", "0"):
            return True
        return stream.terminal and self.variables.get("TERM") != "dumb"

    def columns(self) -> int:
        """The width of the terminal behind stderr or stdout, 80 where there is none."""
        for stream in (self.stdout, self.stderr):
            if stream.terminal and stream.descriptor is not None:
                with contextlib.suppress(OSError):
                    return os.get_terminal_size(stream.descriptor).columns or 80
        return 80

    def now(self) -> float:
        """Seconds since the epoch, or SOURCE_DATE_EPOCH where it is set."""
        fixed = self.variables.get("SOURCE_DATE_EPOCH", "")
        return float(fixed) if fixed.isdigit() else self.wall_clock()


def of_this_process() -> Environment:
    """The real thing."""
    interrupt = Interrupt()
    stdin = _descriptor(0)
    return Environment(
        stdin=stdin,
        stdin_terminal=stdin is not None and os.isatty(stdin),
        stdout=_stream(1, interrupt),
        stderr=_stream(2, interrupt),
        variables=os.environ,
        interrupt=interrupt,
    )


def _descriptor(number: int) -> int | None:
    try:
        os.fstat(number)
    except OSError:
        return None
    return number


def _stream(number: int, interrupt: Interrupt) -> Stream:
    descriptor = _descriptor(number)
    return Stream(descriptor, interrupt, terminal=descriptor is not None and os.isatty(descriptor))


def occupy_closed_descriptors() -> None:
    """Open the null device on every standard descriptor that is closed.

    Otherwise the next file that is opened gets the number of stdout, and what is printed goes into it.
    """
    for number in (0, 1, 2):
        if _descriptor(number) is None:
            os.open(os.devnull, os.O_RDWR)


def die_of_ctrl_c() -> None:
    """Let Ctrl-C end the process at once, as long as there is nothing to keep; Python would raise anywhere."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextlib.contextmanager
def listening(interrupt: Interrupt, *, patience: int = 1) -> Iterator[None]:
    """While inside, the stop signals set the flag instead of ending the process; more than `patience` of them end it.

    Python's handlers wait for the interpreter, and llama.cpp may be busy for seconds. The wake-up descriptor is
    written by the C handler itself, so a thread that reads it sees the signal at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    # A shell that starts a job with nohup, or in the background, has the signal ignored; so it stays.
    heard = [number for number in STOP_SIGNALS if before[number] is not signal.SIG_IGN]
    for number in heard:
        signal.signal(number, lambda received, _frame: _received(interrupt, received))
    wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(reading, interrupt, patience), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        for number in heard:
            signal.signal(number, before[number])
        os.close(writing)
        watcher.join()
        os.close(reading)


@contextlib.contextmanager
def handling(handlers: Mapping[int, Callable[[int], object]]) -> Iterator[None]:
    """While inside, these signals do this instead, but for those that were ignored; `listening` outside is deaf."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in handlers}
    heard = {number: act for number, act in handlers.items() if before[number] is not signal.SIG_IGN}
    wakeup = signal.set_wakeup_fd(-1)
    for number, act in heard.items():
        signal.signal(number, lambda received, _frame, act=act: act(received))
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, before[number])
        signal.set_wakeup_fd(wakeup)


def _received(interrupt: Interrupt, number: int) -> None:
    interrupt.set(number)
    if interrupt.blocking:
        raise Interrupted


def _watch(reading: int, interrupt: Interrupt, patience: int) -> None:
    heard = 0
    while data := os.read(reading, 64):
        for number in data:
            if number in STOP_SIGNALS:
                interrupt.set(number)
                heard += 1
        if heard > patience:
            os._exit(128 + interrupt.signal)


def die_of(number: int) -> NoReturn:
    """End the process by this very signal, so that whoever waits for it learns the truth."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)


def end(status: int) -> NoReturn:
    """End the process now, whoever has closed its outputs.

    All is written and freed: to take the interpreter apart would cost a short command a tenth of its time.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)
