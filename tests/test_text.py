"""Bytes to text and stop strings: however the input is cut, the result is the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from strata_cli.generation.text import StopStrings, Utf8


def cuts(whole: Sequence) -> Iterator[list[Sequence]]:
    """The input in one piece, in two at every place, and in pieces of one."""
    yield [whole]
    yield from ([whole[:at], whole[at:]] for at in range(len(whole) + 1))
    yield [whole[at : at + 1] for at in range(len(whole))]


def decoded(pieces: list[bytes]) -> tuple[str, bytes]:
    utf8 = Utf8()
    return "".join(map(utf8.push, pieces)), utf8.pending


@pytest.mark.parametrize(
    ("data", "text", "pending"),
    [
        (b"", "", b""),
        (b"plain", "plain", b""),
        ("naïve 日本語 👩‍👩‍👧".encode(), "naïve 日本語 👩‍👩‍👧", b""),
        ("\ufeffmark".encode(), "\ufeffmark", b""),
        (b"\r\n\r", "\r\n\r", b""),
        (b"a\x00b", "a\x00b", b""),
        ("👍".encode()[:3], "", "👍".encode()[:3]),
        (b"x\xe2\x82", "x", b"\xe2\x82"),
        (b"\xff\xfe", "\ufffd\ufffd", b""),
        (b"a\x80b", "a\ufffdb", b""),
        (b"\xe2\x82z", "\ufffdz", b""),
        (b"\xf0\x9f\x91\xf0\x9f\x91\x8d", "\ufffd👍", b""),
        # A surrogate and an overlong form are no UTF-8.
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd", b""),
        (b"\xc0\xaf", "\ufffd\ufffd", b""),
    ],
)
def test_bytes_become_text(data: bytes, text: str, pending: bytes) -> None:
    for pieces in cuts(data):
        assert decoded(pieces) == (text, pending)


@given(st.binary(max_size=12))
def test_any_bytes_at_any_cut(data: bytes) -> None:
    assert all(decoded(pieces) == decoded([data]) for pieces in cuts(data))


@given(st.text())
def test_text_comes_back(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    assert all(decoded(pieces) == (text, b"") for pieces in cuts(text.encode()))


def stopped(stops: tuple[str, ...], pieces: list[str]) -> tuple[str, str | None]:
    strings = StopStrings(stops)
    text = "".join(map(strings.push, pieces))
    return text + strings.finish(), strings.found


@pytest.mark.parametrize(
    ("stops", "whole", "text", "found"),
    [
        ((), "all of it", "all of it", None),
        (("",), "all of it", "all of it", None),
        (("STOP",), "", "", None),
        (("STOP",), "STOP", "", "STOP"),
        (("STOP",), "a STOP b STOP", "a ", "STOP"),
        (("STOP",), "STO", "STO", None),
        (("STOP",), "STOSTOP", "STO", "STOP"),
        (("STOP",), "no end ST", "no end ST", None),
        (("\n\n",), "one\n two\n\nthree", "one\n two", "\n\n"),
        (("aa",), "aaa", "", "aa"),
        (("aab",), "aaab", "a", "aab"),
        (("abab",), "abacabab", "abac", "abab"),
        # What is complete first ends the answer, as it does when each character comes alone.
        (("bc", "abcd"), "abcd", "a", "bc"),
        (("ab", "abc"), "abc", "", "ab"),
        (("abcd", "cd"), "xabcd", "x", "abcd"),
        (("cd", "abcd"), "xabcd", "x", "abcd"),
        (("x", "👍🏽"), "so 👍👍🏽x", "so 👍", "👍🏽"),
    ],
)
def test_stop_strings(stops: tuple[str, ...], whole: str, text: str, found: str | None) -> None:
    for pieces in cuts(whole):
        assert stopped(stops, pieces) == (text, found)


@given(st.lists(st.text("ab", max_size=4), max_size=3).map(tuple), st.text("abc", max_size=12))
@example(("ba", "aab"), "aabaab")
def test_any_stop_strings_at_any_cut(stops: tuple[str, ...], whole: str) -> None:
    text, found = stopped(stops, [whole])
    assert all(stopped(stops, pieces) == (text, found) for pieces in cuts(whole))
    assert whole.startswith(text + (found or ""))
    assert not any(stop in text for stop in stops if stop)
    assert (found is None) == (text == whole)


def test_only_what_may_become_a_stop_string_waits() -> None:
    strings = StopStrings(("END", "\n\n"))
    assert strings.push("An") == "An"
    assert strings.push(" answer\n") == " answer"
    assert strings.push("with E") == "\nwith "
    assert strings.push("NERGY") == "ENERGY"
    assert strings.push("EN") == ""
    assert strings.finish() == "EN"
    assert strings.finish() == ""


def test_nothing_comes_after_a_stop_string() -> None:
    strings = StopStrings(("END",))
    assert strings.push("a END b") == "a "
    assert strings.push("more END") == ""
    assert (strings.finish(), strings.found) == ("", "END")
