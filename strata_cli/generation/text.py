"""Bytes of tokens → text, cut at stop strings. Nothing here is quadratic in the length of the answer."""

from __future__ import annotations

import codecs


class Utf8:
    """Decodes bytes as they come; a character that is still incomplete waits, what is invalid becomes U+FFFD."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, data: bytes) -> str:
        return self._decoder.decode(data)

    @property
    def pending(self) -> bytes:
        """The bytes of the character that is still incomplete."""
        return self._decoder.getstate()[0]


class StopStrings:
    """Passes text through up to the first stop string, holding back only what may be the beginning of one."""

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._longest = max(map(len, self._stops), default=0)
        self._held = ""
        self.found: str | None = None

    def push(self, text: str) -> str:
        if not self._stops or self.found is not None:
            return "" if self.found is not None else text
        text = self._held + text
        at, self.found = self._first(text)
        if self.found is not None:
            self._held = ""
            return text[:at]
        keep = self._beginning_of_a_stop(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        held, self._held = self._held, ""
        return held

    def _first(self, text: str) -> tuple[int, str | None]:
        """The stop string that is complete first, so that it is the same one however the text is cut."""
        hits = [(at + len(stop), at, stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if not hits:
            return -1, None
        _, at, stop = min(hits)
        return at, stop

    def _beginning_of_a_stop(self, text: str) -> int:
        """How many characters at the end of the text may be the beginning of a stop string."""
        for size in range(min(self._longest - 1, len(text)), 0, -1):
            end = text[-size:]
            if any(stop.startswith(end) for stop in self._stops):
                return size
        return 0
