"""Text that comes in chunks, read as if all were there: readers are generators that yield where they need more."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Reader: TypeAlias = Generator[None, None, T]
"""A reader yields to ask for more text and returns what it read."""

_BLANKS = re.compile(r"\s*")
_AHEAD = 512


class Marks:
    """Texts to look for at once: the leftmost is found, of several at one place the longest."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(sorted({text for text in texts if text}, key=len, reverse=True))
        self._longest = len(self.texts[0]) if self.texts else 0
        self._pattern = re.compile("|".join(map(re.escape, self.texts)) if self.texts else r"(?!)")
        self._starts = frozenset(text[:end] for text in self.texts for end in range(1, len(text)))

    def search(self, text: str, start: int) -> re.Match[str] | None:
        return self._pattern.search(text, start)

    def match(self, text: str, start: int) -> re.Match[str] | None:
        return self._pattern.match(text, start)

    def unfinished(self, text: str, start: int) -> int:
        """The first place from which on the text is the beginning of a mark; its end where there is none."""
        end = len(text)
        for place in range(max(start, end - self._longest + 1), end):
            if text[place:] in self._starts:
                return place
        return end

    def may_begin(self, text: str, start: int) -> bool:
        """Whether all text from here on, which may be none, is the beginning of a longer mark."""
        size = len(text) - start
        return text[start:] in self._starts if 0 < size < self._longest else not size and bool(self.texts)


class Feed:
    """The text that came and was not read yet; `skip` characters at the beginning are read but were not generated."""

    def __init__(self, skip: int = 0) -> None:
        self._text = ""
        self._at = 0
        self._skip = skip
        self._taken: list[str] = []
        self._record: list[str] | None = None
        self.ended = False

    def push(self, text: str) -> None:
        self._text = self._text[self._at :] + text
        self._at = 0

    def take(self, size: int) -> str:
        """Read this many characters, which are there."""
        text = self._text[self._at : self._at + size]
        self._at += size
        self._taken.append(text)
        if self._record is not None:
            self._record.append(text)
        return text

    def source(self) -> str:
        """What was generated of the text that was read since the last time."""
        text = "".join(self._taken)
        self._taken.clear()
        skipped = min(self._skip, len(text))
        self._skip -= skipped
        return text[skipped:]

    @property
    def at_end(self) -> bool:
        """Whether everything was read and nothing more will come."""
        return self.at_end_after(0)

    def at_end_after(self, size: int) -> bool:
        """Whether nothing comes after so many more characters."""
        return self.ended and self._at + size >= len(self._text)

    def record(self) -> None:
        """From here on keep what is read, for `recorded`."""
        self._record = []

    def recorded(self) -> str:
        return "".join(self._record or ())

    # Readers

    def peek(self, size: int = 1) -> Reader[str]:
        """The next characters, fewer only at the end."""
        while len(self._text) - self._at < size and not self.ended:
            yield
        return self._text[self._at : self._at + size]

    def blanks(self) -> Reader[None]:
        """Read the blanks that stand here."""
        while True:
            found = _BLANKS.match(self._text, self._at)
            assert found is not None
            if found[0]:
                self.take(len(found[0]))
            if self._at < len(self._text) or self.ended:
                return
            yield

    def which(self, marks: Marks) -> Reader[str]:
        """The mark that stands here, empty where there is none; reads nothing."""
        while not self.ended and marks.may_begin(self._text, self._at):
            yield
        found = marks.match(self._text, self._at)
        return found[0] if found else ""

    def accept(self, marks: Marks) -> Reader[str]:
        """Read the mark that stands here, if there is one."""
        found = yield from self.which(marks)
        if found:
            self.take(len(found))
        return found

    def until(self, marks: Marks, passed: Callable[[str], None]) -> Reader[str]:
        """Read up to the first mark, which is returned unread, empty at the end; `passed` gets what is read."""
        while True:
            found = marks.search(self._text, self._at)
            unfinished = len(self._text) if self.ended else marks.unfinished(self._text, self._at)
            place = unfinished if found is None else min(found.start(), unfinished)
            if place > self._at:
                passed(self.take(place - self._at))
            if found is not None and found.start() < unfinished:
                return found[0]
            if self.ended:
                return ""
            yield

    def matching(self, pattern: re.Pattern[str], passed: Callable[[str], None]) -> Reader[None]:
        """Read single characters as long as the pattern, which matches runs of them, goes on."""
        while True:
            found = pattern.match(self._text, self._at)
            if found is not None and found[0]:
                passed(self.take(len(found[0])))
            if self._at < len(self._text) or self.ended:
                return
            yield

    def settled(self, decide: Callable[[str], bool | None], size: int) -> Reader[bool]:
        """What `decide` says of what follows after `size` characters; None asks for more, and at the end means yes.

        It sees so many characters at most that a decision never waits for long.
        """
        while True:
            start = self._at + size
            answer = decide(self._text[start : start + _AHEAD])
            if answer is not None:
                return answer
            if self.ended or len(self._text) - start >= _AHEAD:
                return True
            yield
