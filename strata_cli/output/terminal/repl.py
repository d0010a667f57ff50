"""The line that the user types: history, completion, paste, editor. Knows nothing of what the commands do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
import termios
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from strata_cli.conversation.incoming import decode
from strata_cli.environment import STOP_SIGNALS, Environment, Interrupt, handling
from strata_cli.errors import FILE_NOT_READABLE, Interrupted, StrataError
from strata_cli.output.terminal.sanitize import visible_line

PATH = "PATH"
"""Stands for any path among the words that may follow a command."""


class Reader:
    """Asks for one input after another. Enter sends it, Alt-Enter or Ctrl-J starts a new line in it.

    `commands` maps each command to its help, `arguments` to the words that may follow it (PATH for a file);
    `toolbar` is asked for the line below with the number of columns.
    """

    def __init__(
        self,
        commands: Mapping[str, str],
        arguments: Mapping[str, tuple[str, ...]],
        history: Path | None,
        toolbar: Callable[[int], str],
        interrupt: Interrupt,
        **terminal: Any,
    ) -> None:
        self._interrupt = interrupt
        self._toolbar = toolbar
        self._session: PromptSession[str] = PromptSession(
            history=_history(history),
            completer=_Commands(commands, arguments),
            complete_while_typing=False,
            multiline=True,
            key_bindings=_keys(),
            prompt_continuation="  ",
            bottom_toolbar=self._bottom,
            enable_open_in_editor=True,
            enable_suspend=True,
            **terminal,
        )

    def ask(self, default: str = "") -> str:
        """One input, as typed; raises EOFError on Ctrl-D, KeyboardInterrupt on Ctrl-C and Interrupted on a signal."""
        text = self._session.prompt("> ", default=default, pre_run=self._heed)
        # Bytes that are no UTF-8 arrive as lone surrogates.
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    def _bottom(self) -> FormattedText:
        line = visible_line(self._toolbar(get_app().output.get_size().columns))
        return FormattedText([("class:bottom-toolbar", line)])

    def _heed(self) -> None:
        """Let the signals that end the process end the prompt first, which gives the terminal back as it was.

        A Ctrl-C that came before this prompt is over; one that comes after it means what was asked.
        """
        self._interrupt.clear()
        if threading.current_thread() is not threading.main_thread():
            return
        app = get_app()

        def leave(number: int) -> None:
            self._interrupt.set(number)
            if app.is_running and app.future is not None and not app.future.done():
                app.exit(exception=Interrupted())

        for number in STOP_SIGNALS:
            if number != signal.SIGINT and signal.getsignal(number) is not signal.SIG_IGN:
                asyncio.get_running_loop().add_signal_handler(number, leave, number)


def is_dumb(variables: Mapping[str, str]) -> bool:
    """Whether the terminal cannot move its cursor, as far as its name says."""
    return variables.get("TERM", "").lower() in ("", "dumb", "unknown")


class PlainReader:
    """Asks for one line after another as the terminal itself edits them: for one that can do nothing else."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._rest = b""

    def ask(self) -> str:
        """One line; raises EOFError at the end and KeyboardInterrupt on Ctrl-C."""
        with handling({signal.SIGINT: _raise_interrupt}):
            self._environment.interrupt.clear()
            self._environment.stdout.text("> ")
            while b"\n" not in self._rest:
                data = os.read(self._environment.stdin or 0, 1 << 16)
                if not data and not self._rest:
                    self._environment.stdout.text("\n")
                    raise EOFError
                self._rest += data or b"\n"
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace")


def _raise_interrupt(_: int) -> None:
    raise KeyboardInterrupt


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    @keys.add("c-j")
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    @keys.add("<sigint>")
    def _away(event: KeyPressEvent) -> None:
        """Take the text away, for the Up key to bring back; with none, let the loop decide."""
        if event.current_buffer.text:
            event.current_buffer.append_to_history()
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt(), style="class:aborting")

    @keys.add(Keys.Vt100MouseEvent)
    def _no_mouse(_: KeyPressEvent) -> None:
        """A sequence like a mouse's can be typed or pasted too; the handler that is there fails on some of them."""

    return keys


class _File(FileHistory):
    """A history that a full disk or a broken file never stops."""

    def load_history_strings(self) -> Iterable[str]:
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        with contextlib.suppress(OSError):
            super().store_string(string.encode("utf-8", "replace").decode())


