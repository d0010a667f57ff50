"""The format of a template's tool calls, read from what surrounds name and arguments in rendered calls."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

from strata_cli.conversation.messages import Json
from strata_cli.prompt.adapt import Reader
from strata_cli.prompt.toolformat.outline import outline
from strata_cli.prompt.toolformat.pieces import blank_after, common_end, common_start, is_tag, pieces
from strata_cli.prompt.toolformat.probe import CONTENT, FIRST, QUOTED, REASONING, SECOND, Prober, Sample, call_of
from strata_cli.prompt.toolformat.shape import (
    ENVELOPES,
    KEY,
    Arguments,
    Body,
    Field,
    Keyed,
    Literals,
    Parameters,
    Path,
    Record,
    Slot,
    ToolFormat,
    Turn,
)

NOT_PRINTED = "the template does not show what a tool call looks like; calls in the answer stay text"
NOT_READABLE = "the template writes tool calls in a form that cannot be learnt; calls in the answer stay text"


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a template shows of an assistant's turn; `note` says why there is no format of calls."""

    turn: Turn
    format: ToolFormat | None = None
    note: str = ""


def learn(reader: Reader) -> Learnt:
    """Render probe calls and read what surrounds them; nothing is known of any model."""
    key = ("tool format", json.dumps(dict(reader.extra), sort_keys=True, default=str))
    kept = reader.template.learnt
    if key not in kept:
        kept[key] = _learn(Prober(reader), reader.template.source)
    return kept[key]  # type: ignore[no-any-return]


def _learn(prober: Prober, source: str) -> Learnt:
    one = prober.turn("", call_of(FIRST)) if prober.calls.printed else None
    found = None if one is None else _format(prober, one, source)
    if found is None:
        note = NOT_PRINTED if one is None else NOT_READABLE
        return Learnt(outline(prober, source, None, ""), None, note)
    called = prober.turn("", call_of(FIRST), reasoning=REASONING)
    turn = outline(prober, source, called, found.section[0] or found.call[0])
    return Learnt(turn, _within(turn, found))


