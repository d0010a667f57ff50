"""The line that the user types: history, completion, paste, editor. Knows nothing of what the commands do."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from strata_cli.errors import FILE_NOT_READABLE, StrataError


class Reader:
    """Asks for one input after another. Enter sends it, Alt-Enter or Ctrl-J starts a new line in it."""

    def __init__(
        self,
        commands: Mapping[str, str],
        path_commands: Iterable[str],
        history: Path | None,
        toolbar: Callable[[], str],
        **terminal: Any,
    ) -> None:
        self._session: PromptSession[str] = PromptSession(
            history=_history(history),
            completer=_Commands(commands, tuple(path_commands)),
            complete_while_typing=False,
            multiline=True,
            key_bindings=_keys(),
            prompt_continuation="  ",
            bottom_toolbar=lambda: FormattedText([("class:bottom-toolbar", toolbar())]),
            enable_open_in_editor=True,
            **terminal,
        )

    def ask(self, default: str = "") -> str:
        """One input, as typed; raises EOFError on Ctrl-D and KeyboardInterrupt on Ctrl-C."""
        return self._session.prompt("> ", default=default)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    @keys.add("c-j")
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def _history(file: Path | None) -> History:
    """The history file, readable by its owner only; in memory where it cannot be written."""
    if file is None:
        return InMemoryHistory()
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
        file.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))


class _Commands(Completer):
    """Completes `/command` at the beginning of the input, and a path after those that take one."""

    def __init__(self, commands: Mapping[str, str], path_commands: tuple[str, ...]) -> None:
        self._commands = commands
        self._path_commands = path_commands
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        command, space, rest = text.partition(" ")
        if not space and text.startswith("/"):
            for name, help in self._commands.items():
                if name.startswith(text):
                    yield Completion(name, start_position=-len(text), display_meta=help)
        elif command in self._path_commands:
            yield from self._paths.get_completions(Document(rest, len(rest)), event)


def edit(text: str, variables: Mapping[str, str]) -> str:
    """Let the user change a text in $VISUAL or $EDITOR; raises FILE_NOT_READABLE when the editor fails."""
    command = shlex.split(variables.get("VISUAL") or variables.get("EDITOR") or "vi")
    descriptor, name = tempfile.mkstemp(suffix=".md", prefix="strata-")
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        status = subprocess.run([*command, name], check=False).returncode
        if status:
            raise StrataError(FILE_NOT_READABLE, f"{command[0]} ended with status {status}", hint="nothing was changed")
        edited = Path(name).read_bytes().decode("utf-8", "replace")
    except OSError as error:
        hint = "set VISUAL or EDITOR to an editor that is installed"
        raise StrataError(FILE_NOT_READABLE, f"cannot run {command[0]}: {error.strerror}", hint=hint) from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)
    # Editors end a file with a newline of their own.
    return edited[:-1] if edited.endswith("\n") and not text.endswith("\n") else edited
