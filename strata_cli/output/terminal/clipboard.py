"""The clipboard, by whichever program reaches it, else by the terminal itself."""

from __future__ import annotations

import base64
import contextlib
import shutil
import subprocess

from strata_cli.environment import Environment
from strata_cli.errors import NOT_IN_THIS_BUILD, StrataError

_PROGRAMS = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
    ("", ("pbcopy",)),
    ("", ("clip.exe",)),
)
PATIENCE = 5
"""Seconds for a program whose display does not answer."""


def copy(environment: Environment, text: str) -> str:
    """Put the text on the clipboard; returns what did it. A terminal gets OSC 52, which it may ignore.

    Raises NOT_IN_THIS_BUILD where there is neither a program nor a terminal.
    """
    data = text.encode("utf-8", "replace")
    for variable, command in _PROGRAMS:
        path = shutil.which(command[0], path=environment.variables.get("PATH"))
        if path and (not variable or environment.variables.get(variable)) and _fed((path, *command[1:]), data):
            return command[0]
    if not environment.stdout.terminal or environment.variables.get("TERM") == "dumb":
        hint = "install wl-copy, xclip or xsel; /save writes the conversation to a file"
        raise StrataError(NOT_IN_THIS_BUILD, "there is no clipboard here", hint=hint)
    environment.stdout.text(f"\x1b]52;c;{base64.b64encode(data).decode()}\x07")
    return "the terminal (OSC 52)"


def _fed(command: tuple[str, ...], data: bytes) -> bool:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        # What stays behind to serve the clipboard must not hold the terminal.
        silent = subprocess.DEVNULL
        done = subprocess.run(command, input=data, stdout=silent, stderr=silent, check=False, timeout=PATIENCE)
        return done.returncode == 0
    return False
