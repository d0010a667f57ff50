"""What a script of a few lines does with llama.cpp: nothing but `llama_decode` and the likeliest token.

It is what the engine's speed is measured against, so it checks and remembers nothing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from strata_cli.environment import Interrupt
from strata_cli.errors import MODEL_RUN_FAILED, Interrupted, StrataError


class BareLoop:
    """A loop over one context; `keep` is what must live as long as that."""

    def __init__(self, api: Any, context: int, interrupt: Interrupt, keep: object) -> None:
        self._api, self._context, self._interrupt, self._keep = api, context, interrupt, keep
        self._memory = api.llama_get_memory(context)
        self._batch: int = api.llama_n_batch(context)
        self._greedy = api.llama_sampler_init_greedy()
        self._depth: list[int] = []

    def stand_at(self, depth: Sequence[int]) -> None:
        """Make the cache hold exactly these tokens; what it cannot forget is evaluated again."""
        api, depth = self._api, list(depth)
        cut = depth and depth == self._depth and api.llama_memory_seq_rm(self._memory, 0, len(depth), -1)
        # A sliding window that has moved on may have holes.
        if cut and api.llama_memory_seq_pos_min(self._memory, 0) == 0:
            return
        api.llama_memory_clear(self._memory, False)
        self._depth = depth
        self.evaluate(depth)

    def evaluate(self, tokens: Sequence[int]) -> None:
        """Evaluate tokens after what is held, and wait for it."""
        for start in range(0, len(tokens), self._batch):
            piece = tokens[start : start + self._batch]
            self._decode((ctypes.c_int32 * len(piece))(*piece), len(piece))
        self._api.llama_synchronize(self._context)

    def decode(self, first: int, count: int) -> None:
        """Evaluate `first`, and then the likeliest token after it, until `count` tokens were evaluated."""
        token = (ctypes.c_int32 * 1)(first)
        for _ in range(count):
            self._decode(token, 1)
            token[0] = self.likeliest()

    def likeliest(self) -> int:
        """The likeliest token after what is held."""
        return self._api.llama_sampler_sample(self._greedy, self._context, -1)

    def close(self) -> None:
        if self._context:
            self._api.llama_sampler_free(self._greedy)
            self._api.llama_free(self._context)
            self._context = 0

    def _decode(self, tokens: Any, count: int) -> None:
        status = self._api.llama_decode(self._context, self._api.llama_batch_get_one(tokens, count))
        if self._interrupt:
            raise Interrupted
        if status:
            raise StrataError(MODEL_RUN_FAILED, f"llama.cpp could not evaluate {count} tokens (code {status}).")
