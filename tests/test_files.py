"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from strata_cli.errors import OUTPUT_FAILED, StrataError
from strata_cli.store.files import replacing

root = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


def write(name: str | Path, data: bytes, mode: int = 0o666) -> None:
    with replacing(name, mode) as descriptor:
        os.write(descriptor, data)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def no_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_a_new_file(tmp_path: Path, no_umask: None) -> None:
    write(tmp_path / "new", b"text")
    assert (tmp_path / "new").read_bytes() == b"text"
    assert mode_of(tmp_path / "new") == 0o644
    write(tmp_path / "private", b"text", 0o600)
    assert mode_of(tmp_path / "private") == 0o600
    assert len(list(tmp_path.iterdir())) == 2


def test_an_old_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_bytes(b"before, and longer")
    path.chmod(0o640)
    write(path, b"after", 0o600)
    assert (path.read_bytes(), mode_of(path)) == (b"after", 0o640)


def test_the_old_text_stands_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    with replacing(path) as descriptor:
        os.write(descriptor, b"after")
        assert path.read_bytes() == b"before"
    assert path.read_bytes() == b"after"


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, StrataError(OUTPUT_FAILED, "no")])
def test_a_failure_leaves_the_old_file(tmp_path: Path, failure: BaseException) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    with pytest.raises(failure if isinstance(failure, type) else type(failure)), replacing(path) as descriptor:
        os.write(descriptor, b"aft")
        raise failure
    assert path.read_bytes() == b"before"
    assert [found.name for found in tmp_path.iterdir()] == ["file"]


def test_a_failure_leaves_no_new_file(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), replacing(tmp_path / "file"):
        raise RuntimeError
    assert not list(tmp_path.iterdir())


def test_an_error_of_the_system_in_the_block_is_ours(tmp_path: Path) -> None:
    with pytest.raises(StrataError) as caught, replacing(tmp_path / "file") as descriptor:
        os.close(descriptor)
        os.open(os.devnull, os.O_RDONLY)
        os.write(descriptor, b"x")
    assert caught.value.kind is OUTPUT_FAILED
    assert not list(tmp_path.iterdir())


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"before")
    (tmp_path / "link").symlink_to("target")
    write(tmp_path / "link", b"after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"after"


def test_a_link_to_nothing_makes_its_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    write(tmp_path / "link", b"after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"after"


def test_a_device_is_written_to() -> None:
    write("/dev/null", b"text")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_full_device() -> None:
    with pytest.raises(StrataError) as caught:
        write("/dev/full", b"text")
    assert caught.value.kind is OUTPUT_FAILED and "/dev/full" in caught.value.message


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write(tmp_path / "pipe", b"text")
    reader.join()
    assert read == [b"text"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize("name", ["missing/file", "file/below", ".", "a\0b", "/proc/strata"])
def test_a_place_that_cannot_be(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StrataError) as caught:
        write(tmp_path / name, b"text")
    assert caught.value.kind is OUTPUT_FAILED
    assert caught.value.message.startswith("cannot write ")


@root
def test_an_unwritable_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StrataError) as caught:
        write(tmp_path / "file", b"text")
    tmp_path.chmod(0o700)
    assert caught.value.kind is OUTPUT_FAILED
    assert not list(tmp_path.iterdir())


def test_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write("~/file", b"text")
    assert (tmp_path / "file").read_bytes() == b"text"


def test_the_home_of_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StrataError) as caught:
        write("~no-such-user/file", b"text")
    assert caught.value.kind is OUTPUT_FAILED


def test_a_long_name(tmp_path: Path) -> None:
    """The name of the fresh file has to fit too."""
    write(tmp_path / ("n" * 255), b"text")
    assert [found.name for found in tmp_path.iterdir()] == ["n" * 255]
