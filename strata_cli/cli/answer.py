"""One request answered: prompt, accounting, generation, and what is shown of it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Protocol

from strata_cli.cli.opening import Templates, random_seed, sampling_of
from strata_cli.conversation.reply import Figures, Reply
from strata_cli.conversation.request import Request
from strata_cli.engine import Engine, Timeline
from strata_cli.environment import Environment
from strata_cli.generation.generate import Accounting, Delta, Finished, Plan, Started, account, generate
from strata_cli.output.terminal.progress import Bar
from strata_cli.output.terminal.screen import Messages
from strata_cli.prompt.turn import Prompt, compose


REPLACEMENT = "\ufffd"
"""What stands for the bytes of a character that never became whole."""


class Sink(Protocol):
    """Where the answer's text goes while it is generated."""

    def write(self, text: str) -> None: ...


@dataclass(slots=True)
class Conversation:
    """An open model with everything that answers one request after another."""

    environment: Environment
    messages: Messages
    engine: Engine
    timeline: Timeline
    templates: Templates | None
    quiet: bool
    numbers: itertools.count[int]

    def compose(self, request: Request) -> Prompt:
        assert self.templates is not None
        prompt = compose(self.templates.chosen(tools=bool(request.tools)), request)
        return replace(prompt, notes=(*request.notes, *prompt.notes))

    def answer(self, prompt: Prompt, request: Request, sink: Sink) -> Reply:
        """Generate from a composed prompt, the text going to the sink as it comes."""
        tokens, accounting = account(self.engine.tokenize, prompt)
        self.messages.debug(accounting_line(accounting, continued=prompt.kind == "continuation"))
        sampling = sampling_of(self.engine.info, request.sampling, random_seed)
        plan = Plan(sampling, request.sampling.max_tokens, request.sampling.stop)
        bar = Bar(self.environment, "prompt", "tokens", shown=not self.quiet)
        started = finished = None
        text: list[str] = []
        try:
            for event in generate(self.timeline, tokens, plan, self.environment.clock, bar):
                match event:
                    case Started():
                        started = event
                        bar.close()
                    case Delta():
                        text.append(event.text)
                        sink.write(event.text)
                    case Finished():
                        finished = event
                        if event.pending:
                            text.append(REPLACEMENT)
                            sink.write(REPLACEMENT)
        finally:
            bar.close()
        assert started is not None and finished is not None
        return self._reply("".join(text), accounting, started, finished, sampling.seed, prompt.notes)

    def _reply(
        self,
        text: str,
        accounting: Accounting,
        started: Started,
        finished: Finished,
        seed: int,
        notes: tuple[str, ...],
    ) -> Reply:
        created = int(self.environment.wall_clock())
        return Reply(
            id=f"chatcmpl-{created}-{next(self.numbers)}",
            created=created,
            model=self.engine.info.name,
            content=text,
            ending=finished.reason,
            figures=Figures(
                prompt_tokens=accounting.prompt_tokens,
                prefix_tokens=accounting.prefix_tokens,
                start_position=accounting.start_position,
                reused_tokens=started.prefill.reused,
                generated_tokens=finished.tokens,
                context_left=self.engine.info.context - accounting.start_position - finished.tokens,
                prefill_seconds=started.prefill.seconds,
                decode_seconds=finished.decode_seconds,
                first_token_seconds=finished.first_token_seconds,
            ),
            seed=seed,
            notes=notes,
            stop_string=finished.stop_string,
        )


def accounting_line(accounting: Accounting, *, continued: bool) -> str:
    """The debug line; it never holds the prefix itself."""
    what = "continued message" if continued else "assistant prefill"
    return (
        f"{what}: {accounting.prefix_tokens} tokens (prompt {accounting.prompt_tokens} -> {accounting.start_position}, "
        f"generation starts at position {accounting.start_position})"
    )
