"""A bar on one line of the terminal while something takes long; gone without a trace afterwards."""

from __future__ import annotations

from strata_cli.environment import Environment

DELAY = 0.3
"""Seconds before a bar appears at all; what is quicker is not worth the flicker."""
PAUSE = 0.1
"""Seconds between two drawings."""


class Bar:
    """Progress of a load (thousandths) or a prefill (tokens). Draws on stderr, and only on a terminal."""

    def __init__(self, environment: Environment, title: str, unit: str = "", *, shown: bool = True) -> None:
        self._environment = environment
        self._title = title
        self._unit = unit
        self._shown = shown and environment.stderr.terminal and environment.variables.get("TERM") != "dumb"
        self._began = environment.clock()
        self._drawn: float | None = None

    def __call__(self, done: int, total: int) -> None:
        if not self._shown:
            return
        now = self._environment.clock()
        if now - self._began < DELAY or (self._drawn is not None and now - self._drawn < PAUSE):
            return
        self._drawn = now
        self._environment.stderr.text("\r\x1b[2K" + self._picture(done, max(total, 1), now))

    def close(self) -> None:
        """Erase the bar."""
        if self._drawn is not None:
            self._environment.stderr.text("\r\x1b[2K")
            self._drawn = None

    def _picture(self, done: int, total: int, now: float) -> str:
        figures = f"{100 * done // total:3d} %"
        if self._unit:
            speed = done / max(now - self._began, 1e-9)
            figures = f"{done}/{total} {self._unit}, {speed:.0f}/s"
        room = self._environment.columns() - len(self._title) - len(figures) - 5
        if room < 4:
            return f"{self._title} {figures}"[: self._environment.columns() - 1]
        full = room * done // total
        return f"{self._title} {'━' * full}{'╺' * (room - full)} {figures}"
