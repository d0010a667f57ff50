"""A conversation under way: what was said, and the answer that may still be unfinished. Every change is a new value."""

from __future__ import annotations

from dataclasses import dataclass, replace

from strata_cli.conversation.messages import Message


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
            content = self.messages[-1].content
            return content if isinstance(content, str) else ""
        return None

    def say(self, text: str) -> Dialogue:
        """Add a user's turn; an unfinished answer counts as complete from here on."""
        return Dialogue((*self.messages, Message("user", text)), prefix=self.prefix)

    def answered(self, text: str, draft: Draft | None) -> Dialogue:
        """Put `text` as the last answer: finished without a draft, open with one."""
        before = self.messages[:-1] if self.answer is not None else self.messages
        message = replace(self.messages[-1], content=text) if self.answer is not None else Message("assistant", text)
        return Dialogue((*before, message), unfinished=draft is not None, draft=draft)

    def edited(self, text: str) -> Dialogue:
        """The last answer with another text, open to be continued."""
        if text == self.answer:
            return self
        return Dialogue((*self.messages[:-1], replace(self.messages[-1], content=text)), unfinished=True)

    def undone(self) -> Dialogue:
        """Without the last user's turn and all that came after it."""
        last = max((i for i, message in enumerate(self.messages) if message.role == "user"), default=None)
        return self if last is None else Dialogue(self.messages[:last])

    def retried(self) -> Dialogue:
        """Without the last answer."""
        return Dialogue(self.messages[:-1], prefix=self.prefix) if self.answer is not None else self

    def with_system(self, text: str) -> Dialogue:
        """With this as the only system message at the beginning; without one when it is empty."""
        rest = self.messages
        while rest and rest[0].role == "system":
            rest = rest[1:]
        system = (Message("system", text),) if text else ()
        return Dialogue((*system, *rest), self.unfinished, None, self.prefix)
