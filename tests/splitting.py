"""Answers split in every way, and events as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Literal

from strata_cli.conversation.messages import Tool
from strata_cli.generation.split import CallArguments, Content, Event, Markup, Reasoning, Splitter
from strata_cli.prompt.toolformat import Learnt
from strata_cli.prompt.turn import Opening

Where = Literal["content", "reasoning"]


def chunked(
    found: Learnt,
    chunks: Sequence[str],
    tools: tuple[Tool, ...] = (),
    *,
    where: Where = "content",
    begun: bool = False,
    said: str = "",
) -> list[Event]:
    """The events of an answer that comes in these chunks; every character of it is in one of them."""
    opening = Opening(where, found.turn.family)
    splitter = Splitter(found.turn, opening, found.format, tools, said=said, begun=begun)
    events = [event for chunk in chunks for event in splitter.push(chunk)] + splitter.finish()
    assert "".join(event.source for event in events) == "".join(chunks)
    assert all(event.text for event in events if isinstance(event, (Reasoning, Content)))
    return joined(events)


def split(
    found: Learnt,
    text: str,
    tools: tuple[Tool, ...] = (),
    *,
    where: Where = "content",
    begun: bool = False,
    said: str = "",
) -> list[Event]:
    return chunked(found, [text], tools, where=where, begun=begun, said=said)


def every_cut(
    found: Learnt,
    text: str,
    tools: tuple[Tool, ...] = (),
    *,
    where: Where = "content",
    begun: bool = False,
    said: str = "",
) -> list[Event]:
    """The events of a text, the same whole, in single characters and cut in two at every place."""
    whole = split(found, text, tools, where=where, begun=begun, said=said)
    assert chunked(found, list(text), tools, where=where, begun=begun, said=said) == whole
    for place in range(1, len(text)):
        cut = [text[:place], text[place:]]
        assert chunked(found, cut, tools, where=where, begun=begun, said=said) == whole, cut
    return whole


def joined(events: Iterable[Event]) -> list[Event]:
    """The events with neighbours of one kind made one."""
    found: list[Event] = []
    for event in events:
        last = found[-1] if found else None
        match last, event:
            case (Reasoning(), Reasoning()) | (Content(), Content()):
                found[-1] = type(event)(last.text + event.text)
            case Markup(), Markup():
                found[-1] = Markup(last.source + event.source)
            case CallArguments(), CallArguments():
                found[-1] = CallArguments(event.index, last.text + event.text, last.source + event.source)
            case _:
                found.append(event)
    return found


def plain(events: Iterable[Event]) -> list[dict[str, object]]:
    """The events as JSON values."""
    return [{"event": type(event).__name__, **asdict(event)} for event in events]
