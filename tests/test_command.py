"""Text that begins with a dash, and what is an option nevertheless."""

from __future__ import annotations

import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata_cli.cli.command import separate
from strata_cli.errors import ExitStatus
from tests.shell import process, strata

OPTIONS = {"-m": True, "--prefix": True, "--temp": True, "-n": True, "-ngl": True, "-q": False, "--quiet": False}


@pytest.mark.parametrize(
    ("args", "options", "words"),
    [
        ([], [], []),
        (["hello", "there"], [], ["hello", "there"]),
        (["- item one"], [], ["- item one"]),
        (["-m is short"], [], ["-m is short"]),
        (["-n\titem"], [], ["-n\titem"]),
        (["--prefix is an option"], [], ["--prefix is an option"]),
        (["-q quiet", "-q"], ["-q"], ["-q quiet"]),
        (["--prefix=The next number is"], ["--prefix=The next number is"], []),
        (["--prefix=", "x"], ["--prefix="], ["x"]),
        (["--prefix", "- x y", "z"], ["--prefix", "- x y"], ["z"]),
        (["--prefix", "--", "x"], ["--prefix", "--"], ["x"]),
        (["--prefix", "-q"], ["--prefix", "-q"], []),
        (["-- not the end", "x"], [], ["-- not the end", "x"]),
        (["a", "--", "-q", "--", "- b"], [], ["a", "-q", "--", "- b"]),
        (["-"], [], ["-"]),
        (["-m", "file", "x"], ["-m", "file"], ["x"]),
        (["-mfile", "x"], ["-mfile"], ["x"]),
        (["-m=file", "x"], ["-m=file"], ["x"]),
        (["-ngl", "3", "x"], ["-ngl", "3"], ["x"]),
        (["-ngl=3", "x"], ["-ngl=3"], ["x"]),
        (["--temp", "-1", "x"], ["--temp", "-1"], ["x"]),
        (["-qm", "file", "x"], ["-qm", "file"], ["x"]),
        (["-qmfile", "x"], ["-qmfile"], ["x"]),
        (["-qq", "x"], ["-qq"], ["x"]),
        (["--misspelt", "x"], ["--misspelt"], ["x"]),
        (["--misspelt=x y"], ["--misspelt=x y"], []),
        (["x", "-q", "y", "--temp", "0", "z"], ["-q", "--temp", "0"], ["x", "y", "z"]),
        (["--temp"], ["--temp"], []),
        (["x", "--temp"], ["--temp"], []),
        (["x", "-qn"], ["-qn"], []),
        (["-5 degrees", "-5"], ["-5"], ["-5 degrees"]),
        (["- a = b"], [], ["- a = b"]),
        (["--a b=c"], [], ["--a b=c"]),
    ],
)
def test_separate(args: list[str], options: list[str], words: list[str]) -> None:
    assert separate(args, OPTIONS.get) == (options, words)


arguments = st.lists(st.sampled_from([*OPTIONS, "--", "-", "- a b", "a", "--prefix=a b", "-mx", "", "--what", "-qn"]))


@given(arguments)
def test_each_argument_is_an_option_or_a_word(args: list[str]) -> None:
    options, words = separate([*args, "last"], OPTIONS.get)
    lost = [arg for arg in [*args, "last"] if arg not in [*options, *words]]
    assert set(lost) <= {"--"}
    assert len(args) + 1 - len(options) - len(words) in (0, 1)


@given(arguments)
def test_separating_again_changes_nothing(args: list[str]) -> None:
    separated = separate(args, OPTIONS.get)
    assert separate([*separated[0], "--", *separated[1]], OPTIONS.get) == separated or not separated[1]


# The whole program. `models path` takes a word and loads nothing.


def test_text_that_begins_with_a_dash_reaches_the_command() -> None:
    done = strata("models", "path", "- item one")
    assert done.err.startswith("strata: there is no model - item one; ")


def test_the_end_of_options() -> None:
    assert strata("models", "path", "--", "--names").err.startswith("strata: there is no model --names; ")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["chat", "--tmep", "0"], "no such option: --tmep; did you mean "),
        (["chat", "-z"], "no such option: -z"),
        (["models", "list", "--name"], "did you mean --names"),
        (["chatt"], "did you mean 'chat'"),
        (["chat", "--temp"], "requires an argument"),
        (["chat", "hello", "--temp"], "requires an argument"),
        (["chat", "hello", "--prefix"], "requires an argument"),
        (["chat", "--temp", "-1"], "--temp"),
        (["chat", "--input", "xml"], "--input"),
        (["chat", "-q=1"], "-="),
    ],
)
def test_a_wrong_command_line_is_one_line(args: list[str], message: str) -> None:
    done = strata(*args)
    assert (done.status, done.out) == (ExitStatus.USAGE, b"")
    assert done.err.count("\n") == 1 and done.err.startswith("strata: ")
    assert message.lower() in done.err.lower()
    assert "--help" in done.err


def test_a_wrong_command_line_as_json() -> None:
    done = strata("chat", "--format", "json", "--tmep", "0")
    assert (done.status, done.err) == (ExitStatus.USAGE, "")
    assert done.json["error"]["code"] == "invalid_usage" and "--temp" in done.json["error"]["message"]


def test_help_has_the_options_in_sections(capfd: pytest.CaptureFixture[str]) -> None:
    helps = []
    for name in ("-h", "--help"):
        done = strata("chat", name)
        assert done.status == ExitStatus.OK
        helps.append(capfd.readouterr().out or done.text)
    assert helps[0] == helps[1]
    for section, option in {"Arguments:": "PROMPT", "Prefill:": "--prefix", "Sampling:": "--temp"}.items():
        assert option in helps[0].split(f"\n{section}\n")[1].split("\n\n")[0]


@pytest.mark.parametrize("args", [["--help"], ["chat", "-h"], ["--version"], ["man"], ["completion", "zsh"]])
def test_a_reader_that_has_gone_is_no_error(args: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    running = process(*args, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert running.communicate()[1] == b"" and running.returncode == 0
