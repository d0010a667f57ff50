"""One request answered: prompt, accounting, generation, and what is shown of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from strata_cli.cli.opening import random_seed, sampling_of
from strata_cli.cli.templates import Templates
from strata_cli.conversation.messages import ImagePart
from strata_cli.conversation.reply import (
    Began,
    Ended,
    Event,
    Figures,
    Head,
    Logprob,
    ScoredToken,
    Stopped,
)
from strata_cli.conversation.request import Request, SamplingOptions
from strata_cli.engine import Engine, Prefill, Timeline, Token
from strata_cli.environment import Environment
from strata_cli.errors import IMAGES_NOT_SUPPORTED, Interrupted, StrataError
from strata_cli.generation.accounting import Accounting, account, line
from strata_cli.generation.generate import Delta, Finished, Plan, Started, generate
from strata_cli.generation.generate import Event as Generated
from strata_cli.generation.structured.calls import CallTask
from strata_cli.generation.structured.instruction import instructed
from strata_cli.generation.structured.task import Task
from strata_cli.generation.tell import Teller
from strata_cli.output.terminal.messages import Messages
from strata_cli.output.terminal.progress import Bar
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

    def compose(self, request: Request) -> Prompt:
        assert self.templates is not None
        refuse_images(request)
        request = instructed(request)
        prompt = compose(self.templates.chosen(tools=bool(request.tools)), request)
        return prompt._replace(notes=(*request.notes, *prompt.notes))

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
        prefill = finished = None
        text: list[str] = []
        with contextlib.closing(self._generated(tokens, plan)) as events:
            for event in events:
                match event:
                    case Started():
                        prefill = event.prefill
                    case Delta():
                        text.append(event.text)
                        # A signal that ends a wait for the reader ends the generation too, at its next token.
                        with contextlib.suppress(Interrupted):
                            sink.write(event.text)
                    case Finished():
                        finished = event
        assert prefill is not None and finished is not None
        return Outcome("".join(text), prefill, finished)

    def _generated(self, tokens: Sequence[int], plan: Plan) -> Iterator[Generated]:
        """What the generation brings, with a bar until the prompt is evaluated."""
        bar = Bar(self.environment, "prompt", "tokens", shown=not self.quiet)
        try:
            for event in generate(self.timeline, tokens, plan, self.environment.clock, bar):
                bar.close()
                yield event
        finally:
            bar.close()

    def answer(self, prompt: Prompt, request: Request) -> Iterator[Event]:
        """The events of an answer to a composed prompt; Interrupted only before the first of them.

        Each choice after the first has the next seed.
        """
        tokens, accounting = self.account(prompt)
        task = self._task(prompt, request)
        delivery = request.delivery
        notes: list[str] = list(task.notes) if task is not None else []
        plan = replace(self.plan(request.sampling), logprobs=delivery.logprobs)
        counted = Counted(accounting, self.engine.info.context)
        for number in range(delivery.choices):
            sampling = replace(plan.sampling, seed=plan.sampling.seed + number)
            chosen = replace(plan, sampling=sampling, constraint=None if task is None else task.constraint())
            teller, proof = self.teller(prompt, request), Proof(task)
            with contextlib.closing(self._generated(tokens, chosen)) as generated:
                for event in generated:
                    counted.push(event)
                    if not isinstance(event, Started):
                        yield from told(teller, event, delivery.logprobs, proof)
                    elif not number:
                        yield Began(self._head(request, prompt, plan.sampling.seed), counted.figures)
            notes += teller.notes
            if counted.interrupted:
                break
        yield Ended(counted.figures, tuple(dict.fromkeys(notes)))

    def _task(self, prompt: Prompt, request: Request) -> Task | CallTask | None:
        """What the answer has to be: a document, a call, or nothing in particular."""
        if request.structure is not None:
            return Task(request.structure, prompt, self.engine)
        if request.choice is None:
            return None
        assert self.templates is not None
        return CallTask(request.choice, prompt, self.templates.chosen(tools=True), request, self.engine)

    def teller(self, prompt: Prompt, request: Request) -> Teller:
        """What tells reasoning, content and calls apart in the answer; raw text has no such parts."""
        if self.templates is None:
            return Teller(None)
        if request.structure is not None and request.structure.constrained:
            # A document must not be taken for a call that looks like it.
            request = request._replace(tools=())
        return Teller.after(prompt, self.templates.chosen(tools=bool(request.tools)), request)

    def _head(self, request: Request, prompt: Prompt, seed: int) -> Head:
        return Head(
            id=os.urandom(12).hex(),
            created=int(self.environment.wall_clock()),
            model=self.engine.info.name,
            seed=seed,
            notes=prompt.notes,
            metadata=request.delivery.metadata,
            usage=request.delivery.usage,
            logprobs=request.delivery.logprobs is not None,
        )


def refuse_images(request: Request) -> None:
    """A template may have a place for an image; the engine evaluates text."""
    for index, message in enumerate(request.messages):
        if isinstance(message.content, tuple) and any(isinstance(part, ImagePart) for part in message.content):
            words = f"messages[{index}] holds an image, and this version evaluates text only"
            raise StrataError(IMAGES_NOT_SUPPORTED, words, hint="remove the image", param=f"messages[{index}].content")


@dataclass(slots=True)
class Proof:
    """What was generated, and at its end whether it is the document that was asked for."""

    task: Task | CallTask | None
    pieces: list[str] = field(default_factory=list)

    def push(self, event: Delta) -> None:
        if self.task is not None:
            self.pieces.append(event.text)

    def check(self, finished: Finished) -> None:
        """Raise STRUCTURED_OUTPUT_FAILED where it is not; an interrupted answer need not be one."""
        if self.task is not None and finished.reason != "interrupted":
            self.task.check("".join(self.pieces), cut=finished.reason == "length")


def told(teller: Teller, event: Delta | Finished, top: int | None, proof: Proof) -> Iterator[Event]:
    """What a generation brought, as an answer's events; what never became a character is shown as one."""
    if isinstance(event, Delta):
        proof.push(event)
        yield from teller.push(event.text, scored(event.tokens, top))
        return
    if event.pending:
        yield from teller.push(REPLACEMENT)
    yield from teller.finish()
    proof.check(event)
    yield Stopped(event.reason, event.stop_string)


