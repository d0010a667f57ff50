"""Answers and errors as JSON text, one value a line."""

from __future__ import annotations

import json

from strata_cli.conversation import openai_reply
from strata_cli.conversation.messages import JsonObject
from strata_cli.conversation.reply import Reply
from strata_cli.errors import StrataError


def line(value: JsonObject) -> str:
    """One line of JSON in UTF-8's own characters; a lone surrogate is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return (text if _encodable(text) else json.dumps(value)) + "\n"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def reply_text(reply: Reply) -> str:
    return line(openai_reply.reply(reply))


def error_text(error: StrataError) -> str:
    return line(openai_reply.error(error))
