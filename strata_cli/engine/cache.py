"""Evaluated prompts on disk, so that the next process that begins like one of them need not evaluate it again.

A file holds one text's tokens and the state that an engine made of them. What llama.cpp reads of a state it believes,
so a file is used only when its length and its checksum are right. Files appear whole or not at all, so that several
processes may use one folder without a lock.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from strata_cli.store.files import appearing, cache_home, unfinished

LIMIT = 2_000_000_000
"""Bytes that all files together may take."""

SLOW = 1.0
"""Seconds of evaluation from which on a text is worth a file."""

_MAGIC = b"strata prompt 1\n"
_HEAD = struct.Struct("<16s32sQQ32s")
_DIGEST = 32
_SUFFIX, _MARK = ".prompt", "prompt-"
_ABANDONED = 3600.0
"""Seconds after which a file that never became whole has no writer any more."""


def folder_of(variables: Mapping[str, str]) -> Path:
    """The folder of the cache: strata/prompts in the XDG cache folder."""
    return cache_home(variables) / "strata" / "prompts"


def identity(parts: Sequence[object]) -> bytes:
    """What a state depends on beside its tokens, as 32 bytes; what another model or build made is foreign."""
    return _hash(repr((sys.byteorder, *parts)).encode())


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of the cache; `bytes` is its size, `used` when it was used last, in seconds since the epoch."""

    path: Path
    bytes: int
    used: float


@dataclass(frozen=True, slots=True)
class Found:
    """A file that begins with the tokens that were asked for, `common` of them."""

    path: Path
    tokens: list[int]
    common: int


class PromptCache:
    """The evaluated prompts in a folder; what goes wrong in it is a note, and never an error."""

    def __init__(self, folder: Path, note: Callable[[str], None], limit: int = LIMIT) -> None:
        self._folder, self._note, self._limit = folder, note, limit

    # Reading

    def find(self, key: bytes, tokens: Sequence[int], *, more_than: int = 0, whole: bool = False) -> Found | None:
        """The file that has the longest beginning in common with these tokens, if that is longer than `more_than`.

        With `whole`, only files all of whose tokens are that beginning.
        """
        wanted, best = array("i", tokens), None
        for entry in self.entries():
            held = self._tokens(entry.path, key)
            if held is None:
                continue
            common = common_length(held, wanted)
            if whole and common < len(held):
                continue
            if common > (best.common if best is not None else more_than):
                best = Found(entry.path, held.tolist(), common)
        return best

    def load(self, found: Found) -> memoryview | None:
        """The state in a file, as writable memory; None, and a note, for a damaged one, which is removed."""
        try:
            data = bytearray(found.path.stat().st_size)
            with found.path.open("rb") as file:
                read = file.readinto(data)
            state = _state(memoryview(data)[:read])
        except (OSError, MemoryError):
            return None
        if state is None:
            self.refuse(found.path)
            return None
        with contextlib.suppress(OSError):
            os.utime(found.path)
        return state

    def refuse(self, path: Path) -> None:
        """Remove a file that is of no use to anybody."""
        self._note(f"the cached prompt {path} is damaged; it is removed, and the prompt evaluated")
        self._remove(path)

    def _tokens(self, path: Path, key: bytes) -> array[int] | None:
        """A file's tokens, None for a foreign file."""
        try:
            with path.open("rb") as file:
                head = file.read(_HEAD.size)
                if len(head) < _HEAD.size or head[: len(_MAGIC)] != _MAGIC:
                    self.refuse(path)
                    return None
                _, whose, count, _, _ = _HEAD.unpack(head)
                if whose != key or count > path.stat().st_size:
                    return None
                tokens = array("i", b"")
                data = file.read(count * tokens.itemsize)
                tokens.frombytes(data[: len(data) - len(data) % tokens.itemsize])
                return tokens
        except (OSError, MemoryError):
            return None

    # Writing

    def keep(self, key: bytes, tokens: Sequence[int], state: bytearray | memoryview) -> None:
        """Write a text's state, and remove what was not used for longest where all is too much."""
        if len(state) + 4 * len(tokens) > self._limit:
            return
        first = not self._folder.exists()
        try:
            self._write(key, array("i", tokens).tobytes(), state)
            self._trim()
        except OSError as error:
            self._note(f"the evaluated prompt could not be kept in {self._folder}: {error.strerror}")
            return
        if first:
            self._note(
                f"the evaluated prompt is kept in {self._folder}, so that the next one that begins like it answers "
                "sooner; `strata cache clear` empties it, --no-cache does without"
            )

    def _write(self, key: bytes, tokens: bytes, state: bytearray | memoryview) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{_hash(key, tokens).hex()}{_SUFFIX}"
        head = _HEAD.pack(_MAGIC, key, len(tokens) // array("i").itemsize, len(state), _sum(key, tokens, state))
        with appearing(path, 0o600, _MARK, durable=False) as descriptor:
            for piece in (head, tokens, state):
                rest = memoryview(piece)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]

    def _trim(self) -> None:
        for fresh in unfinished(self._folder, _MARK):
            with contextlib.suppress(OSError):
                if time.time() - fresh.stat().st_mtime > _ABANDONED:
                    fresh.unlink()
        entries = sorted(self.entries(), key=lambda entry: entry.used, reverse=True)
        total = 0
        for entry in entries:
            total += entry.bytes
            if total > self._limit:
                self._remove(entry.path)

    # What is there

    def entries(self) -> Iterator[Entry]:
        """The files, in no order."""
        try:
            found = list(os.scandir(self._folder))
        except OSError:
            return
        for item in found:
            with contextlib.suppress(OSError):
                if item.name.endswith(_SUFFIX) and item.is_file(follow_symlinks=False):
                    status = item.stat()
                    yield Entry(Path(item.path), status.st_size, status.st_mtime)

    def clear(self) -> tuple[int, int]:
        """Remove all files; how many there were, and their bytes."""
        entries = list(self.entries())
        for entry in entries:
            self._remove(entry.path)
        for fresh in unfinished(self._folder, _MARK):
            self._remove(fresh)
        return len(entries), sum(entry.bytes for entry in entries)

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def limit(self) -> int:
        """Bytes that all files together may take."""
        return self._limit

    def _remove(self, path: Path) -> None:
        with contextlib.suppress(OSError):
            path.unlink()