def _within(turn: Turn, found: ToolFormat) -> ToolFormat:
    """The format without what ends the content before the calls, which a model may leave out."""
    opening, closing = found.section
    for marker in turn.content:
        if opening.startswith(marker) and marker.strip():
            return replace(found, section=(opening[len(marker) :].lstrip(), closing))
    return found


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a call stands in a text: from its first field (or its JSON's beginning) to the end of its arguments."""

    start: int
    end: int
    body: Body
    header: tuple[Field | str, ...] = ()
    many: bool = False


def _format(prober: Prober, one: str, source: str) -> ToolFormat | None:
    place = _place(one, FIRST)
    if place is None:
        return None
    recipient = _recipient(one, place)
    if recipient is not None:
        return recipient
    two = "" if place.many else prober.turn("", call_of(FIRST), call_of(SECOND)) or ""
    first = _place(two, FIRST) or place
    second = _place(two, SECOND, first.end, first.body)
    first, text = (place, one) if second is None else (first, two)
    head, gap, tail = text[: first.start], "", text[first.end :]
    if second is not None:
        gap, tail = two[first.end : second.start], two[second.end :]
        first = replace(first, header=_numbered(first.header, second.header))
    body, head, gap, tail = _own(first.body, head, gap, tail)
    section, call, separator = _surroundings(_in_message(head), gap, tail, prober)
    if first.many and not is_marked(section[0]):
        section = (head[head.rindex(section[0]) :] + "[", section[1])
    lead = _lead(prober, section[0] or call[0])
    found = ToolFormat(_with_wrap(prober, body), section, call, separator, lead, first.header, first.many)
    return replace(found, tags=_tags(source)) if found.bare else found


def _tags(source: str) -> tuple[str, ...]:
    """The special tokens that a template's source names."""
    return tuple(sorted(set(re.findall(r"<\|\w+\|>", source))))


# Where the call is


def _place(text: str, sample: Sample, start: int = 0, body: Body | None = None) -> _Place | None:
    """The call's place; `body` is how the arguments of another call in this text are written."""
    return _record_place(text, sample, start) or _named_place(text, sample, start, body)


def _record_place(text: str, sample: Sample, start: int) -> _Place | None:
    """A call that is one JSON object, or an item of a JSON list, with the name inside."""
    at = text.find(sample.name, start)
    for found in re.finditer(r"[\[{]", text[start : max(at, start)]):
        value, end = _json_at(text, start + found.start())
        item = value[0] if isinstance(value, list) and value else value
        body = _record(item, sample)
        if body is not None:
            return _Place(start + found.start(), end, body, many=isinstance(value, list))
    return None


def _json_at(text: str, start: int) -> tuple[Json, int]:
    try:
        return json.JSONDecoder().raw_decode(text, start)  # type: ignore[no-any-return]
    except (ValueError, RecursionError):
        return None, start


def _record(item: Json, sample: Sample) -> Body | None:
    if not isinstance(item, dict):
        return None
    name = _path(item, sample.name)
    arguments = _path(item, sample.arguments) or _path(item, json.dumps(sample.arguments))
    if name is not None and arguments is not None:
        return Record(name, arguments, _path(item, sample.id))
    return Keyed() if list(item) == [sample.name] and item[sample.name] == sample.arguments else None


def _path(item: Json, wanted: Json) -> Path | None:
    if not isinstance(item, dict):
        return None
    for key, value in item.items():
        if value == wanted:
            return (key,)
        inner = _path(value, wanted)
        if inner is not None:
            return (key, *inner)
    return None


def _named_place(text: str, sample: Sample, start: int, body: Body | None) -> _Place | None:
    """A call whose name stands in the text and whose arguments follow it."""
    key = text.find(sample.key, start)
    name = text.rfind(sample.name, start, max(key, start))
    if name < 0 or text.find(sample.text, key) < 0:
        return None
    after = name + len(sample.name)
    begin = text.find("{", after, key)
    value, end = _json_at(text, begin) if begin >= 0 else (None, 0)
    if value == sample.arguments:
        return _headed(text, sample, name, begin, end, Arguments())
    found = _fields(text, sample, after, key) if body is None else _more_fields(text, sample, key, body)
    if found is None:
        return None
    header_end, end, body = found
    return _headed(text, sample, name, header_end, end, body)


def _headed(text: str, sample: Sample, name: int, begin: int, end: int, body: Body) -> _Place | None:
    """The place with its header: name, id and what stands between them, up to the arguments."""
    start = text.rfind(sample.id, text.rfind("\n", 0, name) + 1, name)
    start = name if start < 0 else start
    header: list[Field | str] = []
    words: dict[str, Slot] = {sample.name: "name", sample.id: "id"}
    for part in re.split(f"({sample.name}|{sample.id})", text[start:begin]):
        header += [Field(words[part])] if part in words else [part] if part else []
    return _Place(start, end, body, tuple(header))


def _numbered(first: tuple[Field | str, ...], second: tuple[Field | str, ...]) -> tuple[Field | str, ...]:
    """The header with a field for a number that counts the calls."""
    if first == second or len(first) != len(second):
        return first
    header: list[Field | str] = []
    for one, other in zip(first, second, strict=True):
        if one == other or not isinstance(one, str) or not isinstance(other, str):
            header.append(one)
            continue
        before, number, after = _differing(one, other)
        header += [*([before] if before else []), *([Field("index")] if number else []), *([after] if after else [])]
    return tuple(header)


def _differing(one: str, other: str) -> tuple[str, str, str]:
    before = common_start(one, other)
    after = common_end(one[len(before) :], other[len(before) :])
    return before, one[len(before) : len(one) - len(after)], after


# Arguments that are not JSON


def _fields(text: str, sample: Sample, after: int, key: int) -> tuple[int, int, Body] | None:
    """Where the header ends, where the arguments end, and how each is written."""
    value = text.find(sample.text, key)
    other = text.find(sample.other, value)
    number = text.find(str(sample.number), other)
    if min(value, other, number) < 0:
        return None
    end = number + len(str(sample.number))
    before, middle = text[after:key], text[key + len(sample.key) : value]
    pair = text[value + len(sample.text) : other]
    bare = text[other + len(sample.other) : number]
    literals = _literals(before, middle, pair, bare, text[end:])
    if literals is not None:
        return key, end + len(literals.close), literals
    pair, tail = pair.replace(sample.key, KEY), text[end:].replace(sample.other, KEY)
    opening = common_end(before, pair)
    closing = common_start(pair[: len(pair) - len(opening.lstrip())], tail)
    parameters = _parameters(opening, middle, bare, closing)
    return None if parameters is None else (key - len(opening), end, parameters)


def _more_fields(text: str, sample: Sample, key: int, body: Body) -> tuple[int, int, Body] | None:
    """The same for a call with one argument, of which it is known how it is written."""
    opening = body.open if isinstance(body, Parameters) else ""
    value = text.find(sample.text, key)
    return (key - len(opening), value + len(sample.text), body) if value >= 0 else None


def _literals(before: str, middle: str, pair: str, bare: str, tail: str) -> Literals | None:
    """Arguments in a programming language's form: a string differs from a number by its quotes alone."""
    quote = middle[len(bare) :]
    close = {"(": ")", "{": "}"}.get(before[-1:], "")
    if not bare or not middle.startswith(bare) or not quote or not pair.startswith(quote) or not close:
        return None
    return Literals(bare, quote, close, raw=False) if tail.startswith(close) else None


def _parameters(opening: str, middle: str, bare: str, closing: str) -> Parameters | None:
    """Arguments between tags; what differs between the text before a string and before a number tells their types."""
    if not opening.strip() or not closing.strip() or not middle:
        return None
    typed = None
    if middle != bare:
        start, word, end = _differing(middle, bare)
        typed, middle = (start, word, end), ""
    edge = typed[2] if typed else middle
    blanks = (blank_after(edge), closing[: len(closing) - len(closing.lstrip())])
    if typed is not None:
        typed = (typed[0], typed[1], typed[2].rstrip())
    return Parameters(opening.strip(), middle.rstrip() or middle, closing.strip(), typed, blanks)


def _own(body: Body, head: str, gap: str, tail: str) -> tuple[Body, str, str, str]:
    """What surrounds the call once the closing of its last argument, and of its notation, is cut off."""
    if isinstance(body, Parameters):
        return body, head, _after(gap, body, SECOND), _after(tail, body, SECOND)
    if isinstance(body, Literals):
        closing = body.quote + body.close
        cut = tail.find(closing)
        return body, head, gap, tail[cut + len(closing) :] if 0 <= cut < 4 else tail
    return body, head, gap, tail


def _after(text: str, body: Parameters, sample: Sample) -> str:
    text = text.lstrip()
    for key in (FIRST.other, sample.key):
        closing = body.close.replace(KEY, key)
        if text.startswith(closing):
            return text[len(closing) :]
    return text


def _with_wrap(prober: Prober, body: Body) -> Body:
    """How a string with quotes and characters of markup is written."""
    text = prober.turn("", call_of(QUOTED)) or ""
    if isinstance(body, Literals):
        return replace(body, raw=body.quote + QUOTED.text + body.quote in text)
    before, _, after = text.partition(QUOTED.text)
    if not isinstance(body, Parameters) or QUOTED.key not in before:
        return body
    middle = body.typed[2] if body.typed is not None else body.middle
    wrapped = before[before.rindex(QUOTED.key) + len(QUOTED.key) :].partition(middle)[2].strip()
    closing = after.partition(body.close.replace(KEY, QUOTED.key))[0].strip()
    return replace(body, wrap=(wrapped, closing)) if wrapped and closing else body


# What surrounds the calls


def _recipient(text: str, place: _Place) -> ToolFormat | None:
    """A call whose name stands in the header of an envelope and whose message is the arguments."""
    if not isinstance(place.body, Arguments):
        return None
    header = "".join(part for part in place.header if isinstance(part, str))
    for envelope in ENVELOPES:
        if header.endswith(envelope.message) and envelope.start in text[: place.start]:
            before = text[: place.start].rpartition("to=")[2]
            return ToolFormat(Arguments(), recipient=before)
    return None


def _in_message(text: str) -> str:
    """The text without the envelope's headers, which are read as such."""
    for envelope in ENVELOPES:
        text = text.rpartition(envelope.message)[2]
    return text


def _surroundings(head: str, gap: str, tail: str, prober: Prober) -> tuple[tuple[str, str], tuple[str, str], str]:
    """What surrounds all calls, what surrounds each, and what stands between two."""
    opening = common_end(head, _in_message(gap)).lstrip() if gap.strip() else ""
    rest = gap[: len(gap) - len(opening)]
    closing = common_start(rest, tail)
    enveloped = any(envelope.start in rest for envelope in ENVELOPES)
    separator = "" if enveloped else rest[len(closing) :].strip()
    section = _without_header(head[: len(head) - len(opening)], prober)
    return (section, tail[len(closing) :].strip()), (opening.strip(), closing.strip()), separator


def _without_header(head: str, prober: Prober) -> str:
    """What stands before the first call and is no header of the turn."""
    generation, plain = prober.generation() or "", (prober.turn(CONTENT) or "").partition(CONTENT)[0]
    shared = max(common_start(head, generation), common_start(head, plain), key=len)
    return head[len(shared) :].strip()


def _lead(prober: Prober, begin: str) -> str:
    """The blanks that the template writes between text and the first call."""
    text = prober.turn(CONTENT, call_of(FIRST)) or ""
    at = text.find(begin, text.find(CONTENT)) if CONTENT in text else -1
    between = text[text.find(CONTENT) + len(CONTENT) : at] if at >= 0 else ""
    return blank_after(between) if begin else ""


def is_marked(text: str) -> bool:
    """Whether a text is markup that ordinary text does not hold."""
    return any(is_tag(piece) for piece in pieces(text))
