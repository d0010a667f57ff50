"""How much a template may do: counted steps and characters, so that it always stops at the same place.

A step is about what one node of a template's syntax costs; C code that walks a value pays for the value's size. Sizes
are computed before the work is done wherever the result could be large, so that memory never runs ahead of the count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sized
from itertools import chain
from typing import Any

STEPS = 1_000_000
CHARACTERS = 4_000_000
NUMBER_BITS = 256
CHARACTERS_PER_STEP = 5  # as a shift: 32 characters are copied or searched in about one step

_DIGITS = re.compile(r"\d+")
_PERCENT = re.compile(r"%(?:\([^)]*\))?([^a-zA-Z%]*)")
_NESTED_FIELD = re.compile(r"\{[^{}]*:[^{}]*\{")


class Exhausted(Exception):
    """A template used up its budget."""


class Budget:
    """What is left to one rendering: steps, and characters of text that it may create."""

    __slots__ = ("characters", "steps")

    def __init__(self, messages: int, size: int) -> None:
        """`size` is the conversation's length in characters; all of it may be looked through once per message."""
        self.steps = STEPS + 500 * messages + 25 * messages * messages + 30 * size
        self.characters = CHARACTERS + 30 * size + 2 * messages * size

    def step(self, count: int) -> None:
        self.steps -= count
        if self.steps < 0:
            raise Exhausted("it runs through more steps than its budget allows")

    def grow(self, characters: int) -> None:
        self.characters -= characters
        if self.characters < 0:
            raise Exhausted("it creates more text than its budget allows")

    def room(self, size: int) -> None:
        """Refuse a result of that many characters or elements before it is made."""
        if size > self.characters or size > self.steps << CHARACTERS_PER_STEP:
            raise Exhausted("it creates more text than its budget allows")

    def read(self, text: str | bytes) -> None:
        self.step(len(text) >> CHARACTERS_PER_STEP)

    def walk(self, value: object) -> None:
        """Pay for everything inside a value, shared parts as often as they occur, as printing or comparing it does."""
        stack = [value]
        while stack:
            item = stack.pop()
            if isinstance(item, (str, bytes)):
                self.step(1 + (len(item) >> CHARACTERS_PER_STEP))
            elif isinstance(item, Mapping):
                self.step(1 + 2 * len(item))
                stack.extend(chain(item.keys(), item.values()))
            elif isinstance(item, (list, tuple, set, frozenset)):
                self.step(1 + len(item))
                stack.extend(item)
            else:
                self.step(1)

    def made(self, result: object) -> object:
        """Pay for what an operation made; a lazy result is counted as it is consumed."""
        if isinstance(result, (str, bytes)):
            self.grow(len(result))
        elif isinstance(result, Sized):
            self.step(len(result))
        elif isinstance(result, Iterator):
            return self.counted(result)
        return result

    def counted(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self.step(2)
            yield item

    def number(self, bits: int) -> None:
        if bits > NUMBER_BITS:
            raise Exhausted("it computes with numbers beyond its budget")


def text_of(budget: Budget, value: object) -> str:
    """The text that a value prints as, paid for before it is made."""
    if isinstance(value, str):
        budget.grow(len(value))
        return value if type(value) is str else str(value)
    if not isinstance(value, (bool, int, float, type(None))):
        budget.walk(value)
    text = str(value)
    budget.grow(len(text))
    return text


def add(budget: Budget, left: Any, right: Any) -> Any:
    if type(left) is str and type(right) is str:
        budget.grow(len(left) + len(right))
        return left + right
    if isinstance(left, int) and isinstance(right, int):
        budget.number(max(left.bit_length(), right.bit_length()))
        return left + right
    return budget.made(left + right)


def multiply(budget: Budget, left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        budget.number(left.bit_length() + right.bit_length())
    else:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Sized) and isinstance(other, int):
                budget.room(len(one) * other)
    return budget.made(left * right)


def power(budget: Budget, left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        budget.number(left.bit_length() * abs(right))
    return left**right


def percent(budget: Budget, left: Any, right: Any) -> Any:
    if isinstance(left, (str, bytes)):
        arguments = right if isinstance(right, tuple) else (right,)
        percent_room(budget, left if isinstance(left, str) else left.decode("latin-1"), arguments)
    return budget.made(left % right)


def percent_room(budget: Budget, pattern: str, arguments: Iterable[object]) -> None:
    """Room for `pattern % arguments`: widths and precisions, also those given as arguments, and the arguments' text."""
    widths = 0
    budget.step(20)
    arguments = tuple(arguments)
    for specification in _PERCENT.findall(pattern):
        widths += sum(min(int(digits[:12]), 10**12) for digits in _DIGITS.findall(specification))
        if "*" in specification:
            widths += sum(abs(number) for number in arguments if isinstance(number, int))
    budget.room(len(pattern) + widths)
    budget.walk(arguments)


def format_room(budget: Budget, pattern: str, arguments: Iterable[object]) -> None:
    """Room for `pattern.format(*arguments)`, with widths that may themselves be fields."""
    budget.step(40)
    arguments = tuple(arguments)
    widths = sum(int(digits[:12]) for digits in _DIGITS.findall(pattern)) if ":" in pattern else 0
    if _NESTED_FIELD.search(pattern):
        for argument in arguments:
            if isinstance(argument, int):
                widths += abs(argument)
            elif isinstance(argument, str):
                widths += sum(int(digits[:12]) for digits in _DIGITS.findall(argument))
    budget.room(len(pattern) + widths)
    budget.walk(arguments)


def replace_room(budget: Budget, text: str | bytes, old: Any, new: Any, *_: object) -> None:
    kind = str if isinstance(text, str) else bytes
    if isinstance(old, kind) and isinstance(new, kind):
        budget.room(len(text) + text.count(old) * len(new))  # type: ignore[arg-type]


def join_room(budget: Budget, separator: str, items: list[Any]) -> None:
    budget.walk(items)
    budget.room(len(separator) * len(items) + sum(len(item) for item in items if isinstance(item, str)))


def method_room(budget: Budget, name: str, owner: object, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Pay for calling a built-in method; returns the arguments, a lazy one made into a list."""
    for argument in arguments:
        if isinstance(argument, (str, bytes)):
            budget.read(argument)
        elif isinstance(argument, Sized):
            budget.step(len(argument))
    if isinstance(owner, (str, bytes)):
        budget.read(owner)
        return _text_method_room(budget, name, owner, arguments)
    if isinstance(owner, int):
        budget.room(sum(abs(argument) for argument in arguments if isinstance(argument, int)))
    elif name in ("index", "count", "remove") and isinstance(owner, Sized):
        budget.step(len(owner))
        budget.walk(arguments)
    return arguments


def _text_method_room(budget: Budget, name: str, owner: str | bytes, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    first = arguments[0] if arguments else None
    if name in ("ljust", "rjust", "center", "zfill") and isinstance(first, int):
        budget.room(first)
    elif name == "expandtabs":
        budget.room(len(owner) * max(1, first if isinstance(first, int) else 8))
    elif name == "replace" and len(arguments) > 1:
        replace_room(budget, owner, *arguments)
    elif name == "translate" and isinstance(first, Mapping):
        longest = max((len(value) for value in first.values() if isinstance(value, str)), default=1)
        budget.room(len(owner) * max(1, longest))
    elif name == "join" and first is not None:
        items = list(first)
        join_room(budget, owner if isinstance(owner, str) else "", items)
        return (items, *arguments[1:])
    return arguments
