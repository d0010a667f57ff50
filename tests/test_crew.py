"""How many threads evaluate, beside programs that keep cores busy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from strata_cli.engine import Threads
from strata_cli.engine.llama.crew import Crew, Readings, _busy, most_threads, set_waiting


class Machine:
    """A clock, processor times, and the C function that sets the threads."""

    def __init__(self) -> None:
        self.now = self.busy = self.own = 0.0
        self.numbers: list[int] = []

    def pass_(self, seconds: float, *, others: float, own: float = 0.0) -> None:
        self.now += seconds
        self.own += own * seconds
        self.busy += (own + others) * seconds

    def readings(self) -> Readings:
        return Readings(lambda: self.busy, lambda: self.own, lambda: self.now)

    def llama_set_n_threads(self, context: int, number: int, batch: int) -> None:
        assert number == batch
        self.numbers.append(number)


def crew(machine: Machine, most: int, **more: object) -> Crew:
    return Crew(machine, 1, most, machine.readings(), **{"cores": most} | more)


@pytest.mark.parametrize(
    ("others", "working"),
    [(0, 4), (0.3, 4), (0.5, 3), (1, 3), (1.3, 3), (1.5, 2), (3, 1), (4, 1), (9, 1)],
)
def test_others_take_threads_away(others: float, working: int) -> None:
    machine = Machine()
    chosen = crew(machine, 4)
    machine.pass_(0.5, others=others, own=1)
    chosen.begin()
    assert chosen.threads == Threads(working, 4, pytest.approx(others))
    assert machine.numbers == ([] if working == 4 else [working])


def test_own_work_takes_nothing_away() -> None:
    machine = Machine()
    chosen = crew(machine, 2)
    machine.pass_(3, others=0, own=2)
    chosen.mind()
    assert chosen.threads.working == 2


def test_changes_are_noticed_in_both_directions() -> None:
    machine = Machine()
    chosen = crew(machine, 2)
    for others, working in ((0, 2), (1, 1), (1, 1), (0, 2)):
        machine.pass_(0.3, others=others)
        chosen.mind()
        assert chosen.threads.working == working
    assert machine.numbers == [1, 2]


def test_short_spans_say_nothing_and_are_not_lost() -> None:
    machine = Machine()
    chosen = crew(machine, 2)
    for _ in range(4):
        machine.pass_(0.06, others=1)
        chosen.mind()
    assert machine.numbers == []
    machine.pass_(0.06, others=1)
    chosen.mind()
    assert machine.numbers == [1]


def test_two_threads_of_a_core_are_two_places() -> None:
    """Eight threads on eight cores of two places each: another program takes none of theirs away."""
    machine = Machine()
    chosen = crew(machine, 8, cores=16)
    machine.pass_(1, others=4)
    chosen.mind()
    assert chosen.threads.working == 8


def test_a_number_that_was_asked_for_stays() -> None:
    machine = Machine()
    chosen = crew(machine, 2, fixed=True)
    machine.pass_(1, others=2)
    chosen.mind()
    assert chosen.threads == Threads(2, 2)


def test_where_nobody_counts_all_work() -> None:
    chosen = Crew(Machine(), 1, 2, Readings(lambda: None), cores=2)
    chosen.begin()
    assert chosen.threads.working == 2


@pytest.mark.parametrize(
    ("variables", "threads"),
    [
        ({}, 8),
        ({"OMP_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": "4,2"}, 4),
        ({"OMP_NUM_THREADS": "16"}, 8),
        ({"OMP_NUM_THREADS": "many"}, 8),
        ({"OMP_NUM_THREADS": "0"}, 8),
        ({"OMP_THREAD_LIMIT": "2", "OMP_NUM_THREADS": "5"}, 2),
    ],
)
def test_openmp_settings_limit_the_threads(variables: dict[str, str], threads: int) -> None:
    assert most_threads(8, variables) == threads


def test_waiting_is_set_unless_the_user_has() -> None:
    variables: dict[str, str] = {}
    set_waiting(variables)
    assert variables == {"GOMP_SPINCOUNT": "10000"}
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        own = {name: "ACTIVE"}
        set_waiting(own)
        assert own == {name: "ACTIVE"}


def test_the_kernel_counts_what_others_do() -> None:
    if _busy() is None:
        pytest.skip("nobody counts here")
    hog = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        readings = Readings()
        before = readings.others() or 0.0
        while readings.span() < 1:
            pass
        others = readings.others()
        assert others is not None and others > 0.2, before
    finally:
        hog.kill()
        hog.wait()


@pytest.mark.parametrize("text", ["", "cpu0 1 2\n", "cpu0 a b c d e f g h\n"])
def test_a_count_that_cannot_be_read_is_none(text: str, tmp_path: Path) -> None:
    file = tmp_path / "stat"
    assert _busy(file) is None
    file.write_text(text)
    assert not _busy(file)
