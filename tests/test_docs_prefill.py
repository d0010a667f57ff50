"""The worked examples in docs/prefill.md are what Strata does."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path

import pytest

from strata_cli.conversation import openai
from strata_cli.prompt.template import ChatTemplate
from strata_cli.prompt.turn import compose

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "prefill.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(jinja|json|text)\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
EXAMPLES = re.split(r"^### Example ", PAGE, flags=re.MULTILINE)[1:]


def test_there_are_five() -> None:
    assert len(EXAMPLES) == 5


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.partition(":")[0])
def test_example(example: str) -> None:
    blocks = dict(BLOCK.findall(example))
    now = datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone.utc)
    prompt = compose(ChatTemplate(blocks["jinja"] + "\n", now=now), openai.parse(json.loads(blocks["json"])))
    assert prompt.text == blocks["text"]
