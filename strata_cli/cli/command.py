"""What every command has in common: text that begins with a dash, and help in sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from typer.core import TyperCommand

Takes = Callable[[str], "bool | None"]
"""Whether an option takes a value; None for a name that is no option."""


class Command(TyperCommand):
    """A command whose options end where text begins."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        takes = {
            name: not param.is_flag
            for param in self.get_params(ctx)
            if param.param_type_name == "option"
            for name in (*param.opts, *param.secondary_opts)
        }
        options, words = separate(args, takes.get)
        return super().parse_args(ctx, [*options, "--", *words] if words else options)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if record := param.get_help_record(ctx):
                sections.setdefault(section_of(param), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def section_of(param: Any) -> str:
    """The title under which help and man page list a parameter."""
    if param.param_type_name == "argument":
        return "Arguments"
    return getattr(param, "rich_help_panel", None) or "Options"


def separate(args: Iterable[str], takes: Takes) -> tuple[list[str], list[str]]:
    """Split a command line into options (with their values) and words, both in their order.

    An argument that begins with a dash and holds whitespace is a word, unless it is an option's value or a long option
    with its value attached (`--prefix=The next number is`). `--` makes words of all that follows. Where the last
    option lacks its value there are no words, lest it takes one: it is to be refused.
    """
    options: list[str] = []
    words: list[str] = []
    rest = iter(args)
    for arg in rest:
        if arg == "--":
            words.extend(rest)
        elif not arg.startswith("-") or arg == "-" or _is_text(arg):
            words.append(arg)
        else:
            options.append(arg)
            if _wants_value(arg, takes):
                if (value := next(rest, None)) is None:
                    return options, []
                options.append(value)
    return options, words


def _is_text(arg: str) -> bool:
    name, attached, _ = arg.partition("=")
    if attached and name.startswith("--") and not any(map(str.isspace, name)):
        return False
    return any(map(str.isspace, arg))


def _wants_value(arg: str, takes: Takes) -> bool:
    """Whether the next argument is this option's value: it takes one, and none is attached."""
    if "=" in arg and takes(arg.partition("=")[0]) is not None:
        return False
    if (known := takes(arg)) is not None:
        return known
    if arg.startswith("--"):
        return False
    for at, letter in enumerate(arg[1:], start=1):
        if takes(f"-{letter}"):
            return at == len(arg) - 1
    return False
