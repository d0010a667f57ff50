"""Code in colours, line by line: what was drawn never depends on what follows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from strata_cli.output.terminal.wrap import Piece

_STYLES = {
    "Token.Comment": "2",
    "Token.Comment.Preproc": "35",
    "Token.Keyword": "35",
    "Token.Operator.Word": "35",
    "Token.Literal.String": "32",
    "Token.Literal.Number": "36",
    "Token.Name.Function": "34",
    "Token.Name.Class": "1;34",
    "Token.Name.Decorator": "33",
    "Token.Name.Builtin": "36",
    "Token.Name.Tag": "34",
    "Token.Name.Attribute": "36",
    "Token.Generic.Deleted": "31",
    "Token.Generic.Inserted": "32",
    "Token.Generic.Heading": "1",
    "Token.Generic.Subheading": "35",
    "Token.Generic.Prompt": "2",
    "Token.Generic.Output": "",
}
_COMMENT = "2"
# A lexer that knows these comments sees the whole of one at once, or does not see it.
_LONG_COMMENTS = (("/*", "*/"), ("<!--", "-->"))
_LANGUAGE = re.compile(r"\{?\.?([A-Za-z0-9_+#.-]+)")


class Highlighter:
    """The lines of one block of code; where the language is not known, as they are."""

    def __init__(self, language: str) -> None:
        self._lexer = _lexer(language)
        self._stack = ["root"]
        self._comment = ""

    def line(self, text: str) -> list[Piece]:
        """A line without its end, or a part of a long one."""
        if self._lexer is None or not text:
            return [(text, "")]
        pieces: list[Piece] = []
        if self._comment:
            end = text.find(self._comment)
            if end < 0:
                return [(text, _COMMENT)]
            end += len(self._comment)
            pieces, text, self._comment = [(text[:end], _COMMENT)], text[end:], ""
        return pieces + self._begun_comment(text)

    def _begun_comment(self, text: str) -> list[Piece]:
        """The line with a comment at its end closed for the lexer's sake, and left open for the next line."""
        for opener, closer in _LONG_COMMENTS:
            at = text.rfind(opener)
            if at >= 0 and closer not in text[at + len(opener) :]:
                before = list(self._stack)
                pieces = self._lexed(text + closer)
                last, style = pieces[-1]
                if style == _COMMENT and last.endswith(closer):
                    self._comment = closer
                    return [*pieces[:-1], (last[: -len(closer)], style)]
                self._stack = before
        return self._lexed(text)

    def _lexed(self, text: str) -> list[Piece]:
        """Never fails and never loses a character, whatever a lexer makes of a model's text."""
        pieces: list[Piece] = []
        try:
            for kind, value in self._tokens(text + "\n"):
                style = _style(kind)
                for part in value.split("\n"):
                    if part and pieces and pieces[-1][1] == style:
                        pieces[-1] = (pieces[-1][0] + part, style)
                    elif part:
                        pieces.append((part, style))
        except Exception:
            self._lexer = None
        return pieces if "".join(part for part, _ in pieces) == text else [(text, "")]

    def _tokens(self, text: str) -> Iterator[tuple[Any, str]]:
        from pygments.lexer import ExtendedRegexLexer, LexerContext, RegexLexer

        if not isinstance(self._lexer, RegexLexer):
            for _, kind, value in self._lexer.get_tokens_unprocessed(text):
                yield kind, value
            return
        # The one entry that takes the state in which the line before ended, and gives it back.
        context = LexerContext(text, 0, list(self._stack))
        for _, kind, value in ExtendedRegexLexer.get_tokens_unprocessed(self._lexer, context=context):
            yield kind, value
        self._stack = list(context.stack)


def _lexer(language: str) -> Any:
    found = _LANGUAGE.match(language)
    if found is None:
        return None
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(found.group(1).lower())
    except ClassNotFound:
        return None


def _style(kind: Any) -> str:
    name = str(kind)
    while name:
        if name in _STYLES:
            return _STYLES[name]
        name = name.rpartition(".")[0]
    return ""
