"""From options to an engine's options and to a way of sampling."""

from __future__ import annotations

import pytest

from strata_cli.cli.opening import engine_options, gpu_layers, sampling_of, with_sampling
from strata_cli.cli.options import DeviceOptions, SamplingOptions
from strata_cli.conversation.request import SamplingOptions as Requested
from strata_cli.engine import ModelInfo, ModelOptions, Sampling
from strata_cli.errors import StrataError


def model(**sampling: float) -> ModelInfo:
    return ModelInfo("m", "m.gguf", {}, "", "", 512, 512, "CPU", sampling=sampling)


def test_nothing_said_is_the_engines_default() -> None:
    assert sampling_of(model(), Requested(), lambda: 7) == Sampling(seed=7)
    assert engine_options("m.gguf", DeviceOptions()) == ModelOptions("m.gguf")


def test_the_models_recommendation_goes_before_the_defaults() -> None:
    info = model(temp=0.6, top_k=20.0, top_p=0.9, min_p=0.0, penalty_last_n=32.0, penalty_repeat=1.1, mirostat=1.0)
    chosen = sampling_of(info, Requested(top_p=0.5), lambda: 1)
    assert chosen == Sampling(0.6, 20, 0.5, 0.0, 1, 1.1, 32)
    assert isinstance(chosen.top_k, int)


def test_the_command_line_goes_before_the_request() -> None:
    requested, notes = with_sampling(Requested(temperature=1.0, seed=3), SamplingOptions(temperature=0.0, seed=3))
    assert (requested.temperature, requested.seed) == (0.0, 3)
    assert notes == ["the command line's temperature replaces the request's 1.0"]


def test_device_options_reach_the_engine() -> None:
    said = DeviceOptions(
        ctx_size=100, gpu_layers="12", n_cpu_moe=3, threads=2, batch_size=64, ubatch_size=32, flash_attn="on",
        cache_type_k="q8_0", cache_type_v="q8_0", device=["CUDA0"], lora=["a", "b"],
    )  # fmt: skip
    options = engine_options("m.gguf", said)
    assert options == ModelOptions(
        "m.gguf", 100, 12, 3, 2, 64, 32, "on", "q8_0", "q8_0", ("CUDA0",), ("a", "b")
    )  # fmt: skip


@pytest.mark.parametrize(("text", "layers"), [(None, None), ("auto", "auto"), ("all", "all"), ("0", 0), ("99", 99)])
def test_gpu_layers(text: str | None, layers: object) -> None:
    assert gpu_layers(text) == layers


@pytest.mark.parametrize("text", ["some", "-1", "1.5", "", "9" * 20])
def test_gpu_layers_that_are_none(text: str) -> None:
    with pytest.raises(StrataError):
        gpu_layers(text)
