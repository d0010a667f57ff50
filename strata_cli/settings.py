"""Where a value comes from: flag before environment variable before configuration file before default.

Flags and variables are Typer's business; this is the configuration file, whose keys are option names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from os.path import expanduser
from pathlib import Path
from typing import Any, NoReturn

from strata_cli.errors import INVALID_USAGE, StrataError


def path(variables: Mapping[str, str]) -> Path:
    """The configuration file: STRATA_CONFIG, else strata/config.toml in the XDG configuration folder."""
    if named := variables.get("STRATA_CONFIG"):
        return Path(expanduser(named))
    folder = variables.get("XDG_CONFIG_HOME") or Path(expanduser(variables.get("HOME") or "~")) / ".config"
    return Path(folder) / "strata" / "config.toml"


def defaults(variables: Mapping[str, str], known: frozenset[str]) -> dict[str, dict[str, Any]]:
    """Default values per command: the file's top level, its table named like the command, then variables.

    `known` are the parameters that there are; raises INVALID_USAGE for a key that is none of them, and for a table that
    is no command's.
    """
    values = _values(variables)
    shared = {key: value for key, value in values.items() if not isinstance(value, dict)}
    tables = {key: value for key, value in values.items() if isinstance(value, dict)}
    for key in (*shared, *(key for table in tables.values() for key in table)):
        if _parameter(key) not in known:
            names = {name.replace("_", "-") for name in known} | set(_NAMES)
            _refuse(f"sets {key}, which is no option", key, names, path(variables))
    for name in tables:
        if name not in COMMANDS:
            _refuse(f"has a table [{name}], which is no command's", name, COMMANDS, path(variables))
    said = {"model": model} if (model := variables.get("STRATA_MODEL")) else {}
    found: dict[str, dict[str, Any]] = {
        command: {_parameter(key): value for key, value in (shared | tables.get(command, {})).items()} | said
        for command in COMMANDS
    }
    # `models path` says which model a conversation would be held with.
    return found | {"models": {"path": found["chat"]}}


COMMANDS = ("chat", "complete", "render", "bench")


def _values(variables: Mapping[str, str]) -> dict[str, Any]:
    file = path(variables)
    try:
        data = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise StrataError(INVALID_USAGE, f"cannot read {file}: {error.strerror}") from None
    return _parse(data, file)


def _refuse(what: str, key: str, names: Iterable[str], file: Path) -> NoReturn:
    from difflib import get_close_matches

    close = get_close_matches(key, sorted(names), 1)
    hint = f"did you mean {close[0]}?" if close else "its keys are the names of options, its tables those of commands"
    raise StrataError(INVALID_USAGE, f"{file} {what}", hint=hint)


def _parse(data: bytes, file: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StrataError(INVALID_USAGE, f"{file} is not valid TOML: {error}", hint="correct the file") from None


# Parameters whose name is not their option's.
_NAMES = {"temp": "temperature"}


def _parameter(key: str) -> str:
    return _NAMES.get(key, key.replace("-", "_"))
