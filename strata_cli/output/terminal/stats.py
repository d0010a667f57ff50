"""The lines of --stats."""

from __future__ import annotations

from strata_cli.conversation.reply import Reply
from strata_cli.engine import ModelInfo, Threads


def stats(info: ModelInfo, threads: Threads, reply: Reply) -> list[str]:
    """One line each for the model, the threads, the prompt and the answer."""
    figures = reply.figures
    evaluated = figures.start_position - figures.reused_tokens
    return [
        f"model: {info.name} on {info.device}, loaded in {info.load_seconds:.2f} s, context {info.context} tokens",
        _crew(threads),
        f"prefill: {evaluated} tokens in {figures.prefill_seconds:.2f} s{_speed(evaluated, figures.prefill_seconds)}, "
        f"{figures.reused_tokens} reused",
        f"decode: {figures.generated_tokens} tokens in {figures.decode_seconds:.2f} s"
        f"{_speed(figures.generated_tokens, figures.decode_seconds)}, first token after "
        f"{figures.first_token_seconds:.2f} s, {figures.context_left} tokens of context left",
    ]


def remark(reply: Reply, context: int) -> str | None:
    """Why an answer is not complete, where a limit cut it, or why nothing is seen of it."""
    if reply.ending == "stop" and not reply.choices[0].blocks:
        begun = reply.figures.prefix_tokens
        return "the model had nothing to say" + (" after that" if begun else "")
    if reply.ending != "length":
        return None
    tokens = reply.figures.generated_tokens
    if reply.figures.context_left <= 0:
        return f"the context of {context:,} tokens is full, so the answer is cut; a larger -c has room for more"
    return f"the answer is cut after {tokens:,} token{'' if tokens == 1 else 's'}, its limit (-n)"


def _crew(threads: Threads) -> str:
    """The threads, and why there are not more."""
    if threads.working >= threads.most:
        return f"threads: {threads.working}"
    return (
        f"threads: {threads.working} of {threads.most}, as other programs keep {threads.others:.1f} cores busy and "
        "threads without a core hold up the rest (-t N keeps their number)"
    )


def _speed(tokens: int, seconds: float) -> str:
    return f" ({tokens / seconds:.0f} tokens/s)" if tokens and seconds > 0 else ""
