"""strata complete"""

from typing import Annotated

import typer

from strata_cli.cli.options import (
    DeviceOptions,
    ModelOptions,
    OutputOptions,
    RawInputOptions,
    SamplingOptions,
    takes,
)


@takes(RawInputOptions, ModelOptions, SamplingOptions, DeviceOptions, OutputOptions)
def command(
    ctx: typer.Context,
    prompt: Annotated[list[str] | None, typer.Argument(metavar="PROMPT", help="The text to continue.")] = None,
    *groups: object,
) -> None:
    """The text is the whole prompt, byte for byte; special tokens in it are understood.

    strata complete "Once upon a time"
    """
    from strata_cli.cli.completing import complete

    raise typer.Exit(complete(ctx.obj, prompt, *groups))
