"""Nothing that a model says may steer the terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata_cli.output.terminal.sanitize import visible, visible_line

ATTACKS = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x1b]8;;http://example.org\x1b\\link\x1b]8;;\x1b\\",
    "\x1b]52;c;Y29weQ==\x07",
    "\x1bP+q544e\x1b\\",
    "\x1b_G\x1b\\",
    "\x9b2J",
    "\x9d0;title\x9c",
    "a\rb",
    "a\x08\x08b",
    "\x07\x00\x7f",
    "\x0e\x0f",
    "admin\u202enimda",
    "\u2066x\u2069\u200e\u200f\u061c",
    "one\u2028two\u2029three\u0085four",
]


@pytest.mark.parametrize("text", ATTACKS, ids=ascii)
def test_what_steers_is_shown(text: str) -> None:
    shown = visible(text)
    assert shown != text
    assert not any(unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in shown)
    assert not any(unicodedata.bidirectional(letter) in BIDIRECTIONAL for letter in shown)


BIDIRECTIONAL = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}


@pytest.mark.parametrize(
    "text", ["", "plain", "tab\tand\nline", "naïve 日本語 👩‍👩‍👧 नमस्ते שלום عربي", "e\u0301", "\u00a0\u00ad"]
)
def test_what_does_not_steer_stays(text: str) -> None:
    assert visible(text) == text


@given(st.text(), st.integers(0, 50))
def test_a_cut_changes_nothing(text: str, at: int) -> None:
    assert visible(text[:at]) + visible(text[at:]) == visible(text)
    assert visible(visible(text)) == visible(text)


@given(st.text())
def test_no_control_character_is_left(text: str) -> None:
    assert not any(unicodedata.category(letter) == "Cc" and letter not in "\n\t" for letter in visible(text))
    line = visible_line(text)
    assert len(line.splitlines()) <= 1 and not any(unicodedata.category(letter) == "Cc" for letter in line)


def test_what_is_shown() -> None:
    assert visible("\x1b[1m\x7f\x9b\u202e") == "\u241b[1m\u2421<U+009B><U+202E>"
    assert visible_line("a\nb\tc") == "a\u240ab c"
