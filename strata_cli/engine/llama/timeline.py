"""One conversation's place in the KV cache: what it holds, what has to be evaluated, what comes next.

`_held` is what the cache really holds. Every way out of an evaluation, errors and interrupts included, sets it again
from what llama.cpp says is left. `_ready` says whether the logits of its last token are at hand.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from strata_cli.engine import Choice, Constraint, Prefill, Progress, Sampling, Token
from strata_cli.engine.cache import SLOW, Shelf, common_length
from strata_cli.engine.llama.crew import Crew
from strata_cli.engine.llama.library import LOG
from strata_cli.engine.llama.sampler import Chain
from strata_cli.engine.llama.vocabulary import Vocabulary
from strata_cli.environment import Interrupt
from strata_cli.errors import CONTEXT_LENGTH_EXCEEDED, INVALID_REQUEST, MODEL_RUN_FAILED, Interrupted, StrataError

if TYPE_CHECKING:
    from strata_cli.engine.llama.constraint import LlamaConstraint

_SEQUENCE = 0
_ABORTED = 2
_WORTH = 63
"""Tokens that are evaluated as fast as a file is read."""
_PARTING = 64
"""Tokens before the end of a prompt, about where the next one that begins like it parts from it."""

_FAILURES = {
    1: "no room was found in the KV cache",
    -1: "the batch was refused",
    -2: "memory could not be allocated",
    -3: "the computation failed",
}


class LlamaTimeline:
    """A timeline over one llama.cpp context, which it owns."""

    def __init__(
        self,
        api: Any,
        context: int,
        model: int,
        vocabulary: Vocabulary,
        limit: int,
        interrupt: Interrupt,
        crew: Crew,
        shelf: Shelf | None,
        keepalive: object,
    ) -> None:
        self._api, self._context, self._vocabulary = api, context, vocabulary
        self._limit, self._interrupt, self._keepalive = limit, interrupt, keepalive
        self.crew, self._shelf = crew, shelf
        self._slow = False
        self._kept: tuple[list[int], memoryview] | None = None
        self._memory = api.llama_get_memory(context)
        self._window: int = api.llama_model_n_swa(model)
        self._forgets = not (api.llama_model_is_recurrent(model) or api.llama_model_is_hybrid(model))
        # Whether a kept state serves only what begins with all of it; of a window, llama.cpp saves only the end.
        self._final = bool(self._window) or not self._forgets
        self._held: list[int] = []
        self._ready = False
        self._turn = 0
        self._room: int = api.llama_n_batch(context)
        self._tokens = (ctypes.c_int32 * self._room)()
        self._wanted = (ctypes.c_int8 * self._room)()
        # Without positions and sequences, llama.cpp appends to sequence 0.
        self._batch = api.llama_batch(token=self._tokens, logits=self._wanted)

    @property
    def tokens(self) -> Sequence[int]:
        return tuple(self._held)

    def prefill(self, tokens: Sequence[int], progress: Progress | None = None) -> Prefill:
        self._begin()
        started = perf_counter()
        tokens = list(tokens)
        self._check(tokens)
        self.crew.begin()
        self._take_from_shelf(tokens)
        reused = self._keep(tokens)
        self._evaluate_for_shelf(tokens, reused, progress)
        return Prefill(len(tokens), reused, perf_counter() - started)

    def decode(self, sampling: Sampling, *, logprobs: int = 0, constraint: Constraint | None = None) -> Iterator[Token]:
        self._begin()
        if not self._held:
            raise StrataError(INVALID_REQUEST, "There is no prompt to continue.")
        if not self._ready:
            # An interrupt took the logits away.
            tokens = self._held
            self._evaluate(tokens[self._cut(len(tokens) - 1) :], None)
        chain = Chain(self._api, self._vocabulary, sampling, self._held, self._limit)
        if constraint is not None:
            return self._generate_within(cast("LlamaConstraint", constraint), chain, logprobs, self._turn)
        return self._generate(chain, logprobs, self._turn)

    def close(self) -> None:
        """Free the context; closing twice is harmless."""
        if self._context:
            self._turn += 1
            if (self._slow or self._kept) and not self._interrupt:
                self._put_on_shelf()
            self._api.llama_free(self._context)
            self._context = 0

    def _begin(self) -> None:
        if not self._context:
            raise RuntimeError("the timeline is closed")
        # A generator of an earlier turn must not go on over other tokens.
        self._turn += 1
        LOG.forget()

    def _check(self, tokens: Sequence[int]) -> None:
        if not tokens:
            raise StrataError(INVALID_REQUEST, "The prompt is empty.", hint="Give at least one character of text.")
        excess = len(tokens) - self._limit
        if excess > 0:
            raise StrataError(
                CONTEXT_LENGTH_EXCEEDED,
                f"The prompt has {len(tokens):,} tokens, {excess:,} more than the context of {self._limit:,}.",
                hint=f"Use a larger context (-c {len(tokens) + 1} or more) or a shorter prompt.",
            )
        if not 0 <= min(tokens) <= max(tokens) < self._vocabulary.size:
            raise StrataError(INVALID_REQUEST, "The prompt holds numbers that are no tokens of this model.")

    def _keep(self, tokens: Sequence[int]) -> int:
        """Make the cache hold a beginning of `tokens` that leaves logits to be evaluated or has them; its length."""
        common = common_length(self._held, tokens)
        if common == len(tokens):
            if common == len(self._held) and self._ready:
                return common
            common -= 1
        return self._cut(common)

    def _take_from_shelf(self, tokens: list[int]) -> None:
        """Hold what another process evaluated of these tokens, where that is more than is held."""
        if self._shelf is None:
            return
        least = common_length(self._held, tokens) + _WORTH
        found = self._shelf.find(tokens, more_than=least, whole=self._final) if len(tokens) > least else None
        state = None if found is None else self._shelf.load(found)
        if found is None or state is None:
            return
        self._clear()
        data = (ctypes.c_uint8 * len(state)).from_buffer(state)
        if self._api.llama_state_seq_set_data(self._context, data, len(state), _SEQUENCE):
            self._held = found.tokens
            self._settle()
        else:
            self._shelf.refuse(found)
            self._clear()

    def _evaluate_for_shelf(self, tokens: list[int], reused: int, progress: Progress | None) -> None:
        """Evaluate what is missing, and note whether that, or which part of it, is worth keeping for others."""
        started = perf_counter()
        halt = self._halt(tokens, reused)
        if halt > reused:
            self._evaluate(tokens[reused:halt], progress, len(tokens) - halt)
            if perf_counter() - started > SLOW:
                self._kept = self._snapshot()
        self._evaluate(tokens[len(self._held) :], progress)
        if self._shelf is not None and not self._final:
            self._slow = self._slow or perf_counter() - started > SLOW

    def _halt(self, tokens: list[int], reused: int) -> int:
        """Where a state that cannot go back is kept, so that others may go on from it; 0 for nowhere.

        Where the prompt parts from one that was kept before, else a little before its end: there the next one parts.
        """
        if self._shelf is None or not self._final:
            return 0
        known = self._shelf.find(tokens, more_than=reused + _WORTH, whole=False)
        return min(len(tokens) - _PARTING, known.common if known is not None else len(tokens))

    def _put_on_shelf(self) -> None:
        """Keep what is held for other processes, the answer included: a longer conversation begins with it."""
        kept = self._kept if self._final else self._snapshot()
        if self._shelf is not None and kept is not None:
            self._shelf.keep(*kept)

    def _snapshot(self) -> tuple[list[int], memoryview] | None:
        """The tokens that are held and their state, None where that is more than the cache takes."""
        size = self._api.llama_state_seq_get_size(self._context, _SEQUENCE)
        if self._shelf is None or not 0 < size <= self._shelf.limit:
            return None
        try:
            data = (ctypes.c_uint8 * size)()
        except MemoryError:
            return None
        written = self._api.llama_state_seq_get_data(self._context, data, size, _SEQUENCE)
        return (list(self._held), memoryview(data).cast("B")[:written]) if written else None

    def _cut(self, length: int) -> int:
        """Forget what comes after `length` tokens, or everything where a part cannot be forgotten; what is left."""
        if length == len(self._held):
            return length
        self._ready = False
        if length == 0 or not self._api.llama_memory_seq_rm(self._memory, _SEQUENCE, length, -1):
            return self._clear()
        self._held = self._held[:length]
        return self._settle()

    def _clear(self) -> int:
        self._api.llama_memory_clear(self._memory, False)
        self._held, self._ready = [], False
        return 0

    def _settle(self) -> int:
        """Keep what the cache holds completely, after a removal or an evaluation that broke off; its length."""
        length = self._api.llama_memory_seq_pos_max(self._memory, _SEQUENCE) + 1
        oldest = self._api.llama_memory_seq_pos_min(self._memory, _SEQUENCE)
        # A sliding window keeps only its last tokens: a cut before them leaves a window with holes, and says nothing.
        whole = oldest <= max(0, length - self._window) if self._window else True
        if not 0 < length <= len(self._held) or not whole:
            return self._clear()
        self._held = self._held[:length]
        return length

    def _evaluate(self, tokens: list[int], progress: Progress | None, more: int = 0) -> None:
        """Evaluate tokens after what is held, and the last one's logits; `more` are evaluated later."""
        held, done, count = len(self._held), 0, len(tokens)
        total = held + count + more
        if progress is not None:
            progress(held, total)
        while done < count:
            piece = tokens[done : done + self._room]
            done += len(piece)
            self._tokens[: len(piece)] = piece
            self._wanted[len(piece) - 1] = last = done == count
            try:
                self._run(self._batch, piece)
            finally:
                self._wanted[len(piece) - 1] = 0
            self._ready = last
            if progress is not None:
                progress(held + done, total)

    def _run(self, batch: Any, piece: list[int]) -> None:
        if self._interrupt:
            raise Interrupted
        batch.n_tokens = len(piece)
        self._ready = False
        self.crew.mind()
        status = self._api.llama_decode(self._context, batch)
        self._held += piece
        if status:
            self._fail(status)

    def _fail(self, status: int) -> None:
        """Find out what the cache holds after an evaluation broke off, and raise."""
        # A recurrent state cannot go back: half of a batch is in it.
        if self._forgets:
            self._settle()
        else:
            self._clear()
        if status == _ABORTED or self._interrupt:
            raise Interrupted
        reason = _FAILURES.get(status, "llama.cpp failed")
        said = LOG.tail()
        raise StrataError(MODEL_RUN_FAILED, f"{reason.capitalize()} (code {status}{f': {said}' if said else ''}).")

    def _generate(self, chain: Chain, logprobs: int, turn: int) -> Iterator[Token]:
        sample, decode = self._api.llama_sampler_sample, self._api.llama_decode
        held, flag, context, handle = self._held, self._interrupt.memory, self._context, chain.handle
        mind = self.crew.mind
        make = self._token_maker(logprobs)
        token = ctypes.c_int32()
        # Without a list of wanted logits, the last token's are computed.
        batch = self._api.llama_batch(n_tokens=1, token=ctypes.pointer(token))
        try:
            if flag[0]:
                raise Interrupted
            while True:
                token.value = chosen = sample(handle, context, -1)
                result = make(chosen)
                yield result
                if self._turn != turn:
                    raise RuntimeError("the timeline has gone on without this generator")
                if result.end or len(held) >= self._limit:
                    return
                if flag[0]:
                    raise Interrupted
                self._ready = False
                mind()
                status = decode(context, batch)
                held.append(chosen)
                if status:
                    self._fail(status)
                self._ready = True
        finally:
            chain.close()

    def _generate_within(self, constraint: LlamaConstraint, chain: Chain, logprobs: int, turn: int) -> Iterator[Token]:
        """As above within a grammar; tokens that have to follow are not sampled, and are evaluated together."""
        held, coming = self._held, list[int]()
        sampled = self._sampler_within(constraint, chain, logprobs)
        try:
            while True:
                if self._interrupt:
                    raise Interrupted
                # A token without logits has no probability.
                tokens = [self._vocabulary.token(token) for token in constraint.forced(whole=logprobs <= 0)]
                for token in tokens:
                    chain.accept(token.id)
                if not tokens:
                    if coming:
                        self._evaluate(coming, None)
                        coming.clear()
                    tokens = [sampled()]
                for token in tokens:
                    coming.append(token.id)
                    yield token
                    if self._turn != turn:
                        raise RuntimeError("the timeline has gone on without this generator")
                    if token.end or len(held) + len(coming) > self._limit:
                        return
        finally:
            chain.close()

    def _sampler_within(self, constraint: LlamaConstraint, chain: Chain, logprobs: int) -> Callable[[], Token]:
        """What samples a token that a grammar allows, and leaves the logits as the model made them."""
        import numpy

        size, vocabulary = self._vocabulary.size, self._vocabulary
        own = numpy.empty(size, numpy.float32)

        def sampled() -> Token:
            address = self._api.llama_get_logits_ith(self._context, -1)
            logits = numpy.ctypeslib.as_array(address, (size,))
            numpy.copyto(own, logits)
            constraint.restrict(logits)
            chosen = self._api.llama_sampler_sample(chain.handle, self._context, -1)
            numpy.copyto(logits, own)
            token = vocabulary.token(chosen) if logprobs <= 0 else self._token_maker(logprobs)(chosen)
            constraint.take(chosen, token.data)
            return token

        return sampled

    def _token_maker(self, logprobs: int) -> Callable[[int], Token]:
        """What makes a Token of a number; without logprobs the same number gives the same object."""
        if logprobs <= 0:
            return self._vocabulary.token
        size, data = self._vocabulary.size, self._vocabulary.data

        def make(number: int) -> Token:
            plain = self._vocabulary.token(number)
            logits = self._api.llama_get_logits_ith(self._context, -1)
            chosen, likeliest = _logprobs(logits, size, number, logprobs)
            top = tuple(Choice(token, data(token), value) for token, value in likeliest)
            return Token(number, plain.data, plain.end, chosen, top, plain.control)

        return make


def _logprobs(logits: Any, size: int, token: int, count: int) -> tuple[float, list[tuple[int, float]]]:
    """The natural-log probability of `token`, and the `count` likeliest tokens with theirs, likeliest first."""
    # numpy costs 0.1 s to import, and only this needs it.
    import numpy

    values = numpy.ctypeslib.as_array(logits, (size,)).astype(numpy.float64)
    highest = values.max()
    values -= highest + numpy.log(numpy.exp(values - highest).sum())
    count = min(count, size)
    top = numpy.argpartition(-values, count - 1)[:count]
    top = top[numpy.argsort(-values[top], kind="stable")]
    return float(values[token]), [(int(index), float(values[index])) for index in top]
