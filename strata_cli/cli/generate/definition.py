"""The command definitions as plain values: what completion scripts and manual pages are written from.

Values and their choices are read from the annotations that the commands are written with, since Typer keeps them
under names that change with its version.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from strata_cli.cli.command import section_of

Completes = Literal["choice", "file", "model", "nothing"]


@dataclass(frozen=True, slots=True)
class Value:
    """What an option or an argument takes: its name in the help, and what a shell may offer for it."""

    name: str
    completes: Completes
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Option:
    """An option; a flag has no value. `opposite` are the names that switch a flag off."""

    names: tuple[str, ...]
    opposite: tuple[str, ...]
    value: Value | None
    help: str
    section: str
    repeatable: bool
    variable: str
    least: float | None
    most: float | None

    @property
    def all_names(self) -> tuple[str, ...]:
        return self.names + self.opposite


@dataclass(frozen=True, slots=True)
class Argument:
    """A word of the command line that is no option."""

    value: Value
    help: str
    required: bool
    repeatable: bool


@dataclass(frozen=True, slots=True)
class Command:
    """A command as it is typed, what is said about it, what it takes, and the commands below it."""

    words: tuple[str, ...]
    summary: str
    paragraphs: tuple[str, ...]
    examples: tuple[str, ...]
    arguments: tuple[Argument, ...]
    options: tuple[Option, ...]
    commands: tuple[Command, ...]

    @property
    def name(self) -> str:
        return self.words[-1]

    @property
    def line(self) -> str:
        return " ".join(self.words)

    def all(self) -> Iterator[Command]:
        """This command and those below it."""
        yield self
        for command in self.commands:
            yield from command.all()


def program() -> Command:
    """The whole program as it is defined."""
    from strata_cli.cli.app import build_all

    group = build_all()
    return _command(group, group.context_class(group, info_name="strata", **group.context_settings), ())


def _command(command: Any, context: Any, above: tuple[str, ...]) -> Command:
    words = (*above, context.info_name)
    below = getattr(command, "commands", {})
    summary, paragraphs, examples = _told(command)
    annotations = _annotations(command.callback)
    params = [param for param in command.get_params(context) if not getattr(param, "hidden", False)]
    return Command(
        words,
        summary,
        paragraphs,
        examples,
        tuple(
            _argument(param, annotations.get(param.name), context)
            for param in params
            if param.param_type_name == "argument"
        ),
        tuple(_option(param, annotations.get(param.name)) for param in params if param.param_type_name == "option"),
        tuple(
            _command(other, other.context_class(other, info_name=name, parent=context), words)
            for name, other in below.items()
            if not other.hidden
        ),
    )


def _told(command: Any) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The sentence, the paragraphs and the examples of a command's help; sentences begin with a capital letter."""
    texts = [text.strip("\b\n ") for text in re.split(r"\n\s*\n", command.help or "")]
    texts = [text for text in texts if text]
    prose = [" ".join(text.split()) for text in texts if not text[0].islower()]
    examples = [line.strip() for text in texts if text[0].islower() for line in text.split("\n")]
    return prose[0], tuple(prose[1:]), tuple(examples)


def _annotations(callback: Any) -> dict[str, Any]:
    if callback is None:
        return {}
    return {name: parameter.annotation for name, parameter in inspect.signature(callback).parameters.items()}


def _argument(param: Any, annotation: Any, context: Any) -> Argument:
    root = context.find_root().command
    commands = tuple(name for name, command in root.commands.items() if not command.hidden)
    choices = commands if param.metavar == "COMMAND" else _choices(annotation)
    return Argument(_value(param, choices), param.help or "", param.required, param.nargs != 1)


def _option(param: Any, annotation: Any) -> Option:
    limits = next((info for info in get_args(annotation) if hasattr(info, "min")), None)
    return Option(
        # Typer keeps the names of --help in a set; short ones go first everywhere.
        names=tuple(sorted(param.opts, key=lambda name: name.startswith("--"))),
        opposite=tuple(param.secondary_opts),
        value=None if param.is_flag else _value(param, _choices(annotation)),
        help=param.help or "",
        section=section_of(param),
        repeatable=param.multiple,
        variable=param.envvar if isinstance(param.envvar, str) else "",
        least=getattr(limits, "min", None),
        most=getattr(limits, "max", None),
    )


def _value(param: Any, choices: tuple[str, ...]) -> Value:
    """A metavar says what a value is: FILE, MODEL, or words to choose from and names in capitals (`auto|all|N`)."""
    name = param.metavar or "|".join(choices) or param.name.upper()
    kinds = name.split("|")
    choices = choices or tuple(kind for kind in kinds if kind.islower())
    if choices:
        return Value(name, "choice", choices)
    if "FILE" in kinds:
        return Value(name, "file", ())
    return Value(name, "model" if "MODEL" in kinds else "nothing", ())


def _choices(annotation: Any) -> tuple[str, ...]:
    """The words of a Literal, wherever it stands in an annotation."""
    if get_origin(annotation) is Literal:
        return tuple(map(str, get_args(annotation)))
    return tuple(choice for part in get_args(annotation) for choice in _choices(part))