def _history(file: Path | None) -> History:
    """The history file, readable by its owner only; in memory where it cannot be written."""
    if file is None:
        return InMemoryHistory()
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
    except OSError:
        return InMemoryHistory()
    return _File(str(file))


class _Commands(Completer):
    """Completes `/command` at the beginning of the input, and then what may follow it."""

    def __init__(self, commands: Mapping[str, str], arguments: Mapping[str, tuple[str, ...]]) -> None:
        self._commands = commands
        self._arguments = arguments
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        command, space, rest = document.text_before_cursor.partition(" ")
        if not command.startswith("/"):
            return
        if not space:
            for name, help in self._commands.items():
                if name.startswith(command):
                    yield Completion(name, start_position=-len(command), display_meta=help)
            return
        words = self._arguments.get(command, ())
        if PATH in words:
            yield from self._paths.get_completions(Document(rest, len(rest)), event)
        for word in words:
            if word != PATH and word.startswith(rest):
                yield Completion(word, start_position=-len(rest))


@contextlib.contextmanager
def unechoed(descriptor: int | None) -> Iterator[None]:
    """While inside, keys are not shown and wait as they are for the next prompt; Ctrl-C and Ctrl-Z work as ever."""
    if descriptor is None or not os.isatty(descriptor):
        yield
        return
    before, quiet = termios.tcgetattr(descriptor), termios.tcgetattr(descriptor)
    quiet[0] &= ~termios.ICRNL
    quiet[3] &= ~(termios.ECHO | termios.ICANON)

    def put(attributes: list[Any]) -> None:
        # A process in the background that touches the terminal is stopped for it.
        with contextlib.suppress(termios.error, OSError):
            if os.tcgetpgrp(descriptor) == os.getpgrp():
                termios.tcsetattr(descriptor, termios.TCSANOW, attributes)

    # After Ctrl-Z the shell gives the terminal back in a mode of its own.
    with _resumed(lambda: put(quiet)):
        put(quiet)
        try:
            yield
        finally:
            put(before)


@contextlib.contextmanager
def _resumed(act: Callable[[], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGCONT, lambda _number, _frame: act())
    try:
        yield
    finally:
        signal.signal(signal.SIGCONT, before)


def edit(text: str, variables: Mapping[str, str], interrupt: Interrupt) -> str:
    """Let the user change a text in $VISUAL or $EDITOR; raises FILE_NOT_READABLE when the editor fails."""
    command = _editor(variables)
    descriptor, name = tempfile.mkstemp(suffix=".md", prefix="strata-")
    try:
        with open(descriptor, "wb") as file:
            file.write(text.encode("utf-8", "replace"))
        status = _run([*command, name], interrupt)
        if status:
            raise StrataError(FILE_NOT_READABLE, f"{command[0]} ended with status {status}", hint="nothing was changed")
        return _as_before(text, decode(Path(name).read_bytes(), "the edited text"))
    except OSError as error:
        hint = "set VISUAL or EDITOR to an editor that is installed"
        raise StrataError(FILE_NOT_READABLE, f"cannot run {command[0]}: {error.strerror}", hint=hint) from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)


def _editor(variables: Mapping[str, str]) -> list[str]:
    said = variables.get("VISUAL") or variables.get("EDITOR") or ""
    try:
        return shlex.split(said) or ["vi"]
    except ValueError as error:
        hint = "correct VISUAL or EDITOR"
        raise StrataError(FILE_NOT_READABLE, f"{said!r} is no command: {error}", hint=hint) from None


def _run(command: list[str], interrupt: Interrupt) -> int:
    """The exit status of a program that has the terminal: Ctrl-C is meant for it, what ends us ends it too."""

    def stop(number: int) -> None:
        interrupt.set(number)
        raise Interrupted

    others = {number: stop for number in STOP_SIGNALS if number != signal.SIGINT}
    with handling({signal.SIGINT: lambda _: None, **others}), subprocess.Popen(command) as program:
        try:
            return program.wait()
        except BaseException:
            program.terminate()
            raise


def _as_before(text: str, edited: str) -> str:
    """The edited text without what the editor does on its own: its line ends, and a newline at the end of the file."""
    if "\r" not in text and edited.count("\r\n") == edited.count("\n"):
        edited = edited.replace("\r\n", "\n")
    if edited.endswith("\n") and not text.endswith("\n"):
        edited = edited[:-1].removesuffix("\r")
    return edited
