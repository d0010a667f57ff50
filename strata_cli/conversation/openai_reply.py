"""Answers and errors in the shape of OpenAI's chat completions, with Strata's own figures beside them."""

from __future__ import annotations

from strata_cli.conversation.messages import Json
from strata_cli.conversation.reply import Ending, Figures, Reply
from strata_cli.errors import StrataError

# An interrupted answer was cut short, which is what `length` says.
FINISH_REASONS: dict[Ending, str] = {"stop": "stop", "stop_string": "stop", "length": "length", "interrupted": "length"}


def reply(reply: Reply) -> dict[str, Json]:
    """A `chat.completion` object; the message holds only what was generated."""
    return {
        "id": reply.id,
        "object": "chat.completion",
        "created": reply.created,
        "model": reply.model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": reply.content},
                "logprobs": None,
                "finish_reason": FINISH_REASONS[reply.ending],
            }
        ],
        "usage": usage(reply.figures),
        "timings": timings(reply.figures),
        "strata": strata(reply),
    }


def usage(figures: Figures) -> dict[str, Json]:
    return {
        "prompt_tokens": figures.start_position,
        "completion_tokens": figures.generated_tokens,
        "total_tokens": figures.start_position + figures.generated_tokens,
        "prompt_tokens_details": {"cached_tokens": figures.reused_tokens},
    }


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


def strata(reply: Reply) -> dict[str, Json]:
    figures = reply.figures
    return {
        "prefill": {
            "prompt_tokens": figures.prompt_tokens,
            "prefix_tokens": figures.prefix_tokens,
            "start_position": figures.start_position,
            "reused_tokens": figures.reused_tokens,
            "context_left": figures.context_left,
        },
        "seed": reply.seed,
        "ending": reply.ending,
        "notes": list(reply.notes),
    }


def error(error: StrataError) -> dict[str, Json]:
    """An error object; the message ends with what to do."""
    kind = error.kind
    type_ = "invalid_request_error" if kind.http < 500 else "server_error"
    return {"error": {"type": type_, "code": kind.code, "message": error.sentence, "param": error.param}}
