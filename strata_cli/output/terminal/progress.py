"""A bar on one line of the terminal while something takes long; gone without a trace afterwards."""

from __future__ import annotations

from strata_cli.environment import Environment
from strata_cli.output.terminal.wrap import ERASE, width

DELAY = 0.3
"""Seconds before a bar appears at all; what is quicker is not worth the flicker."""
PAUSE = 0.1
"""Seconds between two drawings."""
LONGEST = 40
"""Columns of the bar itself."""


class Bar:
    """Progress of a load (thousandths) or a prefill (tokens). Draws on stderr, and only on a terminal."""

    def __init__(self, environment: Environment, title: str, unit: str = "", *, shown: bool = True) -> None:
        self._environment = environment
        self._title = title
        self._unit = unit
        self._shown = shown and environment.stderr.terminal and environment.variables.get("TERM") != "dumb"
        self._began = environment.clock()
        self._first: int | None = None
        self._drawn: float | None = None

    def __call__(self, done: int, total: int) -> None:
        """The first `done` of a prefill is what was reused."""
        if not self._shown:
            return
        if self._first is None:
            self._first = done
        now = self._environment.clock()
        if now - self._began < DELAY or (self._drawn is not None and now - self._drawn < PAUSE):
            return
        self._drawn = now
        self._environment.stderr.text(ERASE + self._picture(done, max(total, 1), now))

    def close(self) -> None:
        """Erase the bar."""
        if self._drawn is not None:
            self._environment.stderr.text(ERASE)
            self._drawn = None

    def _picture(self, done: int, total: int, now: float) -> str:
        """The longest of its forms that leaves the last column free."""
        room = self._environment.columns() - 1
        figures = self._figures(done, total, now)
        for words in figures:
            left = min(room - width(self._title) - width(words) - 2, LONGEST)
            if left >= 4:
                full = left * done // total
                return f"{self._title} {'━' * full}{'╺' * (left - full)} {words}"
        return f"{self._title} {figures[-1]}"[: max(room, 0)]

    def _figures(self, done: int, total: int, now: float) -> list[str]:
        percent = f"{100 * done // total:3d} %"
        if not self._unit:
            return [percent]
        first = self._first or 0
        speed = (done - first) / max(now - self._began, 1e-9)
        tokens = f"{done:,}/{total:,} {self._unit}"
        forms = [tokens, percent]
        if done > first:
            forms.insert(0, f"{tokens}, {speed:,.0f}/s")
        if first:
            forms.insert(0, f"{forms[0]}, {first:,} reused")
        return forms
