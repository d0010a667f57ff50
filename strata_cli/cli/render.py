"""strata render"""

from typing import Annotated

import typer

from strata_cli.cli.options import (
    InputOptions,
    ModelOptions,
    PrefillOptions,
    RenderOutputOptions,
    StructureOptions,
    TemplateOptions,
    TokenTextOptions,
    takes,
)


@takes(
    PrefillOptions, InputOptions, ModelOptions, TemplateOptions, StructureOptions, TokenTextOptions, RenderOutputOptions
)
def command(
    ctx: typer.Context,
    prompt: Annotated[list[str] | None, typer.Argument(metavar="PROMPT", help="What you say.")] = None,
    *groups: object,
) -> None:
    """No weights are read. With --template and no model, nothing but the template is read, and nothing is tokenised.

    strata render --prefix "The next number is" "Complete the sequence: 1, 2, 3,"
    """
    from strata_cli.cli.rendering import render

    raise typer.Exit(render(ctx.obj, prompt, *groups))
