"""How many threads evaluate, chosen from what else the machine is doing.

llama.cpp's threads wait for each other hundreds of times a token, and spin while they wait. Where one of them has no
core to run on, because another program keeps it busy, all of them stand still until the kernel gives it one: a token
takes a second instead of a hundredth. So there work as many threads as there are cores that others leave.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from strata_cli.engine import Threads

_PERIOD, _SHORTEST = 0.25, 0.1
"""Seconds between two readings while a text is written, and at least: the kernel counts in hundredths."""

_SHARE = 0.4
"""What others may use of a core before a thread gives it up: above it, spinning costs more than the thread brings."""

_SPINS = "10000"
"""Turns that a thread of libgomp's spins before it sleeps: enough for llama.cpp's barriers where all threads run, and
a thirtieth of the default where one of them cannot."""

_WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")
_NUMBERS = ("OMP_NUM_THREADS", "OMP_THREAD_LIMIT")


def set_waiting(variables: MutableMapping[str, str]) -> None:
    """Say how OpenMP's threads wait, unless the user has; libgomp reads it when it is loaded, and never again."""
    if not any(name in variables for name in _WAITING):
        variables["GOMP_SPINCOUNT"] = _SPINS


def most_threads(cores: int, variables: Mapping[str, str]) -> int:
    """The threads that may work on this many cores; the user's own OpenMP settings are a limit."""
    limits = [variables.get(name, "").partition(",")[0].strip() for name in _NUMBERS]
    return min([cores, *(int(limit) for limit in limits if limit.isdigit() and int(limit))])


class Readings:
    """The processor time that all programs have used since the last reading, on the cores that this one may use."""

    def __init__(
        self,
        busy: Callable[[], float | None] | None = None,
        own: Callable[[], float] = process_time,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._busy, self._own, self._clock = busy or _busy, own, clock
        self.begin()

    def begin(self) -> None:
        """Read anew from here on."""
        self._last = (self._clock(), self._busy(), self._own())

    def span(self) -> float:
        """Seconds since the last reading."""
        return self._clock() - self._last[0]

    def others(self) -> float | None:
        """The cores that other programs kept busy since the last reading; None where nobody counts."""
        then, busy, own = self._last
        self.begin()
        now, busy_now, own_now = self._last
        if busy is None or busy_now is None or now <= then:
            return None
        return max(0.0, (busy_now - busy - (own_now - own)) / (now - then))


class Crew:
    """The threads of one llama.cpp context."""

    def __init__(
        self, api: Any, context: int, most: int, readings: Readings, *, cores: int | None = None, fixed: bool = False
    ) -> None:
        self._set = lambda number: api.llama_set_n_threads(context, number, number)
        self._readings, self._fixed = readings, fixed
        self._cores = max(most, _allowed() if cores is None else cores)
        self.threads = Threads(most, most, 0.0)

    def begin(self) -> None:
        """Before a prompt: what was read while the model was loaded, or since the last answer, counts."""
        self._choose(_SHORTEST)

    def mind(self) -> None:
        """Between two evaluations."""
        self._choose(_PERIOD)

    def _choose(self, span: float) -> None:
        if self._fixed or self._readings.span() < span:
            return
        others = self._readings.others()
        if others is None:
            return
        most = self.threads.most
        working = max(1, min(most, int(self._cores - others + _SHARE)))
        if working != self.threads.working:
            self._set(working)
        self.threads = Threads(working, most, others)


def _allowed() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _busy(stat: Path = Path("/proc/stat")) -> float | None:
    """Seconds in which the cores of this process have worked since the machine started; None where Linux is not."""
    try:
        text = stat.read_text()
        names = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        lines = [line.split() for line in text.splitlines() if line.startswith("cpu")]
        return sum(_worked(fields) for name, *fields in lines if name in names) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return None


def _worked(fields: list[str]) -> int:
    """Ticks of one core in which it was not free; guests count within user, and a stolen core is not free either."""
    user, nice, system, _idle, _waiting, interrupts, soft, stolen = map(int, fields[:8])
    return user + nice + system + interrupts + soft + stolen
