"""The GGUF reader: what it reads from good files, and that no bad file gets past it or makes it slow."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strata_cli.errors import (
    FILE_NOT_READABLE,
    MODEL_INCOMPLETE,
    MODEL_NOT_FOUND,
    MODEL_NOT_GGUF,
    Kind,
    StrataError,
)
from strata_cli.store.gguf import Omitted, read, read_model
from tests import tiny


def test_metadata_and_tensors_are_read(tiny_model: Path) -> None:
    file = read(tiny_model)
    assert file.version == 3
    assert file.text("general.architecture") == "llama"
    assert file.text("tokenizer.chat_template") == tiny.CHATML
    assert file.number("llama.context_length") == tiny.CONTEXT
    assert file.text("absent") == "" and file.number("absent") is None
    assert file.metadata["tokenizer.ggml.token_type"] != ()
    embedding = next(tensor for tensor in file.tensors if tensor.name == "token_embd.weight")
    assert embedding.shape == (tiny.WIDTH, len(tiny.vocabulary()[0]))
    assert embedding.size == 4 * tiny.WIDTH * embedding.shape[1]
    assert file.missing_bytes == 0


def test_our_reading_agrees_with_the_gguf_package(tiny_model: Path) -> None:
    from gguf import GGUFReader

    theirs = {tensor.name: (tensor.data_offset, tensor.n_bytes) for tensor in GGUFReader(tiny_model).tensors}
    assert {tensor.name: (tensor.offset, tensor.size) for tensor in read(tiny_model).tensors} == theirs


@pytest.mark.model
def test_long_arrays_are_counted_and_not_kept(demo_model: Path) -> None:
    file = read(demo_model)
    assert file.metadata["tokenizer.ggml.tokens"] == Omitted(49_152)
    assert file.missing_bytes == 0


def test_block_sizes_are_those_of_the_library() -> None:
    import ctypes

    from strata_cli.engine.llama import library
    from strata_cli.store.gguf import BLOCKS

    library.load()
    elements = library.symbol("ggml_blck_size", ctypes.c_int64, ctypes.c_int)
    size = library.symbol("ggml_type_size", ctypes.c_size_t, ctypes.c_int)
    assert {kind: (elements(kind), size(kind)) for kind in BLOCKS} == dict(BLOCKS)


def refusal(path: Path, kind: Kind) -> str:
    with pytest.raises(StrataError) as caught:
        read_model(path)
    assert caught.value.kind is kind
    assert "\n" not in caught.value.message
    return caught.value.message


def test_what_is_no_model_file_is_refused(tmp_path: Path) -> None:
    assert "no file" in refusal(tmp_path / "absent.gguf", MODEL_NOT_FOUND)
    assert "directory" in refusal(tmp_path, MODEL_NOT_GGUF)
    empty = tmp_path / "empty.gguf"
    empty.touch()
    assert "empty" in refusal(empty, MODEL_NOT_GGUF)
    text = tmp_path / "text.gguf"
    text.write_text("This is a text and no model at all.")
    assert "begin with GGUF" in refusal(text, MODEL_NOT_GGUF)
    assert "no file" in refusal(text / "inside", MODEL_NOT_FOUND)
    refusal(Path("a\0b"), MODEL_NOT_FOUND)


@pytest.mark.skipif(os.name == "nt", reason="POSIX files")
def test_special_and_locked_files_are_refused(tmp_path: Path) -> None:
    refusal(Path("/dev/zero"), MODEL_NOT_GGUF)
    locked = tmp_path / "locked.gguf"
    locked.write_bytes(b"GGUF")
    locked.chmod(0)
    if os.access(locked, os.R_OK):
        pytest.skip("root reads everything")
    refusal(locked, FILE_NOT_READABLE)


def header(*, magic: bytes = b"GGUF", version: int = 3, tensors: int = 0, keys: int = 0, rest: bytes = b"") -> bytes:
    return struct.pack("<4sIQQ", magic, version, tensors, keys) + rest


def key(name: bytes, kind: int, value: bytes) -> bytes:
    return struct.pack("<Q", len(name)) + name + struct.pack("<I", kind) + value


def tensor(shape: tuple[int, ...], kind: int, offset: int) -> bytes:
    return struct.pack(f"<Q1sI{len(shape)}QIQ", 1, b"t", len(shape), *shape, kind, offset)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (header(version=1), "version"),
        (header(version=0x03000000), "big-endian"),
        (header(keys=2**63), "keys"),
        (header(tensors=2**63), "tensors"),
        (header(keys=1), "cut short"),
        (header(keys=1, rest=struct.pack("<Q", 2**63)), "beyond"),
        (header(keys=1, rest=key(b"k", 77, b"")), "unknown type"),
        (header(keys=1, rest=key(b"k", 9, struct.pack("<IQ", 9, 1))), "unknown type"),
        (header(keys=1, rest=key(b"k", 9, struct.pack("<IQ", 8, 2**61))), "beyond"),
        (header(keys=1, rest=key(b"k", 9, struct.pack("<IQ", 8, 2000) + b"\xff" * 16_000)), "header"),
        (header(keys=1, rest=key(b"general.alignment", 4, struct.pack("<I", 0))), "alignment"),
        (header(keys=1, rest=key(b"general.alignment", 4, struct.pack("<I", 3))), "alignment"),
        (header(tensors=1, rest=tensor((1,) * 9, 0, 0)), "dimensions"),
        (header(tensors=1, rest=tensor((2**40, 2**40), 0, 0)), "size"),
        (header(tensors=1, rest=tensor((1,), 0, 2**63)), "size"),
    ],
)
def test_damaged_headers_are_named(tmp_path: Path, data: bytes, word: str) -> None:
    path = tmp_path / "damaged.gguf"
    path.write_bytes(data)
    assert word in refusal(path, MODEL_NOT_GGUF)


def test_a_cut_file_says_how_much_is_missing(tiny_model: Path, tmp_path: Path) -> None:
    data = tiny_model.read_bytes()
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(data[:-1000])
    assert "1,000 bytes are missing" in refusal(cut, MODEL_INCOMPLETE)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_no_damage_gets_past_the_reader_as_another_error(tiny_model: Path, tmp_path_factory, data) -> None:
    original = tiny_model.read_bytes()[:6000]
    position = data.draw(st.integers(0, len(original) - 9))
    patch = data.draw(st.binary(min_size=1, max_size=8))
    end = data.draw(st.sampled_from([len(original), position + 8]))
    path = tmp_path_factory.getbasetemp() / "patched.gguf"
    path.write_bytes((original[:position] + patch + original[position + len(patch) :])[:end])
    try:
        read_model(path)
    except StrataError as error:
        assert error.kind in (MODEL_NOT_GGUF, MODEL_INCOMPLETE)


def test_the_parts_of_a_split_model_are_found_and_a_missing_one_is_named(tmp_path: Path) -> None:
    def part(number: int, name: str) -> Path:
        fields = key(b"split.count", 2, struct.pack("<H", 3)) + key(b"split.no", 2, struct.pack("<H", number))
        path = tmp_path / name
        path.write_bytes(header(keys=2, rest=fields))
        return path

    first = part(0, "m-00001-of-00003.gguf")
    second = part(1, "m-00002-of-00003.gguf")
    assert "m-00003-of-00003.gguf is missing" in refusal(first, MODEL_INCOMPLETE)
    part(2, "m-00003-of-00003.gguf")
    assert [file.path.name[2:7] for file in read_model(first)] == ["00001", "00002", "00003"]
    assert "not the first" in refusal(second, MODEL_INCOMPLETE)
    assert "name" in refusal(part(0, "renamed.gguf"), MODEL_INCOMPLETE)
