"""strata bench"""

from typing import Annotated, Any

import typer

from strata_cli.cli.options import BenchOptions, DeviceOptions, ModelOptions, takes
from strata_cli.errors import INVALID_USAGE, StrataError


@takes(BenchOptions, ModelOptions, DeviceOptions)
def command(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="MODEL", help="A GGUF file or a model's name.")] = None,
    *groups: Any,
) -> None:
    """At each depth, that many tokens are in the KV cache already; all figures are tokens per second.

    strata bench --depth 0,512,4096 --against raw
    """
    from strata_cli.cli.benching import bench

    options, model, device = groups
    raise typer.Exit(bench(ctx.obj, options, _of(ctx, name, model), device))


def _of(ctx: typer.Context, name: str | None, model: ModelOptions) -> ModelOptions:
    """The model named on the command line goes before that of the environment or the configuration file."""
    if name is None:
        return model
    source = ctx.get_parameter_source("model")
    if model.model not in (None, name) and source is not None and source.name == "COMMANDLINE":
        raise StrataError(INVALID_USAGE, f"two models were named: {name} and {model.model}", hint="name one")
    return model.but(model=name)
