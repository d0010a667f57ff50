"""The shape of an answer and of what goes wrong instead: the command line's, else the request's own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from strata_cli.conversation.messages import Json
from strata_cli.errors import StrataError

if TYPE_CHECKING:
    from strata_cli.conversation.dialects import Dialect

Format: TypeAlias = Literal["text", "json", "jsonl"]


class Shape(NamedTuple):
    """How one request is answered; `dialect` is whose JSON it is read as, too."""

    format: Format
    dialect: Dialect

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """An error inside is shown in this shape."""
        try:
            yield
        except StrataError as error:
            if self.format != "text":
                error.dialect = self.dialect
            raise


ShapeOf: TypeAlias = Callable[[Json], Shape]
"""The shape for a request as JSON, None for one that is none."""


def shape_of(format: Format | None, dialect: str | None, value: Json) -> Shape:
    """What the options say goes before what the request says, which goes before text."""
    streams = isinstance(value, dict) and value.get("stream") is True
    return Shape(format or ("jsonl" if streams else "text"), spoken(dialect, value))


def spoken(dialect: str | None, value: Json) -> Dialect:
    """The dialect that was named, else the one that the request speaks."""
    if dialect == "openai" or dialect == "anthropic":
        return dialect
    if value is None:
        return "openai"
    from strata_cli.conversation.dialects import dialect_of

    return dialect_of(value)
