"""What the REPL's commands do. The table at the end is the whole list: help and completion are read from it."""

from __future__ import annotations

import difflib
import math
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from strata_cli.cli.opening import sampling_of
from strata_cli.cli.talking import Talk
from strata_cli.conversation import saved
from strata_cli.conversation.dialogue import Dialogue
from strata_cli.conversation.openai import parse
from strata_cli.conversation.request import SamplingOptions
from strata_cli.errors import (
    INVALID_REQUEST,
    INVALID_USAGE,
    NOTHING_TO_CONTINUE,
    SESSION_INVALID,
    Interrupted,
    StrataError,
)
from strata_cli.generation import accounting
from strata_cli.output.terminal.clipboard import copy
from strata_cli.output.terminal.picture import picture
from strata_cli.store.sessions import SessionFile

SIGINT = 2


class Leave(Exception):
    """The user is done."""


Action: TypeAlias = Callable[[Talk, str], None]


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its names, what may follow it, one sentence, and what it does with the rest of the line."""

    names: tuple[str, ...]
    argument: str
    sentence: str
    action: Action


_INPUT = re.compile(r"(/\S*)\s?(.*)", re.DOTALL)


def run(talk: Talk, line: str) -> None:
    """Do what one input says: a command, or a text for the model (`//…` for one that begins with a slash)."""
    if line.startswith("//"):
        talk.say(line[1:])
    elif match := _INPUT.fullmatch(line):
        name, rest = match.groups()
        command = command_named(name)
        if rest.strip() and not command.argument:
            raise StrataError(INVALID_USAGE, f"{name} takes nothing after it", hint=f"write {name} alone")
        command.action(talk, rest)
    elif line.strip():
        talk.say(line)


def command_named(name: str) -> Command:
    for command in COMMANDS:
        if name in command.names:
            return command
    known = [other for command in COMMANDS for other in command.names]
    close = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]}?" if close else "/help lists the commands"
    raise StrataError(INVALID_USAGE, f"there is no command {name}", hint=f"{hint} (begin with // to send it as text)")


def _try(talk: Talk, dialogue: Dialogue) -> None:
    """Answer another dialogue; the one before comes back when no answer comes."""
    before = talk.dialogue
    talk.change(dialogue)
    try:
        talk.answer()
    except BaseException:
        if talk.dialogue is dialogue and before is not dialogue:
            talk.change(before)
        raise


def _continue(talk: Talk, _: str) -> None:
    """Also begins an answer again whose prompt was stopped, and goes on with a finished one."""
    if not talk.dialogue.asked:
        raise StrataError(NOTHING_TO_CONTINUE, "there is nothing to continue yet", hint="say something first")
    _try(talk, talk.dialogue.opened())


def _edit(talk: Talk, _: str) -> None:
    answer = talk.dialogue.answer
    if answer is None:
        raise StrataError(INVALID_USAGE, "there is no answer to edit", hint="say something first")
    edited = talk.dialogue.edited(talk.edit(answer))
    if edited is talk.dialogue:
        talk.note("nothing was changed")
        return
    talk.change(edited)
    ending = "goes on from its end" if edited.unfinished else "begins it again"
    talk.note(f"edited; /continue {ending}")


def _prefix(talk: Talk, rest: str) -> None:
    talk.change(replace(talk.dialogue, prefix=rest))
    talk.note("the next answer begins with this text" if rest else "the next answer begins by itself")


def _undo(talk: Talk, _: str) -> None:
    if talk.before_clear is not None and not talk.dialogue.asked:
        undone = talk.before_clear
        said = f"everything is back: {turns(undone)}"
    else:
        undone = talk.dialogue.undone()
        said = f"took the last turn back; {turns(undone)} left"
    if undone is talk.dialogue:
        raise StrataError(INVALID_USAGE, "there is nothing to undo", hint="say something first")
    talk.before_clear = None
    talk.change(undone)
    talk.note(said)


def turns(dialogue: Dialogue) -> str:
    return f"{dialogue.turns} turn{'s' if dialogue.turns != 1 else ''}"


def _retry(talk: Talk, _: str) -> None:
    retried = talk.dialogue.retried()
    if not retried.asked:
        raise StrataError(INVALID_USAGE, "there is no answer to begin again", hint="say something first")
    _try(talk, retried)


def _system(talk: Talk, rest: str) -> None:
    before = talk.dialogue.system
    talk.change(talk.dialogue.with_system(rest.strip()))
    if rest.strip():
        talk.note("the system message is set")
    else:
        talk.note("there is no system message now" + (f"; it was: {before}" if before else ""))


SETTINGS = (*SamplingOptions._fields, "thinking")


_SHORT_NAMES = {"temp": "temperature", "n": "max_tokens"}
THINKING = ("on", "off", "auto")


def _set_thinking(talk: Talk, choice: str) -> None:
    if choice not in ("show", "fold", "hide"):
        raise StrataError(INVALID_USAGE, f"thinking cannot be {choice}", hint="it can be show, fold or hide")
    talk.thinking = choice


def _set(talk: Talk, rest: str) -> None:
    name, _, value = rest.strip().partition(" ")
    name = name.replace("-", "_")
    name = _SHORT_NAMES.get(name, name)
    if not name:
        _show_settings(talk)
        return
    if name not in SETTINGS:
        close = difflib.get_close_matches(name, SETTINGS, 1)
        hint = f"did you mean {close[0]}?" if close else f"it can be {', '.join(SETTINGS)}"
        raise StrataError(INVALID_USAGE, f"there is no setting {name}", hint=hint)
    if name == "thinking":
        _set_thinking(talk, value.strip() or "show")
    else:
        talk.sampling = talk.sampling._replace(**{name: _setting(name, value.strip())})
    _show_settings(talk)


def _setting(name: str, text: str) -> object:
    """The value in its type, by the same rules as a request's field; nothing takes a setting back."""
    if name == "stop":
        return _words(text)
    if not text:
        return None
    value = _number(name, text)
    if abs(value) >= 2**31 and name != "seed":
        raise StrataError(INVALID_REQUEST, f"{text} is too much for {name}", hint=f"/set {name} NUMBER")
    if name == "seed" and not 0 <= value < 2**32 - 1:
        raise StrataError(INVALID_REQUEST, f"{text} is no seed", hint="it can be 0 to 4294967294")
    if name == "repeat_penalty" and value == 0:
        raise StrataError(INVALID_REQUEST, "repeat_penalty must be greater than 0", hint="1 is off")
    return getattr(parse({"messages": [], name: value}).sampling, name)


