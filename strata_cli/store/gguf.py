"""Read the header of a GGUF file: metadata, tensors, what is missing. No number in it is believed before it is checked.

A broken file is refused here with one clear line; the same file given to llama.cpp may end the process.
Layout: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import mmap
import os
import re
import stat
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from strata_cli.errors import FILE_NOT_READABLE, MODEL_INCOMPLETE, MODEL_NOT_FOUND, MODEL_NOT_GGUF, StrataError

# Far above every real model, far below what would hang or fill the memory.
_MOST_KEYS = 65_536
_MOST_TENSORS = 262_144
_MOST_DIMENSIONS = 8
_MOST_PARTS = 10_000
_LARGEST_NUMBER = 1 << 62
# Longer arrays (vocabularies, merges) are walked over and only counted.
_LONGEST_ARRAY = 1_024

# ggml type number -> (elements in a block, bytes in a block); from ggml_blck_size and ggml_type_size.
BLOCKS: Mapping[int, tuple[int, int]] = MappingProxyType(
    {
        0: (1, 4),  # f32
        1: (1, 2),  # f16
        2: (32, 18),  # q4_0
        3: (32, 20),  # q4_1
        6: (32, 22),  # q5_0
        7: (32, 24),  # q5_1
        8: (32, 34),  # q8_0
        9: (32, 36),  # q8_1
        10: (256, 84),  # q2_K
        11: (256, 110),  # q3_K
        12: (256, 144),  # q4_K
        13: (256, 176),  # q5_K
        14: (256, 210),  # q6_K
        15: (256, 292),  # q8_K
        16: (256, 66),  # iq2_xxs
        17: (256, 74),  # iq2_xs
        18: (256, 98),  # iq3_xxs
        19: (256, 50),  # iq1_s
        20: (32, 18),  # iq4_nl
        21: (256, 110),  # iq3_s
        22: (256, 82),  # iq2_s
        23: (256, 136),  # iq4_xs
        24: (1, 1),  # i8
        25: (1, 2),  # i16
        26: (1, 4),  # i32
        27: (1, 8),  # i64
        28: (1, 8),  # f64
        29: (256, 56),  # iq1_m
        30: (1, 2),  # bf16
        34: (256, 54),  # tq1_0
        35: (256, 66),  # tq2_0
        39: (32, 17),  # mxfp4
        40: (64, 36),  # nvfp4
        41: (128, 18),  # q1_0
        42: (64, 18),  # q2_0
    }
)

_STRING, _ARRAY = 8, 9
_SCALARS: Mapping[int, struct.Struct] = MappingProxyType(
    {number: struct.Struct("<" + code) for number, code in enumerate("BbHhIif?", start=0)}
    | {10: struct.Struct("<Q"), 11: struct.Struct("<q"), 12: struct.Struct("<d")}
)
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
_HEAD = struct.Struct("<4sIQQ")


@dataclass(frozen=True, slots=True)
class Omitted:
    """A long array that was counted and not kept."""

    count: int


Scalar: TypeAlias = int | float | bool | str
Value: TypeAlias = Scalar | tuple[Scalar, ...] | Omitted


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor's place in its file: `offset` and `size` in bytes; `size` is None for a type that is not known here."""

    name: str
    shape: tuple[int, ...]
    type: int
    offset: int
    size: int | None


@dataclass(frozen=True, slots=True)
class GgufFile:
    """The header of one file; `size` is the whole file's, in bytes."""

    path: Path
    version: int
    metadata: Mapping[str, Value]
    tensors: tuple[Tensor, ...]
    size: int

    @property
    def missing_bytes(self) -> int:
        """How far the last tensor reaches beyond the end of the file."""
        ends = (tensor.offset + (tensor.size or 0) for tensor in self.tensors)
        return max(0, max(ends, default=0) - self.size)

    def text(self, key: str) -> str:
        """A metadata string, empty when it is absent or no string."""
        value = self.metadata.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> int | None:
        """A metadata integer, None when it is absent or no integer."""
        value = self.metadata.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


class _Damaged(Exception):
    """What is wrong with the header."""


