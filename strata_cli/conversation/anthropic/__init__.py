"""Anthropic messages ⇄ values: requests are read, answers, their streams and errors are made.

What reads requests and what makes answers is loaded with the first of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from strata_cli.conversation.messages import Json
from strata_cli.errors import StrataError

if TYPE_CHECKING:
    from strata_cli.conversation.reply import Event, Reply
    from strata_cli.conversation.request import Request

__all__ = ["error", "parse", "reply", "stream"]


def parse(value: object) -> Request:
    """The request that a JSON value describes; raises as the module that reads it says."""
    from strata_cli.conversation.anthropic import parsing

    return parsing.parse(value)


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
