"""Runs Strata's command line: inside this process for speed, or as a real process for signals and terminals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

from strata_cli.cli import run
from strata_cli.environment import Environment, Interrupt, Stream


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    status: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


def strata(*args: str, stdin: bytes | str | None = None, terminal: bool = False, **variables: str) -> Done:
    """Run a command line in this process; `stdin` None is a closed one, `terminal` says what the outputs are."""
    interrupt = Interrupt()
    with tempfile.TemporaryFile() as inward, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        if stdin is not None:
            inward.write(stdin.encode() if isinstance(stdin, str) else stdin)
            inward.seek(0)
        environment = Environment(
            stdin=None if stdin is None else inward.fileno(),
            stdin_terminal=False,
            stdout=Stream(out.fileno(), interrupt, terminal=terminal),
            stderr=Stream(err.fileno(), interrupt, terminal=terminal),
            variables={"HOME": "/nonexistent", "XDG_CACHE_HOME": "/dev/null", "TERM": "xterm", **variables},
            interrupt=interrupt,
        )
        status = run(list(args), environment)
        out.seek(0)
        err.seek(0)
        return Done(int(status), out.read(), err.read().decode())


def process(*args: str, **more: Any) -> subprocess.Popen[bytes]:
    """Start Strata as a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **more.pop("env", {})}
    return subprocess.Popen([sys.executable, "-m", "strata_cli", *args], env=environment, **more)