def _number(name: str, text: str) -> int | float:
    try:
        value = float(text)
        if math.isfinite(value):
            return value if any(letter in text for letter in ".eE") else int(text)
    except ValueError:
        pass
    raise StrataError(INVALID_USAGE, f"{text!r} is no number for {name}", hint=f"/set {name} NUMBER")


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(filter(None, shlex.split(text)))
    except ValueError:
        raise StrataError(INVALID_USAGE, "a quotation mark is open", hint='/set stop "one text" another') from None


def _show_settings(talk: Talk) -> None:
    sampling = sampling_of(talk.conversation.engine.info, talk.sampling, lambda: 0)
    for name in SamplingOptions._fields:
        said = getattr(talk.sampling, name)
        value = said if said not in (None, ()) else getattr(sampling, name, None)
        if name == "seed" and said is None:
            value = None
        talk.messages.line(f"  {name:18} {'-' if value is None else value}")
    talk.messages.line(f"  {'thinking':18} {talk.thinking}")


def _think(talk: Talk, rest: str) -> None:
    choice = rest.strip()
    if choice and choice not in THINKING:
        raise StrataError(INVALID_USAGE, f"/think {choice} is not known", hint="it can be on, off or auto")
    if choice:
        talk.template_kwargs.pop("enable_thinking", None)
    if choice in ("on", "off"):
        talk.template_kwargs["enable_thinking"] = choice == "on"
    said = talk.template_kwargs.get("enable_thinking")
    talk.note(f"thinking: {'auto' if said is None else 'on' if said else 'off'}")
    # Another prompt has another length.
    talk.counted = None


def _tokens(talk: Talk, _: str) -> None:
    if talk.accounting is not None:
        talk.messages.line(accounting.line(talk.accounting, continued=talk.continued))
    if talk.prefill is not None:
        evaluated = talk.prefill.total - talk.prefill.reused
        talk.messages.line(f"prefill: {evaluated} tokens evaluated, {talk.prefill.reused} reused")
    context, used = talk.conversation.engine.info.context, talk.used()
    known = "" if used is None else f"{used} of "
    left = "" if used is None else f" used, {max(context - used, 0)} left"
    talk.messages.line(f"context: {known}{context} tokens{left}")


def _prompt(talk: Talk, _: str) -> None:
    """What would be evaluated now; after a finished answer, the history."""
    if not talk.dialogue.messages:
        raise StrataError(INVALID_USAGE, "nothing was said yet", hint="say something first")
    prompt = talk.conversation.compose(talk.standing())
    engine, stream = talk.conversation.engine, talk.environment.stdout
    tokens = [engine.token_bytes(token) for token in engine.tokenize(prompt.text)]
    stream.text(picture(prompt, tokens, colour=talk.environment.colour(stream)))


def _copy(talk: Talk, _: str) -> None:
    if talk.dialogue.answer is None:
        raise StrataError(INVALID_USAGE, "there is no answer to copy", hint="say something first")
    talk.note(f"copied with {copy(talk.environment, talk.dialogue.answer)}")


