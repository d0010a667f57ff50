"""Anthropic messages ⇄ values: requests are read, answers, their streams and errors are made.

What makes answers is loaded with the first of them: a prompt that is only rendered has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from strata_cli.conversation.anthropic.parsing import parse
from strata_cli.conversation.messages import Json
from strata_cli.errors import StrataError

if TYPE_CHECKING:
    from strata_cli.conversation.reply import Event, Reply

__all__ = ["error", "parse", "reply", "stream"]


def reply(answer: Reply) -> dict[str, Json]:
    """A whole answer."""
    from strata_cli.conversation.anthropic import answering

    return answering.reply(answer)


def stream(events: Iterable[Event]) -> Iterator[dict[str, Json]]:
    """An answer's stream, each object as soon as the event that brings it is there."""
    from strata_cli.conversation.anthropic import answering

    return answering.stream(events)


def error(error: StrataError) -> dict[str, Json]:
    """An error object."""
    from strata_cli.conversation.anthropic import answering

    return answering.error(error)