class Shelf:
    """The prompts of one model in a cache."""

    def __init__(self, cache: PromptCache, key: bytes) -> None:
        self._cache, self._key = cache, key
        self.limit = cache.limit

    def find(self, tokens: Sequence[int], *, more_than: int, whole: bool) -> Found | None:
        return self._cache.find(self._key, tokens, more_than=more_than, whole=whole)

    def load(self, found: Found) -> memoryview | None:
        return self._cache.load(found)

    def refuse(self, found: Found) -> None:
        self._cache.refuse(found.path)

    def keep(self, tokens: Sequence[int], state: memoryview) -> None:
        self._cache.keep(self._key, tokens, state)


def _hash(*pieces: bytes | bytearray | memoryview) -> bytes:
    digest = blake2b(digest_size=_DIGEST)
    for piece in pieces:
        digest.update(piece)
    return digest.digest()


def _sum(key: bytes, tokens: bytes | memoryview, state: bytes | bytearray | memoryview) -> bytes:
    """The checksum of a file, the lengths of its parts included."""
    return _hash(key, struct.pack("<QQ", len(tokens), len(state)), tokens, state)


def _state(data: memoryview) -> memoryview | None:
    """The state in a file's bytes, None where they are not what was written."""
    if len(data) < _HEAD.size:
        return None
    magic, key, count, size, checksum = _HEAD.unpack(data[: _HEAD.size])
    middle = _HEAD.size + count * array("i").itemsize
    if magic != _MAGIC or middle + size != len(data):
        return None
    tokens, state = data[_HEAD.size : middle], data[middle:]
    return state if _sum(key, tokens, state) == checksum else None


def common_length(one: Sequence[int], other: Sequence[int]) -> int:
    """How many numbers the two begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
