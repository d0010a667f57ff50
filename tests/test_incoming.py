"""Bytes from outside: which text they are, and whether that text is a conversation."""

from __future__ import annotations

import codecs
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata_cli.conversation.incoming import decode, kind_of, load_json
from strata_cli.errors import INVALID_JSON, INVALID_TEXT, StrataError

TALK = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (codecs.BOM_UTF8, ""),
        ("naïve 👍".encode(), "naïve 👍"),
        (codecs.BOM_UTF8 + "naïve".encode(), "naïve"),
        (codecs.BOM_UTF8 * 2, "\ufeff"),
        (codecs.BOM_UTF16_LE + "naïve 👍".encode("utf-16-le"), "naïve 👍"),
        (codecs.BOM_UTF16_BE + "naïve 👍".encode("utf-16-be"), "naïve 👍"),
        (b"one\r\ntwo\rthree\n", "one\r\ntwo\rthree\n"),
        (codecs.BOM_UTF16_LE + "one\r\n".encode("utf-16-le"), "one\r\n"),
        (b"  spaces \t\n\n", "  spaces \t\n\n"),
    ],
    ids=ascii,
)
def test_text(data: bytes, text: str) -> None:
    assert decode(data, "input") == text


@given(st.text(), st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_text_comes_back(text: str, encoding: str) -> None:
    if text.startswith("\ufeff") or "\0" in text:
        return
    assert decode(text.encode(encoding), "input") == text


@pytest.mark.parametrize(
    ("data", "byte", "offset", "encoding"),
    [
        (b"\xff", 0xFF, 0, "UTF-8"),
        (b"ab\xe9\r\n", 0xE9, 2, "UTF-8"),
        (codecs.BOM_UTF8 + b"ab\x80", 0x80, 5, "UTF-8"),
        # A sequence that the end cuts, one that is too long, a surrogate.
        (b"ab\xe2\x82", 0xE2, 2, "UTF-8"),
        (b"\xc0\xaf", 0xC0, 0, "UTF-8"),
        (b"x\xed\xa0\x80", 0xED, 1, "UTF-8"),
        (b"x" * 100_000 + b"\xfe", 0xFE, 100_000, "UTF-8"),
        (codecs.BOM_UTF16_LE + b"a\0b", ord("b"), 4, "UTF-16-LE"),
        (codecs.BOM_UTF16_BE + b"\xd8\x3d", 0xD8, 2, "UTF-16-BE"),
        # Without a mark nothing tells UTF-16 from text with NULs in it.
        ("hi".encode("utf-16-be"), 0, 0, "UTF-8"),
        (b"a\xc3\xa9\0b", 0, 3, "UTF-8"),
        (codecs.BOM_UTF16_LE + b"a\0\0\0", 0, 4, "UTF-16-LE"),
        (codecs.BOM_UTF32_BE + b"\0\0\0h", 0xFE, 2, "UTF-8"),
    ],
    ids=ascii,
)
def test_no_text(data: bytes, byte: int, offset: int, encoding: str) -> None:
    with pytest.raises(StrataError) as caught:
        decode(data, "the file x")
    assert caught.value.kind is INVALID_TEXT
    assert caught.value.message == f"the file x is not {encoding} text: byte 0x{byte:02x} at byte offset {offset}"


def test_utf_32_is_named() -> None:
    with pytest.raises(StrataError) as caught:
        decode(codecs.BOM_UTF32_LE + "hi".encode("utf-32-le"), "input")
    assert caught.value.kind is INVALID_TEXT and "UTF-32" in caught.value.message


def test_fifty_megabytes() -> None:
    data = ("{ naïve\r\n" * 5_500_000).encode()
    text = decode(data, "input")
    assert len(data) > 50_000_000 and text.encode() == data
    assert kind_of(text) == "text"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "text"),
        (" \n\t", "text"),
        ("hello", "text"),
        ('"a string"', "text"),
        ("{", "text"),
        ("[", "text"),
        ("[]", "text"),
        ("{}", "text"),
        ("[1, 2]", "text"),
        ('{"other": []}', "text"),
        ('[{"content": "no role"}]', "text"),
        ("{ not json }", "text"),
        ("[draft] a text", "text"),
        ("[" * 200_000, "text"),
        ('{"a":' * 200_000, "text"),
        (json.dumps(TALK), "json"),
        ("\n  " + json.dumps(TALK, indent=2) + "\r\n", "json"),
        (json.dumps(TALK["messages"]), "json"),
        ('{"messages": 5}', "json"),
        (f"{json.dumps(TALK)}\n{json.dumps(TALK)}\n", "jsonl"),
        (f"{json.dumps(TALK)}\r\n{json.dumps(TALK)}", "jsonl"),
        (f"\n\n{json.dumps(TALK)}\n\nbroken", "jsonl"),
        (f"{json.dumps(TALK['messages'])}\n{{", "jsonl"),
        (f"{{}}\n{json.dumps(TALK)}", "text"),
        (f"broken\n{json.dumps(TALK)}", "text"),
        (f"{json.dumps(TALK)} and more", "text"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_what_piped_text_is(text: str, kind: str) -> None:
    assert kind_of(text) == kind


@pytest.mark.parametrize(
    ("text", "value"),
    [("null", None), (" [1, 2.5, true] ", [1, 2.5, True]), ('"\\u00e9\\ud83d\\udc4d"', "é👍"), ("{}", {})],
)
def test_json(text: str, value: object) -> None:
    assert load_json(text, "input") == value


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "at column 1"),
        ("{", "at column 2"),
        ('{"a": 1,\n "b" 2}', "at line 2, column 6"),
        ("[1] 2", "at column 5"),
        ("'single'", "at column 1"),
        ('["tab\there"]', "at column 6"),
        ("[NaN]", "NaN is not a JSON value"),
        ("[-Infinity]", "-Infinity is not a JSON value"),
        ("Infinity", "Infinity is not a JSON value"),
        ("[" * 200_000, "nested too deeply"),
        ('{"a":' * 200_000, "nested too deeply"),
        ("1" * 10_000, "digits"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_no_json(text: str, where: str) -> None:
    with pytest.raises(StrataError) as caught:
        load_json(text, "the file x")
    assert caught.value.kind is INVALID_JSON
    assert caught.value.message.startswith("the file x is ") and where in caught.value.message
    assert "\n" not in caught.value.message
