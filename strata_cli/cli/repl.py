"""The loop of the REPL: reads, runs, and leaves when the user does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from strata_cli.cli.answer import Conversation
from strata_cli.cli.commands import COMMANDS, SETTINGS, THINKING, Leave, run
from strata_cli.cli.kept import Kept
from strata_cli.cli.opening import with_sampling
from strata_cli.cli.options import ModelOptions, OutputOptions, SamplingOptions
from strata_cli.cli.talking import Talk
from strata_cli.conversation.messages import Json
from strata_cli.conversation.request import SamplingOptions as Requested
from strata_cli.environment import Environment, ReaderGone, die_of, handling, listening
from strata_cli.errors import INTERNAL_ERROR, MODEL_RUN_FAILED, ExitStatus, Interrupted, StrataError
from strata_cli.output.terminal.messages import Messages
from strata_cli.output.terminal.repl import PATH, PlainReader, Reader, edit, is_dumb

SIGINT = 2
PATIENCE = 2
"""Stop signals during one command that do not yet end the process."""
SAME_GESTURE = 1.0
"""Seconds after a stopped answer in which another Ctrl-C still means the answer."""

ARGUMENTS = {
    "/save": (PATH,),
    "/load": (PATH,),
    "/model": (PATH,),
    "/set": SETTINGS,
    "/think": THINKING,
}


def begin(
    environment: Environment,
    messages: Messages,
    opened: Callable[[ModelOptions], Conversation],
    check_model: Callable[[ModelOptions], None],
    model: ModelOptions,
    kept: Kept,
    system: str | None,
    prefix: str,
    template_kwargs: dict[str, Json],
    sampling: SamplingOptions,
    output: OutputOptions,
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
        check_model=lambda name: check_model(ModelOptions(name)),
        edit=lambda text: edit(text, environment.variables, environment.interrupt),
        dialogue=replace(dialogue, prefix=prefix),
        sampling=with_sampling(Requested(), sampling)[0],
        template_kwargs=template_kwargs,
        raw=output.raw,
        colour=output.color or "auto",
        thinking="hide" if output.hide_thinking else "show",
        session=kept.file,
    )
    greet(talk)
    try:
        # A Ctrl-C right after Enter stops what was asked, although it has not begun.
        with handling({SIGINT: environment.interrupt.set}):
            return loop(talk, reader_for(talk))
    finally:
        talk.conversation.engine.close()


def greet(talk: Talk) -> None:
    """Say where a kept conversation stands."""
    dialogue = talk.dialogue
    if dialogue.unfinished:
        talk.note("the last answer is unfinished; /continue goes on")
    elif dialogue.asked and dialogue.answer is None:
        talk.note("the last message has no answer yet; /continue answers it")


def loop(talk: Talk, reader: Reader | PlainReader) -> ExitStatus:
    """Until Ctrl-D, /exit, or a second Ctrl-C in a row."""
    clock = talk.environment.clock
    warned, stopped_at = False, None
    while True:
        try:
            line = reader.ask()
        except KeyboardInterrupt:
            if stopped_at is not None and clock() - stopped_at < SAME_GESTURE:
                continue
            if warned:
                return ExitStatus.OK
            warned = True
            talk.note("Ctrl-C again, Ctrl-D or /exit leaves")
            continue
        except Interrupted:
            die_of(talk.environment.interrupt.signal)
        except (EOFError, OSError):
            return ExitStatus.OK
        try:
            warned = perform(talk, line)
        except (Leave, ReaderGone):
            return ExitStatus.OK
        stopped_at = clock() if warned else None


def perform(talk: Talk, line: str) -> bool:
    """Run one input, whatever goes wrong in it being one line; returns whether Ctrl-C stopped it."""
    interrupt = talk.environment.interrupt
    try:
        with listening(interrupt, patience=PATIENCE), contextlib.suppress(Interrupted):
            _run(talk, line)
        return interrupt.signal == SIGINT
    finally:
        number = interrupt.signal
        interrupt.clear()
        if number not in (0, SIGINT):
            die_of(number)


def _run(talk: Talk, line: str) -> None:
    try:
        run(talk, line)
    except StrataError as error:
        talk.failed(error)
    except (Leave, ReaderGone, Interrupted):
        raise
    except MemoryError:
        talk.failed(StrataError(MODEL_RUN_FAILED, "out of memory"))
    except Exception as error:
        if talk.environment.debug:
            import traceback

            talk.environment.stderr.text(traceback.format_exc())
        talk.failed(StrataError(INTERNAL_ERROR, f"internal error: {type(error).__name__}: {error}"))


def reader_for(talk: Talk) -> Reader | PlainReader:
    environment = talk.environment
    if is_dumb(environment.variables):
        return PlainReader(environment)
    commands = {name: command.sentence for command in COMMANDS for name in command.names}
    return Reader(commands, ARGUMENTS, history_file(environment), talk.toolbar, environment.interrupt)


def history_file(environment: Environment) -> Path | None:
    """In the XDG state folder; None where there is no home."""
    home = environment.variables.get("HOME")
    state = environment.variables.get("XDG_STATE_HOME") or (home and f"{home}/.local/state")
    return Path(state) / "strata" / "history" if state else None
