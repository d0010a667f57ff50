"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from strata_cli.errors import OUTPUT_FAILED, StrataError

_FRESH = ".strata."
"""What the name of a file begins with until it is whole."""


@contextlib.contextmanager
def replacing(name: str | Path, mode: int = 0o666, mark: str = "") -> Iterator[int]:
    """A descriptor to write to; the file takes the name's place when the block ends, and never if it raises.

    A device, a pipe or a socket has no content to protect and is written to directly. `mode` is for a new file; an
    existing one keeps its own; `mark` is in the name of the file until it is whole. Raises OUTPUT_FAILED.
    """
    path = _target(name)
    try:
        existing = path.stat()
    except OSError:
        existing = None
    try:
        if existing is not None and not stat.S_ISREG(existing.st_mode):
            with _opened(path, os.O_WRONLY, mode) as descriptor:
                yield descriptor
            return
        with appearing(path, mode, mark) as descriptor:
            if existing is not None:
                os.fchmod(descriptor, stat.S_IMODE(existing.st_mode))
            yield descriptor
    except OSError as error:
        raise StrataError(OUTPUT_FAILED, f"cannot write {name}: {error.strerror}", hint="check its folder") from None


@contextlib.contextmanager
def appearing(path: Path, mode: int, mark: str = "", *, durable: bool = True) -> Iterator[int]:
    """A descriptor of a new file, which takes the path's place when the block ends, and never if it raises.

    `durable` where it has to outlive a loss of power. Raises OSError.
    """
    fresh = path.with_name(f"{_FRESH}{mark}{os.urandom(8).hex()}")
    try:
        with _opened(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode) as descriptor:
            yield descriptor
            if durable:
                os.fsync(descriptor)
        os.replace(fresh, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fresh)


def unfinished(folder: Path, mark: str) -> Iterator[Path]:
    """The files with this mark that are not whole: somebody writes them, or was killed."""
    return folder.glob(f"{_FRESH}{mark}*")


def cache_home(variables: Mapping[str, str]) -> Path:
    """The XDG cache folder."""
    return Path(variables.get("XDG_CACHE_HOME") or Path(os.path.expanduser(variables.get("HOME") or "~")) / ".cache")


def _target(name: str | Path) -> Path:
    """The file itself behind links; the home folder of a user that does not exist is no home folder."""
    try:
        return Path(os.path.realpath(os.path.expanduser(name)))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise StrataError(OUTPUT_FAILED, f"cannot write {str(name)!r}: {reason}", hint="check its name") from None


@contextlib.contextmanager
def _opened(path: Path, flags: int, mode: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC, mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
