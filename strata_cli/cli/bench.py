"""strata bench"""

from typing import Annotated

import typer

from strata_cli.cli.options import BenchOptions, DeviceOptions, ModelOptions, takes


@takes(BenchOptions, ModelOptions, DeviceOptions)
def command(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="MODEL", help="A GGUF file or a model's name.")] = None,
    *groups: object,
) -> None:
    """At each depth, that many tokens are in the KV cache already; all figures are tokens per second.

    strata bench --depth 0,512,4096 --against raw
    """
    from strata_cli.cli.benching import bench

    raise typer.Exit(bench(ctx.obj, name, *groups))
