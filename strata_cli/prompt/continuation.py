"""The final assistant message left open: rendered as a normal turn, cut at the end of its text, every cut verified."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from strata_cli import errors
from strata_cli.conversation.messages import Message, Part, TextPart
from strata_cli.errors import StrataError
from strata_cli.prompt.header import Header, Scene, bare_header, closing, completed, on_history
from strata_cli.prompt.tags import Family, inline_reasoning, last_block


class Cut(NamedTuple):
    """The prompt up to the end of what the message says.

    `start` is where, in characters, the message's own text begins; `spans` are its stretches; `inside` is the family
    of the reasoning block in which the prompt ends, None where it ends in content.
    """

    text: str
    start: int
    spans: tuple[tuple[int, int], ...]
    inside: Family | None = None
    notes: tuple[str, ...] = ()


class _Said(NamedTuple):
    """A final message that begins with reasoning; `inside` when nothing follows the reasoning and it is not closed."""

    reasoning: str
    message: Message
    inside: bool

    @property
    def silent(self) -> bool:
        """Whether no text follows the reasoning."""
        return not self.message.content


def cut(scene: Scene, final: Message) -> Cut:
    """The prompt for going on with this message.

    Raises TEMPLATE_REWRITES_MESSAGE where the cut cannot be verified and NO_PLACE_FOR_REASONING.
    """
    plain = final._replace(reasoning=None)
    if final.reasoning and final.reasoning.strip():
        said = _Said(final.reasoning, plain, inside=not _has_content(final))
        place = _place_for_reasoning(scene, said)
        if place is not None:
            return place
        if said.inside:
            raise _no_place(scene)
        note = f"messages[{scene.index}]: the template has no place for the reasoning of this message; it is left out"
        found = _cut_text(scene, plain)
        return found._replace(notes=(note, *found.notes))
    inline = _inline(plain)
    return (inline and _place_for_reasoning(scene, inline)) or _cut_text(scene, plain)


def _has_content(message: Message) -> bool:
    if isinstance(message.content, str):
        return bool(message.content.strip())
    return any(not isinstance(part, TextPart) or part.text.strip() for part in message.content or ())


def _inline(message: Message) -> _Said | None:
    """The message's reasoning where it is a block at the very start of its content."""
    content = message.content
    if isinstance(content, str):
        found = inline_reasoning(content)
        rest: str | tuple[Part, ...] = "" if found is None else found.text
    else:
        first, others = (content[0], content[1:]) if content else (None, ())
        found = inline_reasoning(first.text) if isinstance(first, TextPart) else None
        if found is None or (not found.closed and others):
            return None
        rest = (TextPart(found.text), *others) if found.text else others
    if found is None:
        return None
    message = message._replace(content=rest)
    return _Said(found.reasoning, message, inside=not found.closed)


def _no_place(scene: Scene) -> StrataError:
    where = f"messages[{scene.index}]"
    return StrataError(
        errors.NO_PLACE_FOR_REASONING,
        f"{where}: its reasoning is to be continued, and the template has no place for reasoning here",
        hint=errors.NO_PLACE_FOR_REASONING.remedy,
        param=f"{where}.reasoning_content",
    )


# Where reasoning goes: as the template renders it, else into the header's empty block, else into the block G opens.


def _place_for_reasoning(scene: Scene, said: _Said) -> Cut | None:
    marked = _rendered_place(scene)
    if marked is not None:
        before, between = marked
        block = last_block(before.own)
        if not said.inside:
            return _rendered_reasoning(scene, said, before, between)
        if block is not None and block.state == "open":
            return _inside_rendered(scene, said, before, block.family)
    else:
        header = completed(scene, bare_header(scene), continued=True)
        place = _in_empty_block(header, said.reasoning)
        if place is not None:
            return _put(scene, said, *place)
    return _in_open_generation(scene, said)


def _rendered_place(scene: Scene) -> tuple[Header, str] | None:
    """What the template writes before and after reasoning in this place; None where it does not render it first."""
    final = scene.turn._replace(content=scene.mark, reasoning=scene.reasoning_mark)
    try:
        text = scene.render(final)
    except StrataError as error:
        if error.kind is errors.TEMPLATE_RAISED:
            return None
        raise
    if text.count(scene.mark) != 1 or text.count(scene.reasoning_mark) != 1:
        return None
    start, end = text.index(scene.reasoning_mark), text.index(scene.mark)
    if start > end:
        return None
    return on_history(scene, final, text[:start]), text[start + len(scene.reasoning_mark) : end]


def _inside_rendered(scene: Scene, said: _Said, before: Header, family: Family) -> Cut:
    """The template's rendering, cut at the end of the reasoning."""

    def final(reasoning: str) -> Message:
        return scene.turn._replace(content=scene.mark, reasoning=reasoning)

    mark = scene.reasoning_mark
    lead = scene.before(final(mark), mark)
    body = scene.before(final(said.reasoning + mark), mark)
    body = _trimmed(scene, said.reasoning, _after(scene, lead, body), lambda blank: final(mark + blank))
    _verify(scene, body, said.reasoning)
    text = before.text + body
    notes = _trim_notes(scene, said.reasoning, body)
    return Cut(text, len(before.text), ((len(before.text), len(text)),), family, notes)


