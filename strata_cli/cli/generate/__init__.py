"""Completion scripts, manual pages and the table of errors, written from the definitions."""

from __future__ import annotations

from strata_cli.cli.generate.definition import Command, program
from strata_cli.errors import INVALID_USAGE, StrataError


def completion(shell: str) -> str:
    """The completion script of bash, zsh or fish."""
    match shell:
        case "bash":
            from strata_cli.cli.generate.bash import script
        case "zsh":
            from strata_cli.cli.generate.zsh import script
        case "fish":
            from strata_cli.cli.generate.fish import script
        case _:
            raise StrataError(INVALID_USAGE, f"there is no completion script for {shell}", hint="bash, zsh or fish")
    return script(program())


def man_page(name: str) -> str:
    """The roff page of a command, of the program itself for an empty name; raises INVALID_USAGE."""
    from strata_cli.cli.generate.man import page

    whole = program()
    return page(whole, _named(whole, name))


def _named(whole: Command, name: str) -> Command:
    commands = {"": whole, whole.name: whole, **{command.name: command for command in whole.commands}}
    if command := commands.get(name.removeprefix("strata-")):
        return command
    from difflib import get_close_matches

    close = get_close_matches(name, list(commands), 1)
    hint = f"did you mean {close[0]}?" if close else f"one of {', '.join(c.name for c in whole.commands)}"
    raise StrataError(INVALID_USAGE, f"there is no command {name}", hint=hint)


def files() -> dict[str, str]:
    """Everything that is generated and committed, by its path in the repository."""
    from strata_cli.cli.generate.errors import document
    from strata_cli.cli.generate.man import page

    whole = program()
    return {
        "completions/strata.bash": completion("bash"),
        "completions/_strata": completion("zsh"),
        "completions/strata.fish": completion("fish"),
        "docs/errors.md": document(),
        **{f"man/{'-'.join(command.words)}.1": page(whole, command) for command in (whole, *whole.commands)},
    }
