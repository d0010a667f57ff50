"""Models in llama.cpp, through its own C API. Importing this loads no library; opening a model does."""

from __future__ import annotations

from strata_cli.engine.llama.model import LlamaEngine, open_model
from strata_cli.engine.llama.timeline import LlamaTimeline

__all__ = ["LlamaEngine", "LlamaTimeline", "open_model"]
