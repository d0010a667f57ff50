"""What Strata says of an answer beside the dialect's own fields: the same in both."""

from __future__ import annotations

from collections.abc import Sequence

from strata_cli.conversation.messages import Json
from strata_cli.conversation.reply import Ended, Figures, Head, Logprob, Reply, ScoredToken, Stopped

_UNLIKELY = -9999.0
"""What stands for a probability of nothing, which JSON cannot hold, as in OpenAI's API."""


def timings(figures: Figures) -> dict[str, Json]:
    """Under llama-server's names: counts in tokens, times in milliseconds, speeds in tokens per second."""
    evaluated = figures.start_position - figures.reused_tokens
    return {
        "prompt_n": evaluated,
        "prompt_ms": 1000 * figures.prefill_seconds,
        "prompt_per_second": _per_second(evaluated, figures.prefill_seconds),
        "predicted_n": figures.generated_tokens,
        "predicted_ms": 1000 * figures.decode_seconds,
        "predicted_per_second": _per_second(figures.generated_tokens, figures.decode_seconds),
    }


def _per_second(tokens: int, seconds: float) -> float:
    return tokens / seconds if seconds > 0 else 0.0


def strata(head: Head, first: Stopped, ended: Ended) -> dict[str, Json]:
    """The accounting, how the first choice ended, and what was noted."""
    figures = ended.figures
    value: dict[str, Json] = {
        "prefill": {
            "prompt_tokens": figures.prompt_tokens,
            "prefix_tokens": figures.prefix_tokens,
            "start_position": figures.start_position,
            "reused_tokens": figures.reused_tokens,
            "context_left": figures.context_left,
        },
        "seed": head.seed,
        "ending": first.ending,
        "stop_string": first.stop_string,
        "notes": [*head.notes, *ended.notes],
    }
    return value | {"metadata": dict(head.metadata)} if head.metadata else value


def ending_of(reply: Reply) -> tuple[Stopped, Ended]:
    """The last events of an answer, from the whole of it."""
    first = reply.choices[0]
    noted = reply.notes[len(reply.head.notes) :]
    return Stopped(first.ending, first.stop_string), Ended(reply.figures, noted)


def logprobs(tokens: Sequence[ScoredToken]) -> list[Json]:
    """OpenAI's items. `token` is the text, with U+FFFD for bytes that are none by themselves; `bytes` are exact."""
    return [{**_logprob(scored.token), "top_logprobs": [_logprob(top) for top in scored.top]} for scored in tokens]


def _logprob(scored: Logprob) -> dict[str, Json]:
    return {
        "token": scored.data.decode("utf-8", "replace"),
        "bytes": list(scored.data),
        "logprob": max(scored.logprob, _UNLIKELY),
    }


def call_id(head: Head, number: int, given: str | None, prefix: str) -> str:
    """The call's own id, or one made from the answer's; `number` counts the answer's calls from 0."""
    return given or f"{prefix}{head.id}{number}"
