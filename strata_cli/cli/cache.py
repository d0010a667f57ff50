"""strata cache"""

from typing import Annotated, Literal

import typer

from strata_cli.cli.command import Command
from strata_cli.engine.cache import PromptCache, folder_of

command = typer.Typer(rich_markup_mode=None, add_completion=False)


def _cache(ctx: typer.Context) -> PromptCache:
    return PromptCache(folder_of(ctx.obj.variables), lambda note: None)


@command.command("info", cls=Command)
def info(
    ctx: typer.Context,
    format: Annotated[
        Literal["text", "json"] | None, typer.Option("--format", help="What is written.", show_default=False)
    ] = None,
) -> None:
    """Say where the cache is, how many prompts it holds, and their size."""
    from strata_cli.output import json

    cache = _cache(ctx)
    entries = list(cache.entries())
    used = sum(entry.bytes for entry in entries)
    if format == "json":
        value = {"folder": str(cache.folder), "prompts": len(entries), "bytes": used, "limit": cache.limit}
        ctx.obj.stdout.text(json.line(value))
        return
    ctx.obj.stdout.text(
        f"folder   {cache.folder}\nprompts  {len(entries)}\nsize     {_megabytes(used)} of {_megabytes(cache.limit)}\n"
    )


@command.command("clear", cls=Command)
def clear(ctx: typer.Context) -> None:
    """Remove all evaluated prompts."""
    number, size = _cache(ctx).clear()
    ctx.obj.stdout.text(f"removed {number} prompt{'' if number == 1 else 's'}, {_megabytes(size)}\n")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
