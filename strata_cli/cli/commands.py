"""What the REPL's commands do. The table at the end is the whole list: help and completion are read from it."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

from strata_cli.cli.kept import read_session
from strata_cli.cli.opening import sampling_of
from strata_cli.cli.talking import Talk
from strata_cli.conversation import saved
from strata_cli.conversation.dialogue import Dialogue
from strata_cli.conversation.request import SamplingOptions
from strata_cli.errors import INVALID_USAGE, NOTHING_TO_CONTINUE, SESSION_INVALID, StrataError
from strata_cli.generation import accounting
from strata_cli.output.terminal.clipboard import copy
from strata_cli.output.terminal.sanitize import visible
from strata_cli.output.terminal.screen import coloured_prompt
from strata_cli.store import sessions


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


def run(talk: Talk, line: str) -> None:
    """Do what one input says: a command, or a text for the model (`//…` for one that begins with a slash)."""
    if line.startswith("//"):
        talk.say(line[1:])
    elif line.startswith("/"):
        name, _, rest = line.partition(" ")
        command_named(name.rstrip()).action(talk, rest.strip("\n"))
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


def _continue(talk: Talk, rest: str) -> None:
    """Also begins an answer again whose prompt was stopped, and goes on with a finished one."""
    dialogue = talk.dialogue
    if rest:
        raise StrataError(INVALID_USAGE, "/continue takes nothing after it", hint="/edit changes the answer first")
    if dialogue.answer is not None:
        if not dialogue.unfinished:
            talk.change(replace(dialogue, unfinished=True))
    elif not dialogue.messages or dialogue.messages[-1].role == "system":
        raise StrataError(NOTHING_TO_CONTINUE, "there is nothing to continue yet", hint="say something first")
    talk.answer()


def _edit(talk: Talk, _: str) -> None:
    answer = talk.dialogue.answer
    if answer is None:
        raise StrataError(INVALID_USAGE, "there is no answer to edit", hint="say something first")
    edited = talk.dialogue.edited(talk.edit(answer))
    if edited is talk.dialogue:
        talk.note("nothing was changed")
        return
    talk.change(edited)
    talk.note("edited; /continue goes on from its end")


def _prefix(talk: Talk, rest: str) -> None:
    talk.change(replace(talk.dialogue, prefix=rest))
    talk.note("the next answer begins with this text" if rest else "the next answer begins by itself")


def _undo(talk: Talk, _: str) -> None:
    undone = talk.dialogue.undone()
    if undone is talk.dialogue:
        raise StrataError(INVALID_USAGE, "there is nothing to undo", hint="say something first")
    talk.change(undone)
    talk.note(f"took the last turn back; {turns(undone)} left")


def turns(dialogue: Dialogue) -> str:
    count = sum(message.role == "user" for message in dialogue.messages)
    return f"{count} turn{'s' if count != 1 else ''}"


def _retry(talk: Talk, _: str) -> None:
    retried = talk.dialogue.retried()
    if not retried.messages or retried.messages[-1].role == "system":
        raise StrataError(INVALID_USAGE, "there is no answer to begin again", hint="say something first")
    talk.change(retried)
    talk.answer()


def _system(talk: Talk, rest: str) -> None:
    talk.change(talk.dialogue.with_system(rest))
    talk.note("the system message is set" if rest else "there is no system message now")


_SETTINGS = tuple(field.name for field in fields(SamplingOptions))


def _set(talk: Talk, rest: str) -> None:
    name, _, value = rest.strip().partition(" ")
    name = name.replace("-", "_")
    name = {"temp": "temperature", "n": "max_tokens"}.get(name, name)
    if not name:
        _show_settings(talk)
        return
    if name not in _SETTINGS:
        close = difflib.get_close_matches(name, _SETTINGS, 1)
        hint = f"did you mean {close[0]}?" if close else f"it can be {', '.join(_SETTINGS)}"
        raise StrataError(INVALID_USAGE, f"there is no setting {name}", hint=hint)
    talk.sampling = replace(talk.sampling, **{name: _setting(name, value.strip())})
    _show_settings(talk)


def _setting(name: str, text: str) -> object:
    """The value in its type, by the same rules as a request's field; nothing takes a setting back."""
    from strata_cli.conversation.openai import parse

    if name == "stop":
        return tuple(text.split()) if text else ()
    if not text:
        return None
    try:
        value = float(text) if "." in text else int(text)
    except ValueError:
        raise StrataError(INVALID_USAGE, f"{text!r} is no number for {name}", hint=f"/set {name} NUMBER") from None
    return getattr(parse({"messages": [], name: value}).sampling, name)


