"""The bar: late, on one line, and gone without a trace."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from strata_cli.output.terminal.progress import DELAY, Bar
from tests.screens import controls, environment, plain, rows


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def bar_at(seconds: float, columns: int = 80, unit: str = "tokens", **more: object) -> tuple[Bar, Callable[[], str]]:
    clock = Clock()
    env = environment(columns, clock=clock, **more)  # type: ignore[arg-type]
    bar = Bar(env, "prompt", unit)
    clock.now = seconds
    return bar, lambda: env.stderr.all


def test_a_prefill_says_tokens_speed_and_what_was_reused() -> None:
    bar, shown = bar_at(2.0)
    bar(1000, 5000)
    assert rows(shown(), 80)[0].endswith("1,000/5,000 tokens, 1,000 reused")
    bar._environment.clock.now = 4.0  # type: ignore[attr-defined]
    bar(3000, 5000)
    assert rows(shown(), 80)[0].endswith("3,000/5,000 tokens, 500/s, 1,000 reused")
    bar.close()
    assert not any(rows(shown(), 80))


def test_a_prompt_that_was_not_there_reuses_nothing() -> None:
    bar, shown = bar_at(2.0)
    bar(0, 400)
    bar._environment.clock.now = 3.0  # type: ignore[attr-defined]
    bar(300, 400)
    assert rows(shown(), 80)[0].endswith("300/400 tokens, 100/s")


def test_a_load_says_how_much_of_it_is_done() -> None:
    bar, shown = bar_at(2.0, unit="")
    bar(250, 1000)
    assert rows(shown(), 80)[0].endswith(" 25 %")


@pytest.mark.parametrize("columns", (1, 7, 12, 20, 40, 80, 200))
def test_it_never_takes_more_than_a_line(columns: int) -> None:
    bar, shown = bar_at(2.0, columns)
    for step in range(1, 11):
        bar._environment.clock.now = 2.0 + step  # type: ignore[attr-defined]
        bar(1000 * step, 10000)
    for drawn in plain(shown()).split("\r\x1b[2K"):
        assert len(drawn) < max(columns, 1)
    assert "\n" not in shown() and not controls(shown())


@pytest.mark.parametrize("more", [{"terminal": False}, {"TERM": "dumb"}])
def test_it_is_for_terminals(more: dict[str, object]) -> None:
    bar, shown = bar_at(2.0, **more)
    bar(1, 2)
    bar.close()
    assert shown() == ""


def test_what_is_quick_is_not_shown() -> None:
    bar, shown = bar_at(DELAY / 2)
    bar(1, 2)
    bar.close()
    assert shown() == ""


def test_it_is_not_drawn_more_often_than_anyone_can_see() -> None:
    bar, shown = bar_at(2.0)
    for done in range(1000):
        bar(done, 1000)
    assert shown().count("\r") == 1
