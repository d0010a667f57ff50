"""A conversation under way: what was said, and the answer that may still be unfinished. Every change is a new value."""

from __future__ import annotations

from dataclasses import dataclass, replace

from strata_cli.conversation.messages import Message, TextPart


@dataclass(frozen=True, slots=True)
class Draft:
    """The tokens behind an unfinished answer, from the prompt's first to the last sampled one.

    Its text tokenised again would give others now and then, and could not hold `pending`, the bytes of a character that
    is still incomplete.
    """

    tokens: tuple[int, ...]
    pending: bytes = b""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The messages so far; `unfinished` says that the last one is an assistant's that goes on.

    `draft` is there while that message is exactly what was generated; `prefix` begins the next answer.
    """

    messages: tuple[Message, ...] = ()
    unfinished: bool = False
    draft: Draft | None = None
    prefix: str = ""

    @property
    def answer(self) -> str | None:
        """The text of the last message when it is the assistant's."""
        if self.messages and self.messages[-1].role == "assistant":
            return _text(self.messages[-1])
        return None

    @property
    def asked(self) -> bool:
        """Whether there is something that an answer can follow."""
        return bool(self.messages) and self.messages[-1].role != "system"

    @property
    def turns(self) -> int:
        return sum(message.role == "user" for message in self.messages)

    def say(self, text: str) -> Dialogue:
        """Add a user's turn; an unfinished answer counts as complete from here on."""
        return Dialogue((*self.messages, Message("user", text)), prefix=self.prefix)

    def answered(
        self, text: str, draft: Draft | None = None, *, unfinished: bool = False, reasoning: str | None = None
    ) -> Dialogue:
        """Put `text` as the last answer, in the place of one that is there; a draft makes it unfinished.

        `reasoning` None leaves the answer's own as it is.
        """
        if self.answer is None:
            messages = (*self.messages, Message("assistant", text, reasoning))
        else:
            last = self.messages[-1]
            kept = last.reasoning if reasoning is None else reasoning
            messages = (*self.messages[:-1], last._replace(content=text, reasoning=kept))
        return Dialogue(messages, unfinished or draft is not None, draft)

    def opened(self) -> Dialogue:
        """The last answer as one that goes on."""
        return self if self.unfinished or self.answer is None else replace(self, unfinished=True)

    def edited(self, text: str) -> Dialogue:
        """The last answer with another text, open to be continued; without it when nothing is left of it."""
        if text == self.answer:
            return self
        return replace(self.answered(text, unfinished=True), prefix=self.prefix) if text else self.retried()

    def undone(self) -> Dialogue:
        """Without the last user's turn and all that came after it."""
        last = max((i for i, message in enumerate(self.messages) if message.role == "user"), default=None)
        return self if last is None else Dialogue(self.messages[:last], prefix=self.prefix)

    def retried(self) -> Dialogue:
        """Without the last answer."""
        return Dialogue(self.messages[:-1], prefix=self.prefix) if self.answer is not None else self

    def cleared(self) -> Dialogue:
        """Nothing but the system message."""
        return Dialogue(tuple(message for message in self.messages[:1] if message.role == "system"))

    @property
    def system(self) -> str | None:
        """The text of the system message at the beginning."""
        first = self.messages[0] if self.messages else None
        return _text(first) if first is not None and first.role == "system" else None

    def with_system(self, text: str) -> Dialogue:
        """With this as the only system message at the beginning; without one when it is empty."""
        rest = self.messages
        while rest and rest[0].role == "system":
            rest = rest[1:]
        system = (Message("system", text),) if text else ()
        return Dialogue((*system, *rest), self.unfinished, None, self.prefix)


def _text(message: Message) -> str:
    if isinstance(message.content, str):
        return message.content
    return "".join(part.text for part in message.content or () if isinstance(part, TextPart))