def read(path: str | Path) -> GgufFile:
    """The header of one file; raises MODEL_NOT_FOUND, FILE_NOT_READABLE or MODEL_NOT_GGUF."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            size = _size_of_regular(path, file.fileno())
            if size < _HEAD.size:
                raise _not_gguf(path, f"it has only {size} bytes" if size else "it is empty")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
                return _parse(path, memory, size)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        # ValueError: a NUL in the name.
        raise StrataError(MODEL_NOT_FOUND, f"There is no file {path}.") from None
    except IsADirectoryError:
        raise _not_gguf(path, "it is a directory") from None
    except OSError as error:
        raise StrataError(FILE_NOT_READABLE, f"{path} cannot be read: {error.strerror}.") from None


def read_model(path: str | Path) -> tuple[GgufFile, ...]:
    """The headers of all files of a model, named by its only or first file, each checked to be whole.

    Raises what `read` raises, and MODEL_INCOMPLETE.
    """
    first = read(path)
    files = (first, *(read(part) for part in _other_parts(first)))
    for file in files:
        if missing := file.missing_bytes:
            raise StrataError(
                MODEL_INCOMPLETE,
                f"{file.path} is cut short: {missing:,} bytes are missing (it has {file.size:,}).",
                hint="The download did not finish; download it again.",
            )
    return files


def _size_of_regular(path: Path, descriptor: int) -> int:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise _not_gguf(path, "it is no regular file")
    return status.st_size


def _not_gguf(path: Path, reason: str) -> StrataError:
    return StrataError(MODEL_NOT_GGUF, f"{path} is not a usable GGUF file: {reason}.")


def _parse(path: Path, memory: mmap.mmap, size: int) -> GgufFile:
    try:
        version, tensor_count, key_count = _head(memory)
        position, metadata = _metadata(memory, _HEAD.size, key_count)
        tensors = tuple(_tensors(memory, position, tensor_count, metadata))
    except _Damaged as damage:
        raise _not_gguf(path, str(damage)) from None
    except (struct.error, IndexError, OverflowError):
        # Every read past the end of the mapping ends here.
        raise _not_gguf(path, "its header is cut short or damaged") from None
    return GgufFile(path, version, MappingProxyType(metadata), tensors, size)


def _head(memory: mmap.mmap) -> tuple[int, int, int]:
    magic, version, tensors, keys = _HEAD.unpack_from(memory, 0)
    if magic != b"GGUF":
        raise _Damaged("it does not begin with GGUF")
    if version & 0xFFFF == 0:
        raise _Damaged("it is big-endian; convert it with gguf-convert-endian")
    if version not in (2, 3):
        raise _Damaged(f"its version is {version}, and only 2 and 3 are known")
    if keys > _MOST_KEYS or tensors > _MOST_TENSORS:
        raise _Damaged(f"its header counts {keys} keys and {tensors} tensors")
    return version, tensors, keys


def _string(memory: mmap.mmap, position: int) -> tuple[int, str]:
    (length,) = _U64.unpack_from(memory, position)
    start, end = position + 8, position + 8 + length
    if end > len(memory):
        raise _Damaged("a text in its header reaches beyond its end")
    return end, memory[start:end].decode("utf-8", "replace")


def _metadata(memory: mmap.mmap, position: int, count: int) -> tuple[int, dict[str, Value]]:
    metadata: dict[str, Value] = {}
    for _ in range(count):
        position, key = _string(memory, position)
        (kind,) = _U32.unpack_from(memory, position)
        position, metadata[key] = _value(memory, position + 4, kind)
    return position, metadata


def _value(memory: mmap.mmap, position: int, kind: int) -> tuple[int, Value]:
    if kind == _STRING:
        return _string(memory, position)
    if kind == _ARRAY:
        return _array(memory, position)
    scalar = _SCALARS.get(kind)
    if scalar is None:
        raise _Damaged(f"a value in its header has the unknown type {kind}")
    return position + scalar.size, scalar.unpack_from(memory, position)[0]


def _array(memory: mmap.mmap, position: int) -> tuple[int, Value]:
    (kind,) = _U32.unpack_from(memory, position)
    (count,) = _U64.unpack_from(memory, position + 4)
    position += 12
    if kind == _ARRAY or (kind != _STRING and kind not in _SCALARS):
        raise _Damaged(f"a list in its header has the unknown type {kind}")
    smallest = 8 if kind == _STRING else _SCALARS[kind].size
    if count * smallest > len(memory) - position:
        raise _Damaged("a list in its header reaches beyond its end")
    if count > _LONGEST_ARRAY:
        end = _skip_strings(memory, position, count) if kind == _STRING else position + count * smallest
        return end, Omitted(count)
    values: list[Scalar] = []
    for _ in range(count):
        position, value = _value(memory, position, kind)
        assert not isinstance(value, tuple | Omitted)
        values.append(value)
    return position, tuple(values)


def _skip_strings(memory: mmap.mmap, position: int, count: int) -> int:
    # Half a million strings in large vocabularies: this loop is most of the time that a header takes.
    length_at: Callable[[mmap.mmap, int], tuple[int]] = _U64.unpack_from
    for _ in range(count):
        position += 8 + length_at(memory, position)[0]
    if position > len(memory):
        raise _Damaged("a list in its header reaches beyond its end")
    return position


def _tensors(memory: mmap.mmap, position: int, count: int, metadata: Mapping[str, Value]) -> Iterator[Tensor]:
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 0 < alignment <= 1 << 20 or alignment & (alignment - 1):
        raise _Damaged(f"its alignment is {alignment!r}")
    found = []
    for _ in range(count):
        position, tensor = _tensor(memory, position)
        found.append(tensor)
    data = (position + alignment - 1) // alignment * alignment
    for name, shape, kind, offset in found:
        yield Tensor(name, shape, kind, data + offset, _bytes(shape, kind))


def _tensor(memory: mmap.mmap, position: int) -> tuple[int, tuple[str, tuple[int, ...], int, int]]:
    position, name = _string(memory, position)
    (dimensions,) = _U32.unpack_from(memory, position)
    if dimensions > _MOST_DIMENSIONS:
        raise _Damaged(f"a tensor in it has {dimensions} dimensions")
    shape = struct.unpack_from(f"<{dimensions}Q", memory, position + 4)
    position += 4 + 8 * dimensions
    (kind,) = _U32.unpack_from(memory, position)
    (offset,) = _U64.unpack_from(memory, position + 4)
    if offset > _LARGEST_NUMBER or prod(shape) > _LARGEST_NUMBER:
        raise _Damaged("the size of a tensor in it makes no sense")
    return position + 12, (name, shape, kind, offset)


def _bytes(shape: tuple[int, ...], kind: int) -> int | None:
    if kind not in BLOCKS:
        return None
    elements, size = BLOCKS[kind]
    return prod(shape) // elements * size


def _other_parts(first: GgufFile) -> list[Path]:
    count = first.number("split.count") or 1
    if count == 1:
        return []
    if not 1 < count <= _MOST_PARTS:
        raise _not_gguf(first.path, f"it says that it has {count} parts")
    if first.number("split.no"):
        raise StrataError(
            MODEL_INCOMPLETE,
            f"{first.path} is one of {count} parts, and not the first.",
            hint=f"Name the file that ends in -00001-of-{count:05d}.gguf.",
        )
    match = re.fullmatch(r"(.*)-00001-of-\d{5}\.gguf", first.path.name, re.DOTALL)
    if match is None:
        raise StrataError(
            MODEL_INCOMPLETE,
            f"{first.path} is the first of {count} parts, but its name does not end in -00001-of-{count:05d}.gguf.",
            hint="Give the parts their original names.",
        )
    parts = [first.path.with_name(f"{match[1]}-{number:05d}-of-{count:05d}.gguf") for number in range(2, count + 1)]
    for part in parts:
        if not part.exists():
            raise StrataError(MODEL_INCOMPLETE, f"{part} is missing: {first.path.name} is the first of {count} parts.")
    return parts
