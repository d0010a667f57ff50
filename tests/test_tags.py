"""Reasoning tags: what a stretch of text leaves open, and reasoning written into content."""

from __future__ import annotations

import pytest

from strata_cli.prompt.tags import FAMILIES, family_in, inline_reasoning, last_block


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.open)
def test_every_family_opens_and_closes(family) -> None:
    opened = last_block(f"header{family.open}\n")
    assert opened is not None and opened.family == family and opened.state == "open"
    closed = last_block(f"header{family.open}thought{family.close}\n")
    assert closed is not None and closed.family == family and closed.state == "closed"
    assert closed.opened == (6, 6 + len(family.open))
    alone = last_block(f"header{family.close}")
    assert alone is not None and alone.state == "closed" and alone.opened is None
    again = last_block(f"{family.open}{family.close}{family.open}")
    assert again is not None and again.state == "open"
    assert family_in(f"{{{{ '{family.close}' }}}}") == family


def test_no_tag_no_block() -> None:
    assert last_block("<|im_start|>assistant\n<thinking>") is None
    assert family_in("") is None


def test_the_last_tag_decides_between_families() -> None:
    block = last_block("<think></think>[THINK]")
    assert block is not None and block.family.open == "[THINK]" and block.state == "open"


@pytest.mark.parametrize("family", [family for family in FAMILIES if family.inline], ids=lambda family: family.open)
def test_inline_reasoning(family) -> None:
    found = inline_reasoning(f" \n{family.open}\n so \n{family.close}\n\n text\n")
    assert found is not None
    assert (found.reasoning, found.text, found.closed) == (" so ", " text\n", True)
    found = inline_reasoning(f"{family.open}so")
    assert found is not None
    assert (found.reasoning, found.text, found.closed) == ("so", "", False)


@pytest.mark.parametrize(
    "content",
    ["", "text", "text <think>so</think>", "<think>\n\n</think>\n\ntext", "<think>", "</think>x", "<|think|>so"],
)
def test_ordinary_text(content: str) -> None:
    assert inline_reasoning(content) is None
