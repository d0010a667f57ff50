"""strata man"""

from typing import Annotated

import typer


def command(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="COMMAND", help="A command, or nothing for strata itself.")] = "",
) -> None:
    """The page is roff, as it lies in man/.

    strata man chat | man -l -
    """
    from strata_cli.cli.generate import man_page

    ctx.obj.stdout.text(man_page(name))
