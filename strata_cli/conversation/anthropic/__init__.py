"""Anthropic messages ⇄ values: requests are read, answers, their streams and errors are made."""

from strata_cli.conversation.anthropic.answering import error, reply, stream
from strata_cli.conversation.anthropic.parsing import parse

__all__ = ["error", "parse", "reply", "stream"]
