"""OpenAI chat completions ⇄ values: requests are read, answers, their streams and errors are made."""

from strata_cli.conversation.openai.answering import error, reply, stream
from strata_cli.conversation.openai.parsing import parse

__all__ = ["error", "parse", "reply", "stream"]
