"""The table of all errors, for the documentation."""

from __future__ import annotations

from strata_cli.errors import KINDS

_HEAD = """# Errors

Everything that can go wrong, by its code. The exit status is what a shell sees; with `--format json` the code is the
field `code` of the error object, and the HTTP status is the one such an error has in a server.

This table is written from the program; do not edit it.

| code | exit status | HTTP status | cause | remedy |
|---|---|---|---|---|
"""


def document() -> str:
    rows = (
        f"| `{kind.code}` | {int(kind.status)} | {kind.http} | {_cell(kind.cause)} | {_cell(kind.remedy)} |\n"
        for kind in sorted(KINDS.values(), key=lambda kind: (kind.status, kind.code))
    )
    return _HEAD + "".join(rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