def _save(talk: Talk, rest: str) -> None:
    file = _file(talk, rest.strip()) if rest.strip() else talk.session
    if file is None:
        raise StrataError(INVALID_USAGE, "no file was named", hint="/save FILE")
    file.replace(saved.dump(talk.dialogue))
    talk.note(f"saved {turns(talk.dialogue)} to {file.name}")


def _file(talk: Talk, name: str) -> SessionFile:
    """The file of this name, the same one each time, since it remembers what it held."""
    file = SessionFile(name)
    if talk.session is not None and talk.session.place == file.place:
        return talk.session
    return talk.files.setdefault(str(file.place), file)


def _load(talk: Talk, rest: str) -> None:
    """With a session, the loaded file becomes the session: the one before stays as it is."""
    name = rest.strip()
    if not name:
        raise StrataError(INVALID_USAGE, "no file was named", hint="/load FILE")
    file = SessionFile(name)
    data = file.read()
    if data is None:
        raise StrataError(SESSION_INVALID, f"there is no file {name}", hint="check its name")
    dialogue = saved.load(data, name)
    talk.files[str(file.place)] = file
    kept = ""
    if talk.session is not None:
        talk.session, kept = file, "; it is the session now"
    talk.dialogue, talk.before_clear = dialogue, None
    state = "; the last answer is unfinished, /continue goes on" if dialogue.unfinished else ""
    talk.note(f"loaded {turns(dialogue)}{state}{kept}")


def _model(talk: Talk, rest: str) -> None:
    info, name = talk.conversation.engine.info, rest.strip()
    if not name:
        talk.messages.line(f"{info.name} ({info.path})")
        return
    talk.check_model(name)
    # Two models at once may not fit; the other one, checked, is opened when this one is gone.
    talk.conversation.engine.close()
    try:
        talk.conversation = talk.reopen(name)
    except (StrataError, Interrupted) as error:
        _back(talk, info.path, error)
        raise
    # Another vocabulary has other tokens.
    talk.change(replace(talk.dialogue, draft=None))
    talk.accounting = talk.prefill = None
    talk.note(f"{talk.conversation.engine.info.name} answers from here on")


def _back(talk: Talk, path: str, error: Exception) -> None:
    """Open the model before again, unless the process is about to end."""
    interrupt = talk.environment.interrupt
    if isinstance(error, Interrupted) and interrupt.signal != SIGINT:
        return
    interrupt.clear()
    talk.conversation = talk.reopen(path)
    talk.note(f"{talk.conversation.engine.info.name} goes on answering")


def _clear(talk: Talk, _: str) -> None:
    if talk.dialogue.asked:
        talk.before_clear = talk.dialogue
    talk.change(talk.dialogue.cleared())
    kept = "; the system message stays" if talk.dialogue.messages else ""
    back = ", /undo brings everything back" if talk.before_clear is not None else ""
    talk.note(f"begun anew{kept}{back}")


def _help(talk: Talk, _: str) -> None:
    for command in COMMANDS:
        names = ", ".join(command.names)
        talk.messages.line(f"  {names + ' ' + command.argument:22} {command.sentence}")
    talk.messages.line("  Ctrl-C stops an answer and keeps it; Alt-Enter begins a new line; //text sends /text.")


def _exit(_: Talk, __: str) -> None:
    raise Leave


COMMANDS = (
    Command(("/continue",), "", "Go on with the answer, as if it had never stopped.", _continue),
    Command(("/edit",), "", "Change the last answer in your editor; then /continue.", _edit),
    Command(("/prefix",), "TEXT", "Begin the next answer with this text; alone, with none.", _prefix),
    Command(("/undo",), "", "Take the last turn back, or what /clear took away.", _undo),
    Command(("/retry", "/regen"), "", "Answer again.", _retry),
    Command(("/system",), "TEXT", "Set the system message; alone, take it away.", _system),
    Command(("/set",), "NAME VALUE", "Change how tokens are chosen; alone, show it.", _set),
    Command(("/think",), "on|off|auto", "Ask the template for reasoning.", _think),
    Command(("/tokens",), "", "Show the accounting of the last prompt.", _tokens),
    Command(("/prompt",), "", "Show the exact prompt.", _prompt),
    Command(("/copy",), "", "Copy the last answer.", _copy),
    Command(("/save",), "FILE", "Write the conversation to a file.", _save),
    Command(("/load",), "FILE", "Read a conversation from a file.", _load),
    Command(("/model",), "MODEL", "Let another model answer.", _model),
    Command(("/clear",), "", "Begin anew, with the same system message.", _clear),
    Command(("/help",), "", "Show this list.", _help),
    Command(("/exit", "/bye"), "", "Leave.", _exit),
)