def _show_settings(talk: Talk) -> None:
    sampling = sampling_of(talk.conversation.engine.info, talk.sampling, lambda: 0)
    for name in _SETTINGS:
        said = getattr(talk.sampling, name)
        value = said if said not in (None, ()) else getattr(sampling, name, None)
        if name == "seed" and said is None:
            value = None
        talk.messages.line(f"  {name:18} {'-' if value is None else value}")


def _think(talk: Talk, rest: str) -> None:
    choice = rest.strip() or "auto"
    if choice not in ("on", "off", "auto"):
        raise StrataError(INVALID_USAGE, f"/think {choice} is not known", hint="it can be on, off or auto")
    talk.template_kwargs.pop("enable_thinking", None)
    if choice != "auto":
        talk.template_kwargs["enable_thinking"] = choice == "on"
    talk.note(f"thinking: {choice}")


def _tokens(talk: Talk, _: str) -> None:
    if talk.accounting is not None:
        talk.messages.line(accounting.line(talk.accounting, continued=talk.continued))
    context = talk.conversation.engine.info.context
    talk.messages.line(f"context: {talk.used()} of {context} tokens used, {max(context - talk.used(), 0)} left")


def _prompt(talk: Talk, _: str) -> None:
    """What would be evaluated now; after a finished answer, the history."""
    request = talk.request()
    if not request.messages:
        raise StrataError(INVALID_USAGE, "nothing was said yet", hint="say something first")
    if request.messages[-1].role == "assistant" and not request.continue_final:
        request = replace(request, add_generation_prompt=False, assistant_prefix="")
    prompt = talk.conversation.compose(request)
    stream = talk.environment.stdout
    stream.text(coloured_prompt(prompt.text, prompt.spans, colour=talk.environment.colour(stream)) + "\n")


def _copy(talk: Talk, _: str) -> None:
    if talk.dialogue.answer is None:
        raise StrataError(INVALID_USAGE, "there is no answer to copy", hint="say something first")
    talk.note(f"copied with {copy(talk.environment, talk.dialogue.answer)}")


def _save(talk: Talk, rest: str) -> None:
    name = rest.strip() or talk.session
    if not name:
        raise StrataError(INVALID_USAGE, "no file was named", hint="/save FILE")
    sessions.write(name, saved.dump(talk.dialogue))
    talk.note(f"saved {turns(talk.dialogue)} to {visible(name)}")


def _load(talk: Talk, rest: str) -> None:
    name = rest.strip()
    if not name:
        raise StrataError(INVALID_USAGE, "no file was named", hint="/load FILE")
    dialogue = read_session(name)
    if dialogue is None:
        raise StrataError(SESSION_INVALID, f"there is no file {name}", hint="check its name")
    talk.change(dialogue)
    state = "; the last answer is unfinished, /continue goes on" if dialogue.unfinished else ""
    talk.note(f"loaded {turns(dialogue)}{state}")


def _model(talk: Talk, rest: str) -> None:
    if not rest.strip():
        talk.messages.line(f"{talk.conversation.engine.info.name} ({talk.conversation.engine.info.path})")
        return
    before = talk.conversation
    talk.conversation = talk.reopen(rest.strip())
    before.engine.close()
    # Another vocabulary has other tokens.
    talk.change(replace(talk.dialogue, draft=None))
    talk.note(f"{talk.conversation.engine.info.name} answers from here on")


def _clear(talk: Talk, _: str) -> None:
    system = tuple(message for message in talk.dialogue.messages[:1] if message.role == "system")
    talk.change(Dialogue(system))
    talk.note("begun anew" + ("; the system message stays" if system else ""))


def _help(talk: Talk, _: str) -> None:
    for command in COMMANDS:
        names = ", ".join(command.names)
        talk.messages.line(f"  {names + ' ' + command.argument:24} {command.sentence}")
    talk.messages.line("  Ctrl-C stops an answer and keeps it; Alt-Enter starts a new line; //text sends /text.")


def _exit(_: Talk, __: str) -> None:
    raise Leave


COMMANDS = (
    Command(("/continue",), "", "Go on with the answer, as if it had never stopped.", _continue),
    Command(("/edit",), "", "Change the last answer in your editor; then /continue.", _edit),
    Command(("/prefix",), "TEXT", "Begin the next answer with this text.", _prefix),
    Command(("/undo",), "", "Take the last turn back.", _undo),
    Command(("/retry", "/regen"), "", "Begin the last answer again.", _retry),
    Command(("/system",), "TEXT", "Set the system message.", _system),
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
