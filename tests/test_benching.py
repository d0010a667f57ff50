"""strata bench: what is measured at which depth, and how it is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from strata_cli.cli.benching import Row, result
from strata_cli.engine import ModelOptions, Sampling
from strata_cli.engine.llama import open_model
from strata_cli.environment import Interrupt
from strata_cli.errors import Interrupted
from tests.shell import strata

SMALL = ("-t", "1", "--runs", "2", "--tokens", "4", "--prompt-tokens", "8")


def test_json_has_a_figure_a_run_for_each_depth_and_runner(tiny_model: Path) -> None:
    done = strata("bench", str(tiny_model), *SMALL, "--depth", "0,16", "--against", "raw", "--format", "json")
    assert done.status == 0, done.err
    report = done.json
    assert [(row["depth"], row["name"]) for row in report["results"]] == [
        (depth, name) for depth in (0, 16) for name in ("engine, greedy", "bare, greedy", "engine, all samplers")
    ]
    assert all(len(row["decode"]["runs"]) == 2 for row in report["results"])
    assert [("against_bare" in row["decode"]) for row in report["results"]] == [True, False, True] * 2
    assert ["prefill" in row for row in report["results"]] == [True, True, False] * 2
    assert (report["threads"], report["context"], report["llama_cpp_python"]) == (1, 16 + 8 + 1, "0.3.36")


def test_the_table_names_model_and_build(tiny_model: Path) -> None:
    done = strata("bench", "-m", str(tiny_model), *SMALL, "--depth", "0", "--depth", "8")
    assert done.status == 0, done.err
    assert str(tiny_model) in done.text and "1 thread," in done.text and "llama-cpp-python" in done.text
    assert [line.split()[0] for line in done.text.splitlines() if "engine, greedy" in line] == ["0", "8"]


def test_a_run_is_compared_with_the_bare_run_of_its_turn() -> None:
    """On a machine that changes, the medians of the two may come from different minutes: here 90 beside 50."""
    ours, bare = Row(0, "engine, greedy", (), (90.0, 99.0, 45.0)), Row(0, "bare, greedy", (), (100.0, 50.0, 50.0))
    assert result(ours, bare)["decode"]["against_bare"] == pytest.approx(0.9)
    assert "against_bare" not in result(bare, bare)["decode"]


def test_the_model_of_the_environment_and_of_the_configuration_file(tiny_model: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("threads = 1\nmodel = 'another'\n")
    run = ("bench", "--runs", "1", "--tokens", "1", "--prompt-tokens", "1", "--depth", "0", "--format", "json")
    done = strata(*run, STRATA_CONFIG=str(config), STRATA_MODEL=str(tiny_model))
    assert (done.json["path"], done.json["threads"]) == (str(tiny_model), 1)
    assert strata(*run, str(tiny_model), STRATA_CONFIG=str(config)).json["path"] == str(tiny_model)


@pytest.mark.parametrize("more", [("--depth", "x"), ("--depth", "100", "-c", "50"), ("-m", "another")], ids=" ".join)
def test_what_cannot_be_measured_is_refused(tiny_model: Path, more: tuple[str, ...]) -> None:
    done = strata("bench", str(tiny_model), *SMALL, *more)
    assert (done.status, done.text) == (2, "")


def test_the_bare_loop_evaluates_what_the_engine_evaluates(tiny_model: Path) -> None:
    engine = open_model(ModelOptions(str(tiny_model), context=64, threads=1), interrupt=Interrupt())
    api, loop, timeline = engine._loaded.api, engine.bare(), engine.timeline()
    prompt = list(range(65, 85))
    timeline.prefill(prompt)
    wanted = next(timeline.decode(Sampling(temperature=0))).id
    for _ in range(2):
        loop.stand_at(prompt[:12])
        loop.evaluate(prompt[12:])
        assert api.llama_memory_seq_pos_max(loop._memory, 0) == len(prompt) - 1
        assert api.llama_sampler_sample(loop._greedy, loop._context, -1) == wanted
    loop.close()
    engine.close()


def test_an_interrupt_stops_the_bare_loop(tiny_model: Path) -> None:
    interrupt = Interrupt()
    engine = open_model(ModelOptions(str(tiny_model), context=64, threads=1), interrupt=interrupt)
    loop = engine.bare()
    interrupt.set()
    with pytest.raises(Interrupted):
        loop.decode(65, 4)
    loop.close()
    engine.close()
