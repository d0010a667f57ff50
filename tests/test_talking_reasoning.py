"""Reasoning in a talk: shown apart, kept apart, stopped in the middle and gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from strata_cli.engine import llama
from tests import scripted
from tests.desk import Desk, desk_over

OPEN = """\
{%- for m in messages %}<|im_start|>{{ m.role }}
{% if m.role == 'assistant' and m.reasoning_content %}<think>
{{ m.reasoning_content }}
</think>

{% endif %}{{ m.content or '' }}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
<think>
{% endif %}"""
CLOSED = OPEN.replace("<|im_start|>assistant\n<think>\n{% endif %}", "<|im_start|>assistant\n{% endif %}")


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A talk with a model that says the script; only the engine is not real."""
    model = tmp_path / "scripted.gguf"
    model.touch()

    def start(template: str, script: str) -> Desk:
        monkeypatch.setattr(llama, "open_model", scripted.opening(template, script))
        desk = desk_over(model)
        desk.limit(None)
        return desk

    return start


def test_a_block_that_the_prompt_opens_is_kept_as_reasoning(desk) -> None:
    talk = desk(OPEN, "Rain is likely.\n</think>\n\nYes.")
    said = talk("Rain?")
    assert "Rain is likely." in said and "Yes." in talk.out.shown
    assert "likely" not in talk.out.shown
    last = talk.talk.dialogue.messages[-1]
    assert (last.reasoning, last.content) == ("Rain is likely.", "Yes.")


@pytest.mark.parametrize("limit", [4, 14, 17, 20, 24, 27, 29])
def test_an_answer_stopped_anywhere_goes_on(desk, limit: int) -> None:
    talk = desk(OPEN, "Rain is likely.\n</think>\n\nYes, much.")
    talk.limit(limit)
    talk("Rain?")
    assert talk.unfinished
    talk.limit(None)
    talk("/continue")
    last = talk.talk.dialogue.messages[-1]
    assert not talk.unfinished
    assert (last.reasoning, last.content) == ("Rain is likely.", "Yes, much.")


def test_a_block_that_the_model_opens_is_shown_apart(desk) -> None:
    talk = desk(CLOSED, "<think>\nRain is likely.\n</think>\n\nYes.")
    said = talk("Rain?")
    assert "Rain is likely." in said
    assert "Yes." in talk.out.shown and "likely" not in talk.out.shown
    assert "Rain is likely." in talk("/prompt") + talk.out.shown


@pytest.mark.parametrize("choice", ["hide", "fold"])
def test_thinking_can_be_folded_or_hidden(desk, choice: str) -> None:
    talk = desk(OPEN, "Rain is likely.\n</think>\n\nYes.")
    talk(f"/set thinking {choice}")
    assert "likely" not in talk("Rain?")
    assert "Yes." in talk.out.shown
    assert "it can be show, fold or hide" in talk("/set thinking loud")
    assert f"thinking           {choice}" in talk("/set")
    assert "thinking           show" in talk("/set thinking")
    assert "thinking" in talk("/set loudness 3")
