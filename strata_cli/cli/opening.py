"""From options to an open model, a chat template and a way to sample."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Literal

from strata_cli.cli.options import DeviceOptions, ModelOptions, SamplingOptions
from strata_cli.conversation.request import SamplingOptions as Requested
from strata_cli.engine import Engine, ModelInfo, Sampling
from strata_cli.engine import ModelOptions as EngineOptions
from strata_cli.environment import Environment
from strata_cli.errors import INVALID_USAGE, StrataError
from strata_cli.output.terminal.messages import Messages
from strata_cli.output.terminal.progress import Bar
from strata_cli.store import models


def open_engine(
    environment: Environment,
    messages: Messages,
    model: ModelOptions,
    device: DeviceOptions,
    *,
    vocab_only: bool = False,
    quiet: bool = False,
    cached: bool = False,
) -> Engine:
    """Find the model and open it, with a bar; notes say which model answers when none was named.

    With `cached`, evaluated prompts are kept on disk.
    """
    found = models.find(model.model, environment.variables, models.working_folder())
    if not model.model:
        messages.note(f"no model was named (-m, STRATA_MODEL); {found.name} answers")
    options = replace(engine_options(str(found.path), device), vocab_only=vocab_only)

    from strata_cli.engine import llama
    from strata_cli.engine.cache import PromptCache, folder_of

    cache = PromptCache(folder_of(environment.variables), messages.note) if cached else None
    bar = Bar(environment, "loading", shown=not quiet)
    try:
        engine = llama.open_model(options, interrupt=environment.interrupt, progress=bar, log=messages.log, cache=cache)
    finally:
        bar.close()
    for note in engine.info.notes:
        messages.note(note)
    return engine


def engine_options(path: str, device: DeviceOptions) -> EngineOptions:
    """The engine's options, its defaults where nothing was said."""
    said = {
        "context": device.ctx_size,
        "gpu_layers": gpu_layers(device.gpu_layers),
        "cpu_moe": device.n_cpu_moe,
        "threads": device.threads,
        "batch": device.batch_size,
        "ubatch": device.ubatch_size,
        "flash_attention": device.flash_attn,
        "cache_type_k": device.cache_type_k,
        "cache_type_v": device.cache_type_v,
        "devices": tuple(device.device) if device.device else None,
        "loras": tuple(device.lora) if device.lora else None,
    }
    return EngineOptions(path, **{name: value for name, value in said.items() if value is not None})


def gpu_layers(text: str | None) -> int | Literal["auto", "all"] | None:
    if text in (None, "auto", "all"):
        return text
    if text.isdecimal() and len(text) < 7:
        return int(text)
    raise StrataError(INVALID_USAGE, f"-ngl {text} is no number of layers", hint="use auto, all or a number")


# The names that model files use for what they recommend.
_RECOMMENDED = {
    "temp": ("temperature", float),
    "top_k": ("top_k", int),
    "top_p": ("top_p", float),
    "min_p": ("min_p", float),
    "penalty_last_n": ("repeat_last_n", int),
    "penalty_repeat": ("repeat_penalty", float),
}


def sampling_of(info: ModelInfo, requested: Requested, random_seed: Callable[[], int]) -> Sampling:
    """The request's values before the model's recommendation before llama.cpp's defaults; a seed if none was given."""
    recommended = {name: kind(info.sampling[key]) for key, (name, kind) in _RECOMMENDED.items() if key in info.sampling}
    said = {field.name: getattr(requested, field.name) for field in fields(Sampling)}
    chosen = recommended | {name: value for name, value in said.items() if value is not None}
    chosen.setdefault("seed", random_seed())
    return Sampling(**chosen)


def random_seed() -> int:
    return int.from_bytes(os.urandom(4), "little") % (2**32 - 1)


def with_sampling(requested: Requested, options: SamplingOptions) -> tuple[Requested, list[str]]:
    """The request's sampling with the command line's before it, and a note for each value that was replaced."""
    said = {name: value for name in options.names() if (value := getattr(options, name)) is not None}
    if "stop" in said:
        said["stop"] = tuple(said["stop"])
    before = {name: getattr(requested, name) for name in said}
    notes = [
        f"the command line's {name} replaces the request's {before[name]}"
        for name, value in said.items()
        if before[name] not in (None, (), value)
    ]
    return requested._replace(**said), notes
