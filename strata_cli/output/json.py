"""Answers, their streams and errors as JSON text in a dialect's shape, one value a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from strata_cli.conversation.messages import JsonObject
from strata_cli.errors import StrataError

if TYPE_CHECKING:
    from strata_cli.conversation.dialects import Dialect, Functions
    from strata_cli.conversation.reply import Event, Reply


def line(value: JsonObject) -> str:
    """One line of JSON in UTF-8's own characters; a lone surrogate is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return (text if _encodable(text) else json.dumps(value)) + "\n"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _functions(dialect: Dialect) -> Functions:
    # A prompt that is shown as JSON is in no dialect.
    from strata_cli.conversation.dialects import DIALECTS

    return DIALECTS[dialect]


def reply_text(reply: Reply, dialect: Dialect) -> str:
    return line(_functions(dialect).reply(reply))


def stream_texts(events: Iterable[Event], dialect: Dialect) -> Iterator[str]:
    """The stream's lines, each as soon as the event that brings it is there."""
    return map(line, _functions(dialect).stream(events))


def error_text(error: StrataError, dialect: Dialect = "openai") -> str:
    return line(_functions(dialect).error(error))
