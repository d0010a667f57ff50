"""The conversation that a session file keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace

from strata_cli.conversation import saved
from strata_cli.conversation.dialogue import Dialogue
from strata_cli.conversation.messages import Message
from strata_cli.conversation.reply import Reply
from strata_cli.conversation.request import Request
from strata_cli.errors import SESSION_INVALID, StrataError
from strata_cli.store import sessions


def read_session(name: str) -> Dialogue | None:
    """The dialogue in a session file, None where there is none; raises SESSION_INVALID."""
    try:
        data = sessions.read(name)
    except OSError as error:
        raise StrataError(SESSION_INVALID, f"cannot read {name}: {error.strerror}", hint="check the file") from None
    return None if data is None else saved.load(data, name)


@dataclass(slots=True)
class Kept:
    """The session file of --session, or none: what it holds goes before what is asked, the answer goes into it."""

    name: str | None
    dialogue: Dialogue

    @classmethod
    def read(cls, name: str | None) -> Kept:
        return cls(name, (name and read_session(name)) or Dialogue())

    def before(self, request: Request) -> Request:
        return replace(request, messages=(*self.dialogue.messages, *request.messages))

    def keep(self, request: Request, reply: Reply) -> None:
        """Write the conversation with this answer; one that was cut is unfinished."""
        if self.name is None:
            return
        dialogue = Dialogue(request.messages)
        before = dialogue.answer if request.continue_final else ""
        text = f"{before or ''}{request.assistant_prefix}{request.response_prefix}{reply.content}"
        if request.continue_final:
            dialogue = dialogue.answered(text, None)
        else:
            dialogue = Dialogue((*dialogue.messages, Message("assistant", text)))
        unfinished = reply.ending in ("length", "interrupted")
        sessions.write(self.name, saved.dump(replace(dialogue, unfinished=unfinished)))
