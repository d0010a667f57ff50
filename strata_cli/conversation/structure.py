"""The document that an answer has to be: a JSON document by its schema, or a text by its grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from strata_cli.conversation.messages import Json

Notation: TypeAlias = Literal["gbnf", "lark", "regex"]

_GBNF_RULE = r"^\s*[\w-]+\s*::="
_LARK_START = r"^\s*\??start(\.\d+|\[[^\]]*\])?\s*:"
_ENDINGS: dict[str, Notation] = {"gbnf": "gbnf", "lark": "lark", "regex": "regex", "re": "regex"}


@dataclass(frozen=True, slots=True)
class Schema:
    """A JSON schema, an object or true or false; `description` says what the document is for."""

    value: Json
    description: str | None = None


@dataclass(frozen=True, slots=True)
class GrammarText:
    """A grammar in one of three notations."""

    notation: Notation
    text: str


@dataclass(frozen=True, slots=True)
class Structure:
    """What an answer has to be.

    `constrained`: nothing else can be written; otherwise the answer is only checked when it is complete. `instructed`:
    the model is told the schema. `field` is what asked for it, for errors.
    """

    document: Schema | GrammarText
    constrained: bool = True
    instructed: bool = True
    field: str = "response_format"


ANY_OBJECT = Schema({"type": "object"})


def notation_of(name: str, text: str) -> Notation:
    """In which notation a file holds a grammar: by the name's ending, else by a rule that only one of them has."""
    if (known := _ENDINGS.get(name.rpartition(".")[2].lower())) and "." in name:
        return known
    if re.search(_GBNF_RULE, text, re.MULTILINE):
        return "gbnf"
    return "lark" if re.search(_LARK_START, text, re.MULTILINE) else "regex"
