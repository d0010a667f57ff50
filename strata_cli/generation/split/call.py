"""One call while it is read, and the events that say so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from strata_cli.conversation.messages import Tool
from strata_cli.generation.split.events import (
    CallArguments,
    CallBegan,
    CallEnded,
    CallFailed,
    CallStatus,
    Event,
)
from strata_cli.generation.split.feed import Feed
from strata_cli.generation.split.notation import Broken


class NotACall(Exception):
    """What follows a marker is nothing like a call; all of it is text."""


class MissingName(Broken):
    """A call that says no name; `whole` when it was read to its end."""

    def __init__(self, *, whole: bool = False) -> None:
        super().__init__()
        self.whole = whole


class OpenCall:
    """The call that is read at present; `emit` gets its events, `count` is the number of calls that began.

    `tentative` where a call of no known tool is no call at all.
    """

    def __init__(
        self, feed: Feed, tools: Mapping[str, Tool], emit: Callable[[Event], None], *, tentative: bool
    ) -> None:
        self._feed = feed
        self._tools = tools
        self._emit = emit
        self._tentative = tentative
        self.count = 0
        self.start()

    def start(self) -> None:
        """Forget the last call."""
        self.name: str | None = None
        self.id: str | None = None
        self._index: int | None = None
        self._unknown = False
        self._argued = False
        self._held: str | None = None

    @property
    def began(self) -> bool:
        """Whether a call began that has not ended."""
        return self._index is not None

    @property
    def tool(self) -> Tool | None:
        """The tool that is called."""
        return self._tools.get(self.name or "")

    def named(self, name: str) -> None:
        """The name is known: the call begins, unless no tool has it. Raises MissingName, Broken and NotACall."""
        if self.name is not None:
            raise Broken
        if not name:
            raise MissingName
        self.name = name
        self._unknown = bool(self._tools) and name not in self._tools
        if self._unknown:
            if self._tentative:
                raise NotACall
            return
        self._index = self.count
        self.count += 1
        self._emit(CallBegan(self._index, name, self.id, self._feed.source()))
        if self._held is not None:
            self.argue(self._held)

    def arguments_once(self) -> None:
        """Arguments begin; raises Broken where there were some already."""
        if self._argued or self._held is not None:
            raise Broken

    def argue(self, text: str) -> None:
        """A piece of the arguments' JSON; all of it where the name is yet to come."""
        if self.name is None:
            self._held = text
            return
        self._argued = True
        if self._index is not None and text:
            self._emit(CallArguments(self._index, text, self._feed.source()))

    def end(self) -> None:
        """The call is complete."""
        if self._unknown:
            return self.fail("unknown_tool")
        if not self._argued:
            self.argue("{}")
        assert self._index is not None
        ended = CallEnded(self._index, self.id, self._feed.source())
        self.start()
        self._emit(ended)

    def fail(self, status: CallStatus) -> None:
        """The call cannot be made."""
        status = "unknown_tool" if self._unknown else status
        failed = CallFailed(status, self._feed.recorded(), self.name, self._index, self._feed.source())
        self.start()
        self._emit(failed)

    def renumber(self, event: CallBegan | CallArguments) -> Event:
        """The event of this call as the first call's."""
        self.count, self._index = 1, 0
        return replace(event, index=0)
