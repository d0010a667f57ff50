"""An answer told apart while it streams.

Theory. A model's answer is a text in a small language of its own: reasoning between tags, content, calls in a notation
that its template shows. It is read by recursive descent, by generators that yield where the text is not there yet, so
that each rule is written as if all of it were. A rule decides only when no text that may still come could change the
decision; that makes the events the same however the text is cut, and holds back nothing for longer. Every character
that is read is handed to exactly one event as its source, so none is lost; only what a format's own rules read as
markup is kept from the reader. A call that cannot be made is an event too, with all that the model wrote.
"""

from strata_cli.generation.split.answer import Splitter, said_in
from strata_cli.generation.split.events import (
    Answer,
    CallArguments,
    CallBegan,
    CallEnded,
    CallFailed,
    CallStatus,
    Content,
    Event,
    Markup,
    Reasoning,
    gather,
)

__all__ = [
    "Answer",
    "CallArguments",
    "CallBegan",
    "CallEnded",
    "CallFailed",
    "CallStatus",
    "Content",
    "Event",
    "Markup",
    "Reasoning",
    "Splitter",
    "gather",
    "said_in",
]
