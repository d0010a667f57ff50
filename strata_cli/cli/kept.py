"""The conversation that a session file keeps."""

from __future__ import annotations

from dataclasses import dataclass, field

from strata_cli.cli.answer import REPLACEMENT
from strata_cli.cli.input import NO_PROMPT
from strata_cli.conversation import saved
from strata_cli.conversation.dialogue import Dialogue
from strata_cli.conversation.messages import Message
from strata_cli.conversation.reply import Reply
from strata_cli.conversation.request import Request
from strata_cli.output.terminal.messages import Messages
from strata_cli.store.sessions import SessionFile


def elsewhere(name: str, moved: str) -> str:
    """What is said when another program wrote to the session file."""
    return f"{name} was changed by another program and stays as it is; this conversation is kept in {moved}"


@dataclass(slots=True)
class Kept:
    """The session file of --session, or none: what it holds goes before what is asked, the answer goes into it."""

    file: SessionFile | None = None
    dialogue: Dialogue = field(default_factory=Dialogue)

    @classmethod
    def read(cls, name: str | None) -> Kept:
        """Raises SESSION_INVALID or OUTPUT_FAILED before any work is done in vain."""
        if name is None:
            return cls()
        file = SessionFile(name)
        data = file.read()
        file.check()
        return cls(file, Dialogue() if data is None else saved.load(data, name))

    def missing(self, *, continued: bool) -> str | None:
        """What to say to somebody who asks nothing; None where the conversation itself can be answered."""
        messages = self.dialogue.messages
        if not messages:
            return NO_PROMPT
        answered = messages[-1].role == "assistant" and not continued
        return "give one, or go on with the last answer (--continue)" if answered else None

    def before(self, request: Request, system: str | None) -> Request:
        """The request after the kept messages; a system message of its own takes the place of theirs."""
        dialogue = self.dialogue if system is None else self.dialogue.with_system("")
        return request._replace(messages=(*dialogue.messages, *request.messages))

    def keep(self, request: Request, reply: Reply, messages: Messages) -> None:
        """Write the conversation with this answer; one that was cut is unfinished."""
        if self.file is None:
            return
        unfinished = reply.ending in ("length", "interrupted")
        # A character that is not whole yet is written by the answer that goes on.
        content = reply.content.removesuffix(REPLACEMENT) if unfinished else reply.content
        dialogue = Dialogue(request.messages)
        before = dialogue.answer if request.continue_final else ""
        text = f"{before or ''}{request.assistant_prefix}{request.response_prefix}{content}"
        if request.continue_final:
            dialogue = dialogue.answered(text, unfinished=unfinished)
        else:
            dialogue = Dialogue((*dialogue.messages, Message("assistant", text)), unfinished)
        name = self.file.name
        if moved := self.file.keep(saved.dump(dialogue)):
            messages.note(elsewhere(name, moved))
