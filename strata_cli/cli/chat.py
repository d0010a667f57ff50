"""strata chat"""

from typing import Annotated

import typer

from strata_cli.cli.options import (
    DeviceOptions,
    InputOptions,
    ModelOptions,
    OutputOptions,
    PrefillOptions,
    SamplingOptions,
    SessionOptions,
    StructureOptions,
    TemplateOptions,
    takes,
)


@takes(
    PrefillOptions,
    InputOptions,
    SessionOptions,
    ModelOptions,
    TemplateOptions,
    StructureOptions,
    SamplingOptions,
    DeviceOptions,
    OutputOptions,
)
def command(
    ctx: typer.Context,
    prompt: Annotated[list[str] | None, typer.Argument(metavar="PROMPT", help="What you say.")] = None,
    *groups: object,
) -> None:
    """Words are joined with spaces. Piped text goes before the prompt; a piped JSON conversation is answered.
    Without any of them, on a terminal, a conversation begins; /help lists its commands.

    strata chat --prefix "The next number is" "Complete the sequence: 1, 2, 3,"
    """
    from strata_cli.cli.conversing import converse

    raise typer.Exit(converse(ctx.obj, prompt, *groups))
