"""strata models"""

from pathlib import Path
from typing import Annotated

import typer

from strata_cli.cli.command import Command

command = typer.Typer(rich_markup_mode=None, add_completion=False)


@command.command("list", cls=Command)
def list_models(
    ctx: typer.Context,
    names: Annotated[bool, typer.Option("--names", help="Names only, one a line.", show_default=False)] = False,
) -> None:
    """List the models of the current folder, of the Hugging Face cache and of the demo package."""
    from strata_cli.store.models import all_models, working_folder

    found = list(all_models(ctx.obj.variables, working_folder()))
    width = max((len(model.name) for model in found), default=0)
    for model in found:
        line = model.name if names else f"{model.name:{width}}  {model.store:12}{_size(model.path):>10}  {model.path}"
        ctx.obj.stdout.text(_shown(ctx, line) + "\n")


@command.command("path", cls=Command)
def path(
    ctx: typer.Context,
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="A name or a file.")] = None,
) -> None:
    """Print the file behind a model's name, or that of the model that answers where none is named."""
    from strata_cli.store.models import find, working_folder

    found = find(model, ctx.obj.variables, working_folder())
    ctx.obj.stdout.text(_shown(ctx, str(found.path)) + "\n")


def _size(path: Path) -> str:
    try:
        return f"{path.stat().st_size / 1e6:.0f} MB"
    except OSError:
        return "?"


def _shown(ctx: typer.Context, line: str) -> str:
    from strata_cli.output.terminal.sanitize import visible_line

    return visible_line(line) if ctx.obj.stdout.terminal else line
