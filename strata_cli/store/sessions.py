"""Conversations on disk, written whole or not at all, readable by their owner only.

Nothing that somebody else wrote is ever replaced: before each write the file is compared with what this process read
or wrote there last.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from os.path import expanduser, realpath
from pathlib import Path

from strata_cli.errors import OUTPUT_FAILED, SESSION_INVALID, StrataError
from strata_cli.store.files import replacing, unfinished

MARK = "session."
"""In the names of files that are not whole yet."""
PATIENCE = 1.0
"""Seconds to wait for another process that writes to the same folder; it may have been stopped while it did."""


class SessionFile:
    """The file of one conversation; `known` is what it held when this process last read or wrote it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.known: bytes | None = None
        self._swept = False

    @property
    def place(self) -> Path:
        """Where the bytes really are: home folder and symbolic links resolved."""
        return Path(realpath(expanduser(self.name)))

    def read(self) -> bytes | None:
        """The file's bytes, None where there is no such file; raises SESSION_INVALID."""
        try:
            self.known = self.place.read_bytes()
        except FileNotFoundError:
            self.known = None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise StrataError(SESSION_INVALID, f"cannot read {self.name}: {reason}", hint="check the file") from None
        return self.known

    def check(self) -> None:
        """Raise OUTPUT_FAILED now where a later write would: the folder is missing or takes no files."""
        try:
            place = self.place
            if place.exists() and not place.is_file():
                return
            with tempfile.TemporaryFile(dir=place.parent):
                pass
        except OSError as error:
            hint = "check its folder, or name another file"
            raise StrataError(OUTPUT_FAILED, f"cannot write {self.name}: {error.strerror}", hint=hint) from None

    def replace(self, data: bytes) -> None:
        """Write the conversation; raises OUTPUT_FAILED where the file holds what this process does not know."""
        with self._alone():
            if self._foreign():
                hint = "name another file, or remove this one first"
                raise StrataError(OUTPUT_FAILED, f"{self.name} is there already and holds something else", hint=hint)
            self._write(data)

    def keep(self, data: bytes) -> str | None:
        """Write the conversation; where another program changed the file, under a new name beside it, returned."""
        moved = None
        with self._alone():
            if self._foreign():
                moved = self.name = _free(self.name)
                self.known = None
            self._write(data)
        return moved

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes from writing sessions to this folder, as far as its file system has locks."""
        descriptor = None
        try:
            with contextlib.suppress(OSError):
                descriptor = os.open(self.place.parent, os.O_RDONLY | os.O_CLOEXEC)
                _lock(descriptor)
                self._sweep()
            yield
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _sweep(self) -> None:
        """Remove what killed processes left half written: while the lock is held, nobody writes."""
        if not self._swept:
            self._swept = True
            for left in unfinished(self.place.parent, MARK):
                left.unlink(missing_ok=True)

    def _foreign(self) -> bool:
        """Whether the file holds something that this process neither read nor wrote."""
        try:
            if not stat.S_ISREG(self.place.stat().st_mode):
                return False
            return self.place.read_bytes() not in (b"", self.known)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StrataError(OUTPUT_FAILED, f"cannot write {self.name}: {error.strerror}") from None

    def _write(self, data: bytes) -> None:
        with replacing(self.place, mode=0o600, mark=MARK) as descriptor:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        self.known = data


def _free(name: str) -> str:
    """A name like this one that no file has: notes-2.json for notes.json."""
    path = Path(name)
    number = 2
    while os.path.lexists(expanduser(path.with_name(f"{path.stem}-{number}{path.suffix}"))):
        number += 1
    return str(path.with_name(f"{path.stem}-{number}{path.suffix}"))


def _lock(descriptor: int) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
