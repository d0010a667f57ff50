"""What a model is told of the document that it is to write, at the end of the system message."""

from __future__ import annotations

import json

from strata_cli.conversation.messages import Message, Part, TextPart
from strata_cli.conversation.request import Request
from strata_cli.conversation.structure import ANY_OBJECT, GrammarText, Schema, Structure

_LEADING = ("system", "developer")
_CALLS = "the answer has to be a document, so no tool can be called"


def instructed(request: Request) -> Request:
    """The request with the instruction that its structure asks for; others come back as they are."""
    structure = request.structure
    if structure is None:
        return request
    notes = (*request.notes, _CALLS) if request.tools and structure.constrained else request.notes
    words = instruction(structure)
    messages = _with(request.messages, words) if words else request.messages
    return request._replace(messages=messages, notes=notes)


def instruction(structure: Structure) -> str:
    """The words that describe the document; none for a grammar, which no model is used to reading."""
    document = structure.document
    if not structure.instructed or isinstance(document, GrammarText):
        return ""
    if document == ANY_OBJECT:
        return "Answer with one JSON object and nothing else."
    about = f"\n\nWhat the document is for: {document.description}" if document.description else ""
    return f"Answer with one JSON document that is valid by this schema, and nothing else:\n\n{_text(document)}{about}"


def _text(schema: Schema) -> str:
    return json.dumps(schema.value, ensure_ascii=False)


def _with(messages: tuple[Message, ...], words: str) -> tuple[Message, ...]:
    """The messages with these words at the end of the last leading system message, or in one of their own."""
    leading = 0
    while leading < len(messages) and messages[leading].role in _LEADING:
        leading += 1
    if not leading:
        return (Message("system", words), *messages)
    last = messages[leading - 1]
    return (*messages[: leading - 1], last._replace(content=_appended(last, words)), *messages[leading:])


def _appended(message: Message, words: str) -> str | tuple[Part, ...]:
    if isinstance(message.content, tuple):
        return (*message.content, TextPart(f"\n\n{words}"))
    return f"{message.content}\n\n{words}" if message.content else words
