"""The commands, by name. Only the one that is called is imported and built: start-up is felt at every prompt."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from inspect import cleandoc
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from strata_cli import __version__
from strata_cli.cli.command import Command
from strata_cli.cli.options import parameters
from strata_cli.settings import defaults

COMMANDS = {
    "chat": "Answer a prompt or a conversation, or go on with an answer.",
    "complete": "Continue raw text, without a chat template.",
    "render": "Show a request as its exact prompt, with its token counts.",
    "cache": "Say what the cache of evaluated prompts holds, or empty it.",
    "models": "List the models on this machine, or say where one is.",
    "bench": "Measure the speed of prefill and decode.",
    "completion": "Print the completion script of a shell.",
    "man": "Print a manual page.",
}

_CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def build(args: list[str], variables: Mapping[str, str]) -> TyperGroup:
    """The program's command group; every command but the one that `args` calls is a name with a sentence."""
    called = next((arg for arg in args if not arg.startswith("-")), None)
    asks_for_help = called is None or {"-h", "--help"} & set(args)
    known = {} if asks_for_help else {"default_map": defaults(variables, parameters())}
    return _group(lambda name: name == called, _CONTEXT | known)


def build_all() -> TyperGroup:
    """The whole program, for whoever reads its definition; no configuration file is read."""
    return _group(lambda _: True, _CONTEXT)


def _group(wanted: Callable[[str], bool], context: dict[str, Any]) -> TyperGroup:
    app = typer.Typer(
        name="strata",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=context,
        help="Chat with language models on your own machine, from a half-written answer if you like.",
    )
    app.callback()(_program)
    for name, sentence in COMMANDS.items():
        if not wanted(name):
            app.command(name, help=sentence)(_unbuilt)
            continue
        loaded = importlib.import_module(f"strata_cli.cli.{name}").command
        if isinstance(loaded, typer.Typer):
            app.add_typer(loaded, name=name, help=sentence)
        else:
            help = "\n\n".join([sentence, *map(_unwrapped_example, cleandoc(loaded.__doc__).split("\n\n"))])
            app.command(name, cls=Command, help=help, short_help=sentence)(loaded)
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return group


def _unwrapped_example(paragraph: str) -> str:
    """A paragraph that begins with a lower-case letter is an example, whose lines stay as they are."""
    if not paragraph[:1].islower():
        return paragraph
    return "\b\n" + "\n".join(f"    {line}" for line in paragraph.splitlines())


def _unbuilt() -> None:
    raise AssertionError("a command is built before it is called")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"strata {__version__}")
        raise typer.Exit


def _program(
    version: Annotated[
        bool | None,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit.", show_default=False
        ),
    ] = None,
) -> None:
    pass
