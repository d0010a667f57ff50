"""Where a value comes from: flag before environment variable before configuration file before default.

Flags and variables are Typer's business; this is the configuration file, whose keys are option names.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from os.path import expanduser
from pathlib import Path
from typing import Any

from strata_cli.errors import INVALID_USAGE, StrataError


def path(variables: Mapping[str, str]) -> Path:
    """The configuration file: STRATA_CONFIG, else strata/config.toml in the XDG configuration folder."""
    if named := variables.get("STRATA_CONFIG"):
        return Path(expanduser(named))
    folder = variables.get("XDG_CONFIG_HOME") or Path(expanduser(variables.get("HOME") or "~")) / ".config"
    return Path(folder) / "strata" / "config.toml"


def defaults(variables: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Default values per command, from the file's top level and from a table named like the command."""
    file = path(variables)
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StrataError(INVALID_USAGE, f"cannot read {file}: {error.strerror}") from None
    values = _parse(data, file)
    shared = {_parameter(key): value for key, value in values.items() if not isinstance(value, dict)}
    tables = {key: value for key, value in values.items() if isinstance(value, dict)}
    return {
        command: shared | {_parameter(key): value for key, value in tables.get(command, {}).items()}
        for command in ("chat", "complete", "render")
    }


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
