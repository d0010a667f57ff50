"""A talk over the tiny model, without a terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from strata_cli.cli.answer import Conversation
from strata_cli.cli.opening import open_engine
from strata_cli.cli.options import DeviceOptions, ModelOptions, TemplateOptions
from strata_cli.cli.repl import perform
from strata_cli.cli.talking import Talk
from strata_cli.cli.templates import templates_of
from strata_cli.environment import Environment, Interrupt, Stream
from strata_cli.output.terminal.messages import Messages


class Screen(Stream):
    """A stream that keeps what it is given; `on_write` sees every text first."""

    def __init__(self, interrupt: Interrupt) -> None:
        super().__init__(None, interrupt, terminal=True)
        self.shown = ""
        self.on_write: Callable[[str], None] = lambda text: None

    def text(self, text: str) -> None:
        self.on_write(text)
        self.shown += text


@dataclass
class Desk:
    """A talk with its screens; the editor does what `edits` says."""

    talk: Talk
    out: Screen
    err: Screen
    edits: list[Callable[[str], str]] = field(default_factory=list)

    def __call__(self, *inputs: str) -> str:
        """Type these; returns what the last one brought on stderr."""
        for line in inputs:
            self.out.shown = self.err.shown = ""
            perform(self.talk, line)
        return self.err.shown

    def limit(self, tokens: int | None) -> None:
        self.talk.sampling = self.talk.sampling._replace(max_tokens=tokens)

    @property
    def answer(self) -> str | None:
        return self.talk.dialogue.answer

    @property
    def unfinished(self) -> bool:
        return self.talk.dialogue.unfinished

    def stop_after(self, writes: int) -> None:
        """Press Ctrl-C when so many pieces of the answer were shown."""
        seen = 0

        def count(_: str) -> None:
            nonlocal seen
            seen += 1
            if seen >= writes:
                self.talk.environment.interrupt.set()
                self.out.on_write = lambda text: None

        self.out.on_write = count


def desk_over(model: Path, context: int = 2000, **more: object) -> Desk:
    interrupt = Interrupt()
    out, err = Screen(interrupt), Screen(interrupt)
    environment = Environment(
        None, False, out, err, {"HOME": "/nonexistent", "TERM": "xterm", "NO_COLOR": "1"}, interrupt
    )
    messages = Messages(environment, quiet=False, debug=False)
    device, template = DeviceOptions(ctx_size=context, threads=1), TemplateOptions()

    def opened(name: str, vocab_only: bool = False) -> Conversation:
        chosen = ModelOptions(name)
        engine = open_engine(environment, messages, chosen, device, vocab_only=vocab_only, quiet=True)
        templates = templates_of(environment, template, engine.info)
        timeline = None if vocab_only else engine.timeline()
        return Conversation(environment, messages, engine, timeline, templates, True)  # type: ignore[arg-type]

    talk = Talk(
        environment,
        messages,
        opened(str(model)),
        reopen=opened,
        check_model=lambda name: opened(name, vocab_only=True).engine.close(),
        edit=lambda text: desk.edits.pop(0)(text),
        **more,  # type: ignore[arg-type]
    )
    desk = Desk(talk, out, err)
    perform(talk, "/set temp 0")
    desk.limit(12)
    return desk
