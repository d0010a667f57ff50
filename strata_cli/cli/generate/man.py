"""Manual pages, in roff's man macros."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from strata_cli import __version__
from strata_cli.cli.generate.definition import Argument, Command, Option, Value
from strata_cli.errors import ExitStatus

_STATUS = {
    ExitStatus.OK: "Done; also when whoever read the output closed it.",
    ExitStatus.MODEL: "The model could not be found, loaded or run, or the output could not be written.",
    ExitStatus.USAGE: "The command line or the request is wrong.",
    ExitStatus.CONTEXT: "The prompt does not fit the context.",
    ExitStatus.STRUCTURED_OUTPUT: "The answer does not have the form that was asked for.",
}
_INTERRUPTED = "Interrupted. What was generated has been printed; the process dies of the signal itself."

Heeded = tuple[str, str, tuple[str, ...]]

# Variable, meaning, and the options, values or commands that heed it; the program's own page has them all.
_VARIABLES: tuple[Heeded, ...] = (
    ("STRATA_MODEL", "The model, where none is named on the command line.", ("MODEL",)),
    ("STRATA_CONFIG", "The configuration file.", ("MODEL",)),
    ("STRATA_DEBUG", "Anything but 0: as --debug.", ("--debug",)),
    ("NO_COLOR", "Anything: no colour, unless --color asks for it.", ("--color",)),
    ("FORCE_COLOR", "Anything but 0: colour also where no terminal is.", ("--color",)),
    ("HF_HUB_CACHE, HF_HOME", "Where the Hugging Face tools keep the models that they downloaded.", ("MODEL",)),
    (
        "XDG_CACHE_HOME",
        "The folder above strata/prompts, and above huggingface/hub without these two; ~/.cache.",
        ("MODEL", "strata-cache"),
    ),
    (
        "XDG_STATE_HOME",
        "The folder above strata/history, what was typed in conversations; ~/.local/state.",
        ("--session",),
    ),
    ("VISUAL, EDITOR", "The editor of /edit and of Ctrl-X Ctrl-E in a conversation.", ("--session",)),
    ("XDG_CONFIG_HOME", "The folder above strata/config.toml; ~/.config.", ("MODEL",)),
)

# As above, with files.
_FILES: tuple[Heeded, ...] = (
    (
        "~/.config/strata/config.toml",
        "Defaults, in TOML. Keys are the names of options without their dashes, at the top level for all commands that "
        "take a model, or in a table named like one of them. An option on the command line goes before an environment "
        "variable, and that before this file.",
        ("MODEL",),
    ),
    ("~/.local/state/strata/history", "What was typed in conversations; for you alone to read.", ("--session",)),
    ("~/.cache/strata/prompts", "Evaluated beginnings of prompts, at most 2 GB.", ("--no-cache", "strata-cache")),
)


def page(program: Command, command: Command) -> str:
    """The whole page of the program, or of one of its commands with the commands below it."""
    title = _title(command)
    lines = [
        f'.TH {_text(title.upper())} 1 "" "strata {__version__}" "Strata manual"',
        ".SH NAME",
        _line(f"{title} \\- {_text(_without_capital(command.summary))}"),
        ".SH SYNOPSIS",
        *_synopses(command, program),
        ".SH DESCRIPTION",
        *_paragraphs((command.summary, *command.paragraphs)),
        *_options(command),
        *(_index(command) if command is program else _commands(command)),
        *_heeded("ENVIRONMENT", _VARIABLES, command, everything=command is program),
        *_heeded("FILES", _FILES, command, everything=command is program),
        *_exit_status(generates=command is program or "PROMPT" in set(_heeds(command))),
        *_examples(program if command is program else command),
        *_see_also([other for other in (program, *program.commands) if other is not command]),
    ]
    return "\n".join(lines) + "\n"


def _title(command: Command) -> str:
    return "-".join(command.words)


def _synopses(command: Command, program: Command) -> Iterator[str]:
    """A line for the command, or for each of those below it where it does nothing by itself."""
    for number, called in enumerate(command.commands if command is not program and command.commands else (command,)):
        if number:
            yield ".br"
        words = [_bold(called.line), "[" + _italic("OPTION") + "]..."]
        words += map(_placeholder, called.arguments)
        words += [_italic("COMMAND"), f"[{_italic('ARGUMENT')}]..."] if called.commands else []
        yield " ".join(words)


def _placeholder(argument: Argument) -> str:
    name = _value(argument.value)
    return (name if argument.required else f"[{name}]") + ("..." if argument.repeatable else "")


def _paragraphs(texts: Sequence[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        if number:
            yield ".PP"
        yield _text(text)


def _options(command: Command) -> Iterator[str]:
    """Arguments and options under the titles that the help has too."""
    yield ".SH OPTIONS"
    sections = _sections(command)
    for title, entries in sections.items():
        if len(sections) > 1:
            yield f".SS {_text(title)}"
        yield from entries


def _sections(command: Command) -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    for argument in command.arguments:
        sections.setdefault("Arguments", []).extend([".TP", _placeholder(argument), _text(argument.help)])
    for option in command.options:
        sections.setdefault(option.section, []).extend(_entry(option))
    return sections


def _entry(option: Option) -> list[str]:
    """An option's names with its value, then what is said about it."""
    names = ", ".join(map(_bold, option.names))
    if option.opposite:
        names += " / " + ", ".join(map(_bold, option.opposite))
    if option.value is not None:
        names += f" {_value(option.value)}"
    return [".TP", names, _text(" ".join(filter(None, [option.help, _choices(option.value), _limits(option)])))]


