"""One request answered: prompt, accounting, generation, and what is shown of it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from strata_cli.cli.opening import random_seed, sampling_of
from strata_cli.cli.templates import Templates
from strata_cli.conversation.messages import ImagePart
from strata_cli.conversation.reply import Figures, Reply
from strata_cli.conversation.request import Request, SamplingOptions
from strata_cli.engine import Engine, Prefill, Timeline
from strata_cli.environment import Environment
from strata_cli.errors import IMAGES_NOT_SUPPORTED, Interrupted, StrataError
from strata_cli.generation.accounting import Accounting, account, line
from strata_cli.generation.generate import Delta, Finished, Plan, Started, generate
from strata_cli.output.terminal.progress import Bar
from strata_cli.output.terminal.screen import Messages
from strata_cli.prompt.turn import Prompt, compose

REPLACEMENT = "\ufffd"
"""What stands for the bytes of a character that never became whole."""


class Sink(Protocol):
    """Where the answer's text goes while it is generated."""

    def write(self, text: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a generation brought: its text, and how its prompt and its tokens went."""

    text: str
    prefill: Prefill
    finished: Finished


@dataclass(slots=True)
class Conversation:
    """An open model with everything that answers one request after another."""

    environment: Environment
    messages: Messages
    engine: Engine
    timeline: Timeline
    templates: Templates | None
    quiet: bool
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def compose(self, request: Request) -> Prompt:
        assert self.templates is not None
        refuse_images(request)
        prompt = compose(self.templates.chosen(tools=bool(request.tools)), request)
        return replace(prompt, notes=(*request.notes, *prompt.notes))

    def account(self, prompt: Prompt) -> tuple[list[int], Accounting]:
        """The prompt's tokens and their accounting, which `--debug` shows."""
        tokens, accounting = account(self.engine.tokenize, prompt)
        self.messages.debug(line(accounting, continued=prompt.kind == "continuation"))
        return tokens, accounting

    def plan(self, requested: SamplingOptions, pending: bytes = b"") -> Plan:
        sampling = sampling_of(self.engine.info, requested, random_seed)
        return Plan(sampling, requested.max_tokens, requested.stop, pending)

    def run(self, tokens: Sequence[int], plan: Plan, sink: Sink) -> Outcome:
        """Generate from these tokens, the text going to the sink as it comes; Interrupted only before the first."""
        bar = Bar(self.environment, "prompt", "tokens", shown=not self.quiet)
        prefill = finished = None
        text: list[str] = []
        try:
            for event in generate(self.timeline, tokens, plan, self.environment.clock, bar):
                match event:
                    case Started():
                        prefill = event.prefill
                        bar.close()
                    case Delta():
                        text.append(event.text)
                        # A signal that ends a wait for the reader ends the generation too, at its next token.
                        with contextlib.suppress(Interrupted):
                            sink.write(event.text)
                    case Finished():
                        finished = event
        finally:
            bar.close()
        assert prefill is not None and finished is not None
        return Outcome("".join(text), prefill, finished)

    def answer(self, prompt: Prompt, request: Request, sink: Sink) -> Reply:
        """Answer a composed prompt; what never became a character is shown as one."""
        tokens, accounting = self.account(prompt)
        plan = self.plan(request.sampling)
        outcome = self.run(tokens, plan, sink)
        if outcome.finished.pending:
            sink.write(REPLACEMENT)
            outcome = replace(outcome, text=outcome.text + REPLACEMENT)
        return self._reply(outcome, accounting, plan.sampling.seed, prompt.notes)

    def _reply(self, outcome: Outcome, accounting: Accounting, seed: int, notes: tuple[str, ...]) -> Reply:
        created = int(self.environment.wall_clock())
        return Reply(
            id=f"chatcmpl-{created}-{next(self.numbers)}",
            created=created,
            model=self.engine.info.name,
            content=outcome.text,
            ending=outcome.finished.reason,
            figures=figures(outcome, accounting, self.engine.info.context),
            seed=seed,
            notes=notes,
            stop_string=outcome.finished.stop_string,
        )


def refuse_images(request: Request) -> None:
    """A template may have a place for an image; the engine evaluates text."""
    for index, message in enumerate(request.messages):
        if isinstance(message.content, tuple) and any(isinstance(part, ImagePart) for part in message.content):
            words = f"messages[{index}] holds an image, and this version evaluates text only"
            raise StrataError(IMAGES_NOT_SUPPORTED, words, hint="remove the image", param=f"messages[{index}].content")


def figures(outcome: Outcome, accounting: Accounting, context: int) -> Figures:
    return Figures(
        prompt_tokens=accounting.prompt_tokens,
        prefix_tokens=accounting.prefix_tokens,
        start_position=accounting.start_position,
        reused_tokens=outcome.prefill.reused,
        generated_tokens=outcome.finished.tokens,
        context_left=max(context - accounting.start_position - outcome.finished.tokens, 0),
        prefill_seconds=outcome.prefill.seconds,
        decode_seconds=outcome.finished.decode_seconds,
        first_token_seconds=outcome.finished.first_token_seconds,
    )
