"""Conversations on disk: a JSON list of messages, written whole or not at all, readable by their owner only."""

from __future__ import annotations

import os
from pathlib import Path

from strata_cli.store.files import replacing


def read(name: str) -> bytes | None:
    """The file's bytes, None where there is no such file; raises OSError."""
    try:
        return Path(os.path.expanduser(name)).read_bytes()
    except FileNotFoundError:
        return None


def write(name: str, text: str) -> None:
    """Replace the session file by this text; raises OUTPUT_FAILED and leaves the old one as it was."""
    with replacing(name, mode=0o600) as descriptor:
        rest = memoryview(text.encode("utf-8", "surrogatepass"))
        while rest:
            rest = rest[os.write(descriptor, rest) :]