def _rendered_reasoning(scene: Scene, said: _Said, before: Header, between: str) -> Cut:
    """The template's rendering of reasoning and text, cut at the end of the text."""
    bare = said.message._replace(content=scene.mark, reasoning=scene.reasoning_mark)
    lead = scene.before(bare, scene.reasoning_mark)
    full = said.message._replace(content=scene.mark, reasoning=said.reasoning)
    rendered = _after(scene, lead, scene.before(full, scene.mark))
    if not rendered.endswith(between):
        raise scene.rewritten("rewrites its reasoning")
    reasoning = rendered[: len(rendered) - len(between)]
    _verify(scene, reasoning, said.reasoning)
    start = len(before.text)
    spans = [(start, start + len(reasoning))]
    text = before.text + rendered
    notes = _trim_notes(scene, said.reasoning, reasoning)
    if said.silent:
        return Cut(text, start, tuple(spans), None, notes)
    body, more = _text_of(scene, said.message._replace(reasoning=said.reasoning))
    return Cut(text + body, start, (*spans, (len(text), len(text + body))), None, (*notes, *more))


def _in_empty_block(header: Header, reasoning: str) -> tuple[str, str] | None:
    """The header before and after the reasoning that its empty block takes up; None where it has no such block."""
    block = last_block(header.own)
    if block is None or block.closed is None:
        return None
    close = header.start + block.closed[0]
    if block.opened is None:
        return header.text[:close] + block.family.open, header.text[close:]
    opened = header.start + block.opened[1]
    inner = header.text[opened:close]
    if inner.strip():
        return None
    if inner.startswith("\n"):
        opened += 1
    return header.text[:opened], header.text[opened:]


def _in_open_generation(scene: Scene, said: _Said) -> Cut | None:
    block = last_block(scene.history.tail)
    if block is None or block.state != "open":
        return None
    return _put(scene, said, scene.history.generation, closing(scene, block, scene.history.tail))


def _put(scene: Scene, said: _Said, before: str, after: str) -> Cut:
    """Reasoning between two pieces of template text, then the message's text."""
    text = before + said.reasoning
    spans = [(len(before), len(text))]
    if said.inside:
        block = last_block(before)
        return Cut(text, len(before), tuple(spans), None if block is None else block.family)
    text += after
    if said.silent:
        return Cut(text, len(before), tuple(spans))
    body, notes = _text_of(scene, said.message)
    return Cut(text + body, len(before), (*spans, (len(text), len(text + body))), None, notes)


# The text of the message


def _cut_text(scene: Scene, message: Message) -> Cut:
    """The header as for a prefix (a bare one stays bare where G only opens a block), and the message's text."""
    header = completed(scene, bare_header(scene), continued=True)
    body, notes = _text_of(scene, message)
    end = len(header.text) + len(body)
    spans = ((len(header.text), end),) if body else ()
    return Cut(header.text + body, len(header.text), spans, None, notes)


def _text_of(scene: Scene, message: Message) -> tuple[str, tuple[str, ...]]:
    """The message's text as the template prints it after the header, verified, and notes on what was trimmed."""
    mark = scene.mark
    lead = scene.before(message._replace(content=mark), mark)
    body = _after(scene, lead, scene.before(message._replace(content=_ended(message.content, mark)), mark))
    if isinstance(message.content, str):
        said = message.content
    else:
        last = message.content[-1] if message.content else None
        said = last.text if isinstance(last, TextPart) else ""
    body = _trimmed(scene, said, body, lambda blank: message._replace(content=mark + blank))
    if isinstance(message.content, str):
        _verify(scene, body, message.content)
        return body, _trim_notes(scene, message.content, body)
    _verify_parts(scene, body, message.content or ())
    return body, ()


def _ended(content: str | tuple[Part, ...] | None, mark: str) -> str | tuple[Part, ...]:
    """The content with the mark at its end, as a part of its own after an image."""
    if content is None or isinstance(content, str):
        return (content or "") + mark
    *others, last = content
    if isinstance(last, TextPart):
        return (*others, TextPart(last.text + mark))
    return (*content, TextPart(mark))


def _after(scene: Scene, lead: str, text: str) -> str:
    if not text.startswith(lead):
        raise scene.rewritten("writes another header for it than for any other text")
    return text[len(lead) :]


def _trimmed(scene: Scene, said: str, body: str, probe: Callable[[str], Message]) -> str:
    """The rendered text without the blanks at its end that the template would have trimmed without the mark."""
    if said == said.rstrip():
        return body
    bare = scene.render(probe(""))
    if scene.render(probe(" ")) == bare:
        return body.rstrip()
    if said.endswith("\n") and scene.render(probe("\n")) == bare:
        return body.rstrip("\n")
    return body


def _verify(scene: Scene, body: str, said: str) -> None:
    """What was rendered is what was said, but for blanks at either end."""
    if body.strip() != said.strip() or body not in said:
        raise scene.rewritten("rewrites it")


def _verify_parts(scene: Scene, body: str, parts: tuple[Part, ...]) -> None:
    """Every text is there, in order, up to blanks at its ends, and something of the template's where an image is."""
    position = 0
    image = False
    for part in parts:
        if not isinstance(part, TextPart):
            image = True
            continue
        text = part.text.strip()
        found = body.find(text, position)
        gap = body[position:found].strip()
        if found < 0 or bool(gap) != image:
            raise scene.rewritten("rewrites its parts")
        position, image = found + len(text), False
    if bool(body[position:].strip()) != image:
        raise scene.rewritten("rewrites its parts")


def _trim_notes(scene: Scene, said: str, body: str) -> tuple[str, ...]:
    trimmed = len(said) - len(body)
    if trimmed <= 0:
        return ()
    at = "end" if said.startswith(body) else "start" if said.endswith(body) else "ends"
    count = f"{trimmed} character" + ("" if trimmed == 1 else "s")
    return (f"the template trimmed {count} from the {at} of the continued message",)