def scored(tokens: Iterable[Token], top: int | None) -> tuple[ScoredToken, ...]:
    """Tokens with their logprobs, as an answer carries them."""
    return tuple(
        ScoredToken(
            Logprob(token.data, token.logprob or 0.0),
            tuple(Logprob(choice.data, choice.logprob) for choice in token.top[:top]),
        )
        for token in tokens
    )


@dataclass(slots=True)
class Counted:
    """The figures of an answer while it comes, choice by choice; what was reused is what the first one found."""

    accounting: Accounting
    context: int
    prefills: list[Prefill] = field(default_factory=list)
    answers: list[Finished] = field(default_factory=list)

    def push(self, event: Generated) -> None:
        match event:
            case Started():
                self.prefills.append(event.prefill)
            case Finished():
                self.answers.append(event)
            case Delta():
                pass

    @property
    def interrupted(self) -> bool:
        return self.answers[-1].reason == "interrupted"

    @property
    def figures(self) -> Figures:
        start = self.accounting.start_position
        longest = max((answer.tokens for answer in self.answers), default=0)
        return Figures(
            prompt_tokens=self.accounting.prompt_tokens,
            prefix_tokens=self.accounting.prefix_tokens,
            start_position=start,
            reused_tokens=self.prefills[0].reused,
            generated_tokens=sum(answer.tokens for answer in self.answers),
            context_left=max(self.context - start - longest, 0),
            prefill_seconds=sum(prefill.seconds for prefill in self.prefills),
            decode_seconds=sum(answer.decode_seconds for answer in self.answers),
            first_token_seconds=self.answers[0].first_token_seconds if self.answers else 0.0,
        )
