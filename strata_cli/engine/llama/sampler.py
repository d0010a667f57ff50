"""How the next token is chosen: llama.cpp's samplers in llama.cpp's default order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from strata_cli.engine import Sampling
from strata_cli.engine.llama.vocabulary import Vocabulary
from strata_cli.errors import INVALID_REQUEST, StrataError

# llama.cpp draws a random seed for this value, so it is left out.
_SEEDS = 2**32 - 1


class Chain:
    """A sampler chain that has seen the tokens before it; `close` frees it."""

    def __init__(self, api: Any, vocabulary: Vocabulary, sampling: Sampling, seen: Sequence[int], context: int) -> None:
        _check(sampling)
        self._api = api
        parameters = api.llama_sampler_chain_default_params()
        parameters.no_perf = True
        self.handle: int | None = api.llama_sampler_chain_init(parameters)
        for sampler in _samplers(api, vocabulary, sampling, context):
            api.llama_sampler_chain_add(self.handle, sampler)
        if penalises(sampling):
            for token in seen[-_window(sampling, context) :]:
                api.llama_sampler_accept(self.handle, token)

    def accept(self, token: int) -> None:
        """Let penalties see a token that was not sampled."""
        self._api.llama_sampler_accept(self.handle, token)

    def close(self) -> None:
        if self.handle is not None:
            self._api.llama_sampler_free(self.handle)
            self.handle = None


def _check(sampling: Sampling) -> None:
    """Numbers on which llama.cpp ends the process, or which make every choice undefined."""
    for field in fields(sampling):
        if not math.isfinite(getattr(sampling, field.name)):
            raise StrataError(INVALID_REQUEST, f"{field.name} must be a finite number.", param=field.name)
    if sampling.repeat_penalty <= 0:
        raise StrataError(INVALID_REQUEST, "repeat_penalty must be greater than 0.", param="repeat_penalty")


def penalises(sampling: Sampling) -> bool:
    """Whether what was said before changes what is said next."""
    values = (sampling.repeat_penalty, sampling.presence_penalty, sampling.frequency_penalty)
    return sampling.repeat_last_n != 0 and values != (1.0, 0.0, 0.0)


def _window(sampling: Sampling, context: int) -> int:
    return sampling.repeat_last_n if sampling.repeat_last_n > 0 else context


def _samplers(api: Any, vocabulary: Vocabulary, sampling: Sampling, context: int) -> list[int]:
    chosen = []
    if suppressed := vocabulary.suppressed():
        biases = (api.llama_logit_bias * len(suppressed))(*((token, float("-inf")) for token in suppressed))
        chosen.append(api.llama_sampler_init_logit_bias(vocabulary.size, len(suppressed), biases))
    if penalises(sampling):
        chosen.append(
            api.llama_sampler_init_penalties(
                vocabulary.size,
                _window(sampling, context),
                sampling.repeat_penalty,
                sampling.frequency_penalty,
                sampling.presence_penalty,
            )
        )
    if sampling.temperature <= 0:
        # Truncation never removes the likeliest token, so nothing more is needed.
        return [*chosen, api.llama_sampler_init_greedy()]
    return [
        *chosen,
        api.llama_sampler_init_top_k(sampling.top_k),
        api.llama_sampler_init_top_p(sampling.top_p, 0),
        api.llama_sampler_init_min_p(sampling.min_p, 0),
        api.llama_sampler_init_temp(sampling.temperature),
        api.llama_sampler_init_dist(sampling.seed % _SEEDS),
    ]
