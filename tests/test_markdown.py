# ruff: noqa: E501
"""Markdown is drawn once, whatever its text, wherever it is cut, at any width."""

from __future__ import annotations

import re
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strata_cli.output.terminal.markdown import PART, Markdown
from tests.screens import PREVIEW, controls, letters, plain, rows

WIDTHS = (20, 40, 80, 200)

TEXTS = {
    "prose": "# Alpha title\n\nA *beta* word, **gamma delta**, ***epsilon*** and `zeta eta`; ~~theta~~.\n\n"
    'See [iota kappa](https://example.org/a_(b)) and ![lambda](mu.png "nu"), or <https://xi.example/o_m_i>.\n---\nEnd',
    "lists": "- alpha beta gamma delta epsilon zeta eta theta iota kappa\n  - lambda `mu` nu xi omicron pi rho\n\n"
    "* sigma tau\n10. upsilon **phi chi**\n\n   psi omega\n- [ ] task\n-\n+ plus",
    "quotes": "> alpha beta gamma delta epsilon zeta eta theta iota\n> > kappa lambda\n>\n> ```py\n> x = 1  # mu\n> ```\n\n"
    ">>> python()\n>unquoted\n",
    "code": "```python\ndef alpha(beta):\n    '''Gamma\n    delta.'''\n\n    return f\"{beta}\"  # epsilon\n```\nzeta\n\n"
    "~~~\n```\nnot *the* end\n~~~\n- eta:\n  ```c\n  /* theta\n   * iota */ int x;\n  ```\n",
    "unclosed code": "Look:\n```js\nlet alpha = `beta ${gamma}\n/* delta",
    "table": "Before\n\n| Alpha | Beta | Gamma |\n|:------|-----:|:-----:|\n| `a|b` | 1 | **delta** |\n| epsilon \\| zeta | 22 |\n"
    "| eta | 333 | theta iota kappa lambda mu nu xi omicron pi rho sigma tau | extra |\n\nAfter",
    "no table": "| alpha | beta |\ngamma\n|x| < 5\n| y |\n| z |\n",
    "wide letters": "日本語の文章は、単語の間に空白がありません。**太字**も「引用」もあります。👩‍👩‍👧 family 👍🏽 🇩🇪 e\u0301a\u0308 ❤️ नमस्ते 한국어 안녕\n"
    "- 中文列表项目在这里很长很长很长很长很长很长很长很长很长很长\n\n| 名前 | 年 |\n|---|---|\n| 太郎 | ３０ |\n",
    "log": "[INFO] 2024-01-01 10:00:00 start_job __init__ x\n[*] scanning [1, 2, 3] <b>*</b>\n    at foo.bar(Baz.java:12)\n\ttabbed  out\n"
    "a_b_c 2 * 3 * 4 f(**kwargs) + x**2 + y**2 *args, **kw\n$ ls *.txt *.md\n#include <x>\n1.5 is 3/2\n",
    "latex": "Let \\(a_1 * b_1\\) and $x^*_i + y^*_j$, so\n\\[\n\\sum_{i=1}^{n} a_{i} * \\hat{*} \\\\\n\\]\n$$ \\frac{a}{b} $$\n",
    "tags": '<think>alpha *beta*</think>\n<|im_end|><tool_call>{"a": [1]}</tool_call> [INST] x [/INST] [/b]\n<div class="a_b">\n',
    "line ends": "alpha\r\nbeta **gamma**\r\n```\r\ndelta\r\n```\r\nlone \r return\r",
    "open marks": "**alpha beta\n*gamma\n`delta\n[epsilon](zeta\n![eta\n~~theta\n\\\n__iota",
    "long": f"**{'bold words ' * 30}**\n`{'code ' * 60}`\n[{'text ' * 40}](url)\n```\n{'x' * (2 * PART + 5)}\n```\nhttps://example.org/{'y' * 250} z",
    "escapes": "\\*alpha\\* \\_beta\\_ C:\\new\\*x \\\\ \\[ \\# \\",
    "blanks": "\n\n  alpha\n\n\n   \nbeta   \n\n",
    "hostile": "\x1b[2J\x1b[31malpha\x1b]0;title\x07 \x9b1m `\x1b]52;c;YQ==\x07` [link](http://\x1b]8;;x\x1b\\) **\x1bP+q\x1b\\**\n"
    "```sh\x1b[1m\n\x1b]8;;http://e\x07code\u202e\u2066\n```\n| \x1b[A | \x9d0;t\x9c |\n|--|--|\n| \x07\x08 | \u202ec\u2028 |\n"
    "> \x1b7\n- \x1bc\n# \x1b[9m\n\x1b",
}