def _value(value: Value) -> str:
    """Words that are typed as they are in bold, names for something else in italics."""
    return "|".join(_bold(word) if word.islower() else _italic(word) for word in value.name.split("|"))


def _choices(value: Value | None) -> str:
    if value is None or not value.choices or set(value.choices) <= set(value.name.split("|")):
        return ""
    return f"One of {', '.join(value.choices)}."


def _limits(option: Option) -> str:
    match option.least, option.most:
        case None, None:
            return ""
        case least, None:
            return f"At least {least}."
        case None, most:
            return f"At most {most}."
        case least, most:
            return f"From {least} to {most}."


def _index(program: Command) -> Iterator[str]:
    yield ".SH COMMANDS"
    for command in program.commands:
        yield from (".TP", f"{_bold(_title(command))}(1)", _text(command.summary))


def _commands(command: Command) -> Iterator[str]:
    if command.commands:
        yield ".SH COMMANDS"
    for below in command.commands:
        yield f".SS {_text(below.line)}"
        yield from _paragraphs((below.summary, *below.paragraphs))
        for entries in _sections(below).values():
            yield from entries


def _heeded(title: str, table: Sequence[Heeded], command: Command, *, everything: bool) -> Iterator[str]:
    heeds = {word for one in command.all() for word in _heeds(one)}
    named = [(name, text) for name, text, who in table if everything or not heeds.isdisjoint(who)]
    if named:
        yield f".SH {title}"
    for name, text in named:
        yield from (".TP", _bold(name), _text(text))


def _heeds(command: Command) -> Iterator[str]:
    yield _title(command)
    yield from (argument.value.name for argument in command.arguments)
    for option in command.options:
        yield from option.names
        yield option.value.name if option.value else ""


def _exit_status(*, generates: bool) -> Iterator[str]:
    yield ".SH EXIT STATUS"
    for status in ExitStatus:
        if not generates and status in (ExitStatus.CONTEXT, ExitStatus.STRUCTURED_OUTPUT):
            continue
        yield from (".TP", _bold(str(int(status))), _text(_STATUS[status]))
    yield from (".TP", _bold("130"), _text(_INTERRUPTED))


def _examples(command: Command) -> Iterator[str]:
    examples = [example for one in command.all() for example in one.examples]
    if examples:
        yield ".SH EXAMPLES"
        yield from (".nf", *(f"\\&{_code(example)}" for example in examples), ".fi")


def _see_also(commands: Sequence[Command]) -> Iterator[str]:
    yield ".SH SEE ALSO"
    yield ",\n".join(f"{_bold(_title(command))}(1)" for command in commands)


def _without_capital(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:].removesuffix(".")


_ESCAPES = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}


def _code(text: str) -> str:
    """Text that is typed: roff must not make typographic signs of it."""
    return _ascii("".join(_ESCAPES.get(letter, letter) for letter in text))


def _bold(text: str) -> str:
    return f"\\fB{_code(text)}\\fR"


def _italic(text: str) -> str:
    return f"\\fI{_code(text)}\\fR"


def _text(text: str) -> str:
    """A sentence: what stands between backquotes is bold, as are options; a hyphen inside a word remains one."""
    pieces = re.split(r"`([^`]*)`|(?<![\w-])(--?[A-Za-z][\w-]*)", text)
    roff = ""
    for prose, quoted, option in zip(pieces[0::3], [*pieces[1::3], None], [*pieces[2::3], None], strict=True):
        roff += prose.replace("\\", "\\e")
        if typed := quoted or option:
            roff += _bold(typed)
    return _line(roff)


def _line(roff: str) -> str:
    """In lines of moderate length, none of which is a request."""
    lines = textwrap.wrap(_ascii(roff), 78, break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in lines)


def _ascii(roff: str) -> str:
    return "".join(letter if letter.isascii() else f"\\[u{ord(letter):04X}]" for letter in roff)
