"""GBNF, llama.cpp's notation of grammars, in llguidance's.

llguidance cuts a text into lexemes, each as long as it can be, and GBNF knows none. So the whole text is one lexeme,
or, where rules refer to themselves, each character is one. What GBNF is, llama.cpp's src/llama-grammar.cpp says.
"""

from __future__ import annotations

import re
from typing import NoReturn

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_BLANKS = re.compile(r"(?:[ \t]|#[^\r\n]*)*")
_BLANKS_AND_LINES = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_LINE_END = re.compile(r"\r\n?|\n|$")
_TIMES = re.compile(r"[*+?]|\{\s*(\d+)\s*(?:(,)\s*(\d*)\s*)?\}")
_CHARACTER = re.compile(
    r"""\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([trn\\"\[\]-]))|([^\\])""", re.DOTALL
)
_ESCAPED = {"t": "\t", "r": "\r", "n": "\n"}
_LAST = 0x10FFFF
_EMPTY = '""'


class UnreadableGbnf(ValueError):
    """What is wrong with a grammar, and in which line and column."""


def lark(text: str) -> str:
    """A GBNF grammar in llguidance's notation; raises UnreadableGbnf."""
    parser = _Parser(text)
    try:
        rules = parser.rules()
    except RecursionError:
        raise UnreadableGbnf("its groups are nested too deeply") from None
    bodies = {parser.rule(name): body for name, body in rules.items()}
    grammar = "\n".join([f"start: {parser.rule('root')}", *(f"{rule}: {body}" for rule, body in bodies.items())])
    # What llguidance spells with a capital is part of a lexeme.
    return grammar if _recursive(bodies) else re.sub(r"\br(?=\d)", "R", grammar)


def _recursive(rules: dict[str, str]) -> bool:
    """Whether a rule refers to itself, over others or not."""
    left = {name: set(re.findall(r"\br\d+", body)) for name, body in rules.items()}
    while leaves := [name for name, referred in left.items() if not referred & left.keys()]:
        for name in leaves:
            del left[name]
    return bool(left)


def _one_of(characters: str) -> str:
    return f"/[{characters}]/"


def _written(code: int) -> str:
    return f"\\x{{{code:X}}}"


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        # Where each name stands first: a rule's own line, or where another one refers to it.
        self._places: dict[str, int] = {}

    def rule(self, name: str) -> str:
        """A name that llguidance takes: its own have no dashes, and capitals mean something."""
        return f"r{self._places[name]}"

    def rules(self) -> dict[str, str]:
        """The bodies of all rules, by name."""
        found: dict[str, str] = {}
        self._skip(_BLANKS_AND_LINES)
        while self._at < len(self._text):
            start, name = self._at, self._name()
            if name in found:
                self._fail(f"the rule {name} is defined twice", start)
            self._skip(_BLANKS)
            self._expect("::=")
            self._skip(_BLANKS_AND_LINES)
            found[name] = self._choice(nested=False)
            if not self._skip(_LINE_END) and self._at < len(self._text):
                self._fail(f"{self._text[self._at]!r} cannot stand here")
            self._skip(_BLANKS_AND_LINES)
        if "root" not in found:
            self._fail("there is no rule root", 0)
        for name, at in self._places.items():
            if name not in found:
                self._fail(f"there is no rule {name}", at)
        return found

    def _choice(self, *, nested: bool) -> str:
        choices = [self._sequence(nested=nested)]
        while self._text.startswith("|", self._at):
            self._at += 1
            self._skip(_BLANKS_AND_LINES)
            choices.append(self._sequence(nested=nested))
        return " | ".join(choices)

    def _sequence(self, *, nested: bool) -> str:
        blanks, parts = _BLANKS_AND_LINES if nested else _BLANKS, list[str]()
        while (part := self._item()) is not None:
            self._skip(blanks)
            while times := _TIMES.match(self._text, self._at):
                part = self._repeated(part, times)
                self._at = times.end()
                self._skip(blanks)
            parts.append(part)
        return " ".join(parts) or _EMPTY

    def _item(self) -> str | None:
        """What stands here, None where a sequence ends."""
        match self._text[self._at : self._at + 1]:
            case '"':
                return self._literal()
            case "[":
                return self._class()
            case ".":
                self._at += 1
                return _one_of(f"{_written(0)}-{_written(_LAST)}")
            case "(":
                self._at += 1
                self._skip(_BLANKS_AND_LINES)
                body = self._choice(nested=True)
                self._expect(")")
                return f"({body})"
            case "*" | "+" | "?" | "{":
                self._fail("there is nothing to repeat")
            case "<" | "!":
                self._fail("tokens cannot be named; write their text")
            case _ if _NAME.match(self._text, self._at):
                return self.rule(self._name())
            case _:
                return None

    def _literal(self) -> str:
        self._at += 1
        characters = []
        while not self._text.startswith('"', self._at):
            characters.append(_one_of(_written(self._character())))
        self._at += 1
        return f"({' '.join(characters)})" if characters else _EMPTY

    def _class(self) -> str:
        start = self._at
        self._at += 1
        denied = self._text.startswith("^", self._at)
        self._at += denied
        ranges = []
        while not self._text.startswith("]", self._at):
            ranges.append(self._range())
        self._at += 1
        if not ranges:
            self._fail("a class of no characters", start)
        return _one_of("^" * denied + "".join(ranges))

    def _range(self) -> str:
        start, first = self._at, self._character()
        if not self._text.startswith("-", self._at) or self._text.startswith("-]", self._at):
            return _written(first)
        self._at += 1
        last = self._character()
        if first > last:
            self._fail("a range that ends before it begins", start)
        return f"{_written(first)}-{_written(last)}"

    def _character(self) -> int:
        found = _CHARACTER.match(self._text, self._at)
        if found is None:
            ended = self._at >= len(self._text)
            self._fail("it ends within a text or a class" if ended else "an escape that GBNF does not have")
        *numbers, escaped, plain = found.groups()
        number = "".join(filter(None, numbers))
        code = int(number, 16) if number else ord(plain or _ESCAPED.get(escaped, escaped))
        if code > _LAST or 0xD800 <= code < 0xE000:
            self._fail(f"{found[0]} is no character")
        self._at = found.end()
        return code

    def _repeated(self, part: str, times: re.Match[str]) -> str:
        least, more, most = times.groups()
        if least is None:
            return f"({part}){times[0]}"
        if not more:
            most = least
        if most and int(most) < int(least):
            self._fail("a repetition whose most is less than its least")
        return _EMPTY if most and int(most) == 0 else f"({part}){{{int(least)},{int(most) if most else ''}}}"

    def _name(self) -> str:
        found = _NAME.match(self._text, self._at)
        if found is None:
            self._fail("the name of a rule should stand here")
        self._places.setdefault(found[0], self._at)
        self._at = found.end()
        return found[0]

    def _expect(self, sign: str) -> None:
        if not self._text.startswith(sign, self._at):
            self._fail(f"{sign} should stand here")
        self._at += len(sign)

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        """Go on after what matches; whether that is anything."""
        start, found = self._at, pattern.match(self._text, self._at)
        self._at = found.end() if found else start
        return self._at > start

    def _fail(self, what: str, at: int | None = None) -> NoReturn:
        before = self._text[: self._at if at is None else at]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise UnreadableGbnf(f"line {line}, column {column}: {what}")