def sent(pieces: Iterable[str], columns: int = 80) -> str:
    out: list[str] = []
    markdown = Markdown(out.append, lambda: columns)
    for piece in pieces:
        markdown.write(piece)
    markdown.finish()
    return "".join(out)


def settled(text: str) -> str:
    """What was sent, without the rows of tables that were erased again."""
    return PREVIEW.sub("", text)


@pytest.mark.parametrize("columns", (20, 80))
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_cut_anywhere_changes_nothing(text: str, columns: int) -> None:
    whole = settled(sent([text], columns))
    assert settled(sent(text, columns)) == whole
    for at in range(1, len(text), 1 if columns == 80 and len(text) < 600 else 17):
        assert settled(sent([text[:at], text[at:]], columns)) == whole, text[:at]


MARKUP = st.text(st.sampled_from("**__``~~[]()!#>||--:\\ \n\n\tab1é日\u0301👍\r\x1b{}.x"), max_size=120)


@settings(max_examples=300, deadline=None)
@given(MARKUP, st.data())
def test_any_markup_cut_anywhere(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    columns = data.draw(st.sampled_from((1, 7, 20, 80)))
    whole = settled(sent([text], columns))
    assert settled(sent([text[:at], text[at:]], columns)) == whole
    assert settled(sent(text, columns)) == whole
    assert not controls(whole)
    if "](" not in text:
        # A link whose text is its address is shown once.
        said, seen = (Counter(re.findall(r"[^\W_]", shown)) for shown in (text, plain(whole)))
        assert not said - seen


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("name", TEXTS.keys() - {"hostile"})
def test_every_letter_is_on_the_screen_once(name: str, columns: int) -> None:
    seen, said = (
        re.findall(r"[^\W_]", unicodedata.normalize("NFC", text))
        for text in (letters(rows(sent(TEXTS[name], columns), columns)), TEXTS[name])
    )
    if "|-" in TEXTS[name]:
        # The cells of a table stand beside each other, a head's words before each of its cells where it is narrow.
        assert set(seen) == set(said) and (columns < 40 or sorted(seen) == sorted(said))
    else:
        assert seen == said


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_control_sequence_that_is_not_ours(text: str, columns: int) -> None:
    assert not controls(sent(text, columns))


@pytest.mark.parametrize("columns", WIDTHS)
def test_words_are_never_broken_where_they_fit(columns: int) -> None:
    words = [f"word{number}" for number in range(200)]
    shown = rows(sent([f"- {' '.join(words)}"], columns), columns)
    assert [word for row in shown for word in row.removeprefix("-").split()] == words
    assert all(row.startswith("  ") for row in shown[1:] if row)


def test_wide_letters_fill_the_rows() -> None:
    shown = [row.replace(" ", "") for row in rows(sent(["漢" * 25], 20), 20) if row.strip()]
    assert shown == ["漢" * 10, "漢" * 10, "漢" * 5]
    assert not any(row.strip().startswith(("、", "。")) for row in rows(sent(["漢字、" * 30 + "。"], 20), 20))


def test_marks_stay_with_their_letters() -> None:
    for text in ("e\u0301" * 30, "日\u0301本" * 20, "👩‍👩‍👧" * 9, "👍🏽" * 12):
        pieces = plain(sent(text, 20)).split("\n")
        assert "".join(pieces) == text
        assert not any(re.match("[\u0301\u200d\U0001f3fd]", piece) for piece in pieces)


def test_words_appear_while_the_line_comes() -> None:
    out: list[str] = []
    markdown = Markdown(out.append, lambda: 80)
    markdown.write("The quick brown")
    assert "".join(out) == "The quick"
    markdown.write(" fox **jumps ")
    assert "".join(out) == "The quick brown fox"
    markdown.write("over** the")
    assert plain("".join(out)) == "The quick brown fox jumps over"
    markdown.write("日本")
    assert plain("".join(out)).endswith("over the日")


def test_a_row_of_a_coming_table_is_erased_and_nothing_else() -> None:
    out = sent("Words before\n| a | b |\n|---|---|\n| c | d |\n\nafter", 80)
    for erased in re.finditer(r"([^\n]*)\r\x1b\[2K", out):
        assert "before" not in erased.group(1) and "after" not in erased.group(1)
    shown = [row.split() for row in rows(out, 80) if row]
    assert shown[:2] == [["Words", "before"], ["a", "b"]] and shown[3:] == [["c", "d"], ["after"]]


def test_narrow_tables_become_records() -> None:
    shown = [row for row in rows(sent([TEXTS["table"]], 20), 20) if row]
    assert "Alpha: a|b" in shown and "Beta: 22" in shown and ": extra" in shown


@pytest.mark.parametrize(("before", "after"), [(30, 100), (100, 30), (80, 20)])
def test_a_resize_repeats_and_loses_nothing(before: int, after: int) -> None:
    text = " ".join(f"w{number}x" for number in range(120)) + "\n- " + " ".join(f"v{number}x" for number in range(60))
    width, out = [before], []
    markdown = Markdown(out.append, lambda: width[0])
    for at, letter in enumerate(text):
        width[0] = before if at < len(text) // 3 else after
        markdown.write(letter)
    markdown.finish()
    shown = plain("".join(out))
    assert "\r" not in shown and shown.split() == text.split()
    assert all(len(line) <= after for line in shown.split("\n")[-8:])


def given_and_written(given: str, written: str, shown: str | None = None) -> str:
    out: list[str] = []
    markdown = Markdown(out.append, lambda: 80)
    markdown.begin(given, shown)
    markdown.write(written)
    markdown.finish()
    return "".join(out)


@pytest.mark.parametrize(
    ("given_text", "written", "screen"),
    [
        ("The next number is", " 4.", "The next number is 4."),
        ("The nex", "t", "The next"),
        ("**Ans", "wer:** 42", "**Answer:** 42"),
        ("- one\n- t", "wo\n- *three*", "- one\n- two\n- three"),
        ("```json\n{", '"a": 1}\n```\n*b*', '```json\n{"a": 1}\n' + "─" * 40 + "\nb"),
        ("```", "python\nx = 1\n", "```python\nx = 1"),
        ("Sure:\n\n", "| a |\n|---|\n| b |", "Sure:\n\na\n─\nb"),
        ("a\x1b[2J", "\x1b[1mb", "a␛[2J␛[1mb"),
        ("x\r", "\ny", "x\ny"),
    ],
)
def test_what_is_given_is_drawn_as_it_is_and_goes_on(given_text: str, written: str, screen: str) -> None:
    out = given_and_written(given_text, written)
    assert rows(out, 80)[: screen.count("\n") + 1] == screen.split("\n")
    assert out.startswith("\x1b[1;36m") and not controls(out)


def test_only_the_last_line_of_what_is_given_is_shown_and_the_rest_is_known() -> None:
    out = given_and_written("```python\nx = '''\na", "*b*\n'''\n```\n*c*", "a")
    assert plain(out).split("\n")[:2] == ["a*b*", "'''"] and "\x1b[3mc" in out
    assert "\x1b[32m*b*" in out


def test_an_answer_without_text_stays_without_output() -> None:
    assert sent([]) == sent([""]) == ""
    assert given_and_written("", "") == ""


def test_more_may_come_after_the_end() -> None:
    out: list[str] = []
    markdown = Markdown(out.append, lambda: 80)
    for text in ("```\na", "b\n```\nc"):
        markdown.write(text)
        markdown.finish()
        markdown.finish()
    assert plain("".join(out)).split("\n")[1:3] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**b** *i* __b__ _i_ ~~s~~ `c`", "b i __b__ i s c"),
        ("__two words__", "two words"),
        ("这是**重要**的", "这是重要的"),
        ("**token**s and (**x**)", "tokens and (x)"),
        ("**a *b* c** *d **e** f* ***g***", "a b c d e f g"),
        ("``a ` b`` `` ` ``", "a ` b `"),
        ("**a `**` b**", "a ** b"),
        ("[a](b) [a](a) [a] (b) [a][b] [x](y z)", "a (b) a [a] (b) [a][b] [x](y z)"),
        ("[a](<b c>) [`f`](g_(h))", "[a](<b c>) f (g_(h))"),
        ("5*3*2 a * b * c ** d", "5*3*2 a * b * c ** d"),
        ("/usr/_x_/__pycache__/ **.py *.c", "/usr/_x_/__pycache__/ **.py *.c"),
    ],
)
def test_markup_within_a_line(text: str, shown: str) -> None:
    assert plain(sent([text])) == f"{shown}\n"


def test_rich_and_pygments_come_when_they_are_needed() -> None:
    program = (
        "import sys\n"
        "from strata_cli.output.terminal.markdown import Markdown\n"
        "markdown = Markdown(lambda text: None, lambda: 80)\n"
        "markdown.write('# Title\\n\\n- **a** `b`\\n\\n```\\nc\\n```\\n')\n"
        "assert not {'rich', 'pygments', 'markdown_it'} & set(sys.modules)\n"
        "markdown.write('| a |\\n|---|\\n| b |\\n\\n')\n"
        "assert 'rich.table' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
