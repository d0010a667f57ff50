"""The loop of the REPL: reads, runs, and leaves when the user does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from strata_cli.cli.answer import Conversation
from strata_cli.cli.commands import COMMANDS, Leave, run
from strata_cli.cli.kept import Kept
from strata_cli.cli.opening import with_sampling
from strata_cli.cli.options import ModelOptions, SamplingOptions
from strata_cli.cli.talking import Talk
from strata_cli.conversation.messages import Json
from strata_cli.conversation.request import SamplingOptions as Requested
from strata_cli.environment import Environment, ReaderGone, listening
from strata_cli.errors import ExitStatus, StrataError
from strata_cli.output.terminal.repl import Reader, edit
from strata_cli.output.terminal.screen import Messages

PATH_COMMANDS = ("/save", "/load", "/model")


def begin(
    environment: Environment,
    messages: Messages,
    opened: Callable[[ModelOptions], Conversation],
    model: ModelOptions,
    kept: Kept,
    system: str | None,
    prefix: str,
    template_kwargs: dict[str, Json],
    sampling: SamplingOptions,
) -> ExitStatus:
    """Open the model and talk until the user leaves."""
    with listening(environment.interrupt):
        conversation = opened(model)
    dialogue = kept.dialogue if system is None else kept.dialogue.with_system(system)
    talk = Talk(
        environment,
        messages,
        conversation,
        reopen=lambda name: opened(ModelOptions(name)),
        edit=lambda text: edit(text, environment.variables),
        dialogue=replace(dialogue, prefix=prefix),
        sampling=with_sampling(Requested(), sampling)[0],
        template_kwargs=template_kwargs,
        session=kept.name,
    )
    if talk.dialogue.unfinished:
        talk.note("the last answer is unfinished; /continue goes on")
    try:
        return loop(talk, reader_for(talk))
    finally:
        talk.conversation.engine.close()


def loop(talk: Talk, reader: Reader) -> ExitStatus:
    """Until Ctrl-D, /exit, or a second Ctrl-C in a row."""
    warned = False
    while True:
        try:
            line = reader.ask()
        except KeyboardInterrupt:
            if warned:
                return ExitStatus.OK
            warned = True
            talk.note("Ctrl-C again, Ctrl-D or /exit leaves")
            continue
        except EOFError:
            return ExitStatus.OK
        warned = False
        try:
            run(talk, line)
        except StrataError as error:
            talk.failed(error)
        except (Leave, ReaderGone):
            return ExitStatus.OK


def reader_for(talk: Talk) -> Reader:
    commands = {name: command.sentence for command in COMMANDS for name in command.names}
    return Reader(commands, PATH_COMMANDS, history_file(talk.environment), talk.toolbar)


def history_file(environment: Environment) -> Path | None:
    """In the XDG state folder; None where there is no home."""
    home = environment.variables.get("HOME")
    state = environment.variables.get("XDG_STATE_HOME") or (home and f"{home}/.local/state")
    return Path(state) / "strata" / "history" if state else None
