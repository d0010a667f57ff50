"""The header: what this template writes between the history and the assistant's text, its reasoning block completed."""

from __future__ import annotations

from typing import NamedTuple

from strata_cli import errors
from strata_cli.conversation.messages import Message
from strata_cli.errors import StrataError
from strata_cli.prompt.adapt import Reader
from strata_cli.prompt.marks import CONTINUE_MARK, History, end_of_last, texts_of, unused
from strata_cli.prompt.tags import Block, last_block


class Scene:
    """What one prompt is composed from: the template, the history, the answer's index, and marks found nowhere else."""

    def __init__(self, reader: Reader, history: History, index: int, final: Message | None = None) -> None:
        self.reader = reader
        self.history = history
        self.index = index
        self.turn = Message("assistant") if final is None else final._replace(content=None, reasoning=None)
        said = texts_of((*history.messages, *(() if final is None else (final,))))
        self.mark = unused(CONTINUE_MARK, said)
        self.reasoning_mark = unused("REASONING_MARK", [*said, reader.template.source])
        self._rendered: dict[tuple[object, str | None], str] = {}

    def render(self, final: Message) -> str:
        """The history with this assistant message after it."""
        key = (final.content, final.reasoning)
        if key not in self._rendered:
            self._rendered[key] = self._render(final)
        return self._rendered[key]

    def _render(self, final: Message) -> str:
        try:
            return self.reader.render((*self.history.messages, final), generation=False)
        except StrataError as error:
            if error.kind is not errors.TEMPLATE_RAISED:
                raise
            where = f"messages[{self.index}]"
            words = f"{where}, the assistant's: {error.message}"
            raise StrataError(error.kind, words, hint=error.hint, param=where) from None

    def before(self, final: Message, mark: str) -> str:
        """What the template writes before the mark, which it must print exactly once."""
        text = self.render(final)
        count = text.count(mark)
        if count != 1:
            raise self.rewritten("drops it" if count == 0 else "prints it more than once")
        return text[: text.index(mark)]

    def rewritten(self, how: str) -> StrataError:
        """The error for a final assistant message that does not come out of the template as it went in."""
        where = f"messages[{self.index}]"
        return StrataError(
            errors.TEMPLATE_REWRITES_MESSAGE,
            f"{where}: the text of the assistant's message cannot be continued: the template {how}",
            hint=errors.TEMPLATE_REWRITES_MESSAGE.remedy,
            param=where,
        )


class Header(NamedTuple):
    """The prompt up to the assistant's text; from `start` on, in characters, it is the header itself."""

    text: str
    start: int

    @property
    def own(self) -> str:
        return self.text[self.start :]


def bare_header(scene: Scene) -> Header:
    """The header as the template writes it, read from an assistant turn whose content is a mark."""
    bare = scene.turn._replace(content=scene.mark)
    return on_history(scene, bare, scene.before(bare, scene.mark))


def on_history(scene: Scene, final: Message, before: str) -> Header:
    """What was rendered before the mark in `final`, on the history as G has it.

    Where the two part inside the history (a system prompt that moves to the last user message, reasoning that is
    dropped once an answer follows), the history is G's, and the header what was written after its last message.
    """
    history = scene.history
    kept = history.generation[: history.end]
    if before.startswith(kept):
        return Header(before, history.end)
    if history.last is None:
        # Nothing that was said can be marked (it is all blank), so there is no seam to find: the rendering stands.
        return Header(before, _common(before, kept))
    end = end_of_last(scene.reader, history, final, scene.render(final))
    if end is None or end > len(before):
        raise scene.rewritten("writes the history differently once it follows, and the seam cannot be verified")
    return Header(kept + before[end:], history.end)


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return next(
        (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def completed(scene: Scene, header: Header, *, continued: bool) -> Header:
    """The header with its reasoning block completed, so that content can follow it.

    A block that the header leaves open is closed. A header without a block that G carries further takes G's block; a
    continued turn does so only where that block is closed already.
    """
    block = last_block(header.own)
    if block is not None:
        if block.state == "open":
            return header._replace(text=header.text + closing(scene, block, header.own))
        return header
    generation, tail = scene.history.generation, scene.history.tail
    block = last_block(tail)
    if block is None or not generation.startswith(header.text):
        return header
    if block.state == "closed":
        return header._replace(text=generation)
    if continued:
        return header
    return header._replace(text=generation + closing(scene, block, tail))


def closing(scene: Scene, block: Block, text: str) -> str:
    """What closes an open block in `text`: the template's own words, else the family's tag."""
    between = scene.reader.closing()
    if between is not None and block.family.close in between:
        return between
    newline = block.opened is not None and text.startswith("\n", block.opened[1])
    return f"\n{block.family.close}\n\n" if newline else block.family.close
