"""What surrounds reasoning and content in an assistant's turn, read from rendered turns."""

from __future__ import annotations

from strata_cli.prompt.tags import FAMILIES, Family, family_in, last_block
from strata_cli.prompt.toolformat.pieces import (
    blank_after,
    blank_before,
    common_start,
    framed,
    is_tag,
    pieces,
)
from strata_cli.prompt.toolformat.probe import CONTENT, REASONING, Prober
from strata_cli.prompt.toolformat.shape import ENVELOPES, Envelope, Turn

# Around the tags of a family where the template renders no reasoning.
_LONGEST = 6
_OPEN_BLANK, _CLOSE_BLANKS = "\n", ("\n", "\n\n")


def outline(prober: Prober, source: str, called: str | None, begin: str) -> Turn:
    """The markers of a turn.

    `called` is a turn with reasoning and a call, None where there is none, and `begin` what begins calls in it.
    """
    generation = prober.generation() or ""
    plain = prober.turn(CONTENT) or ""
    header, _, after = plain.partition(CONTENT)
    thought = prober.turn(CONTENT, reasoning=REASONING) or ""
    reasoned = _between(thought, REASONING, CONTENT)
    acted = _between(called or "", REASONING, begin) if begin else None
    family = _family(reasoned, acted, generation, header, source)
    envelope = _envelope(header)
    if envelope is not None:
        return Turn(family=family, start=_open_end(generation, envelope), envelope=envelope)
    own = header[len(common_start(generation, header)) :]
    lone = _lone_close(own)
    opening = _content_open(generation, own if reasoned is None else reasoned)
    before = _before(thought, called or "")
    closing = _closes(family, reasoned, acted)
    return Turn(
        family=family,
        opens=opens(family, _blank_after_open(family, before)),
        closes=closing,
        leads=closing if lone else (),
        content=_content(opening, lone, after, generation, begin),
        start=begin if begin and generation.endswith(begin) else "",
    )


def opens(family: Family | None, blank: str = _OPEN_BLANK) -> tuple[str, ...]:
    """The texts that open a block; where the family is unknown, those that may stand in any content."""
    known = [family] if family is not None else [family for family in FAMILIES if family.inline]
    return tuple(text for each in known for text in framed("", each.open, blank))


def closes(family: Family, blanks: tuple[str, str] = _CLOSE_BLANKS) -> tuple[str, ...]:
    """The texts that close a block of this family, with as much of the blanks around the tag as there is."""
    return framed(blanks[0], family.close, blanks[1])


def _between(text: str, first: str, second: str) -> str | None:
    """What stands between two marks, None where they are not there in this order."""
    start = text.find(first)
    end = text.find(second, start + len(first))
    return text[start + len(first) : end] if start >= 0 and end >= 0 else None


def _family(reasoned: str | None, acted: str | None, generation: str, header: str, source: str) -> Family | None:
    for text in (reasoned, acted, generation, header):
        block = last_block(text or "")
        if block is not None:
            return block.family
    return family_in(source)


def _envelope(header: str) -> Envelope | None:
    found = (row for row in ENVELOPES if row.start in header and header.endswith(row.message))
    return next(found, None)


def _open_end(generation: str, envelope: Envelope) -> str:
    """The header that the generation prompt leaves open."""
    last = generation[max(generation.rfind(envelope.start), 0) :]
    return last if last.startswith(envelope.start) and envelope.message not in last else ""


def _before(thought: str, called: str) -> str:
    """What a template writes before reasoning, empty where it renders none."""
    for text in (thought, called):
        if REASONING in text:
            return text[: text.index(REASONING)]
    return ""


def _blank_after_open(family: Family | None, before: str) -> str:
    if family is None or family.open not in before:
        return _OPEN_BLANK
    return blank_before(before[before.rindex(family.open) + len(family.open) :])


def _closes(family: Family | None, reasoned: str | None, acted: str | None) -> tuple[str, ...]:
    """What ends reasoning: the family's tag and all that stands with it, before content and before calls."""
    if family is None:
        return ()
    shown = reasoned if reasoned is not None and family.close in reasoned else acted or ""
    if family.close not in shown:
        return (*closes(family), *_extra(family, acted))
    before, _, after = shown.partition(family.close)
    blanks = (before if not before.strip() else blank_after(before), blank_before(after))
    found = [*framed(blanks[0], family.close, blanks[1]), *_extra(family, acted)]
    if before.strip():
        found += framed("", before + family.close, blanks[1])
    return tuple(dict.fromkeys(found))


def _extra(family: Family, acted: str | None) -> tuple[str, ...]:
    """What ends reasoning before a call where that is not the family's own tag."""
    if acted is None or family.close in acted or not acted.strip():
        return ()
    return (acted.strip(),)


def _lone_close(own: str) -> bool:
    """Whether a turn begins by closing a block that was not opened in it."""
    block = last_block(own)
    return block is not None and block.closed is not None and block.opened is None


def _content_open(generation: str, own: str) -> str:
    """What stands before content and is neither the generation prompt's nor part of a reasoning block."""
    block = last_block(own)
    if block is not None:
        own = own[block.closed[1] :] if block.closed is not None else ""
    return "" if generation.endswith(own) else own.strip()


def _content(opening: str, lone: bool, after: str, generation: str, begin: str) -> tuple[str, ...]:
    """The markers around content, none where it stands in the turn without any."""
    if not opening:
        return _closings(after) if lone else ()
    if begin and generation.endswith(begin):
        return framed("", begin + opening, "\n")
    return (opening, *_closings(after))


def _closings(after: str) -> tuple[str, ...]:
    """What may end a marked content: the beginnings of what the template writes after it."""
    parts = pieces(after.strip())[:_LONGEST]
    if not parts or not is_tag(parts[0]):
        return ()
    ends = ("".join(parts[:end]) for end in range(len(parts), 0, -1) if is_tag(parts[end - 1]))
    return tuple(text for text in ends if last_block(text) is None)
