"""strata completion"""

from typing import Annotated, Literal

import typer


def command(
    ctx: typer.Context,
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Installers put the same script where the shell looks for it; this is for those that do not.

    source <(strata completion bash)
    """
    from strata_cli.cli.generate import completion

    ctx.obj.stdout.text(completion(shell))
