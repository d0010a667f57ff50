"""What standard input, files and words make of a request."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path

import pytest

from tests.shell import Done, process, strata

TEMPLATE = (
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
HI = {"role": "user", "content": "Hi"}


@pytest.fixture
def template(tmp_path: Path) -> Path:
    file = tmp_path / "template.jinja"
    file.write_text(TEMPLATE)
    return file


@pytest.fixture
def render(template: Path):
    """`strata render` with a template and no model: the prompt shows what the request was."""

    def run(*args: str, stdin: bytes | str | None = None) -> Done:
        return strata("render", "-q", "--template", str(template), *args, stdin=stdin)

    return run


def test_words_are_joined_with_spaces(render) -> None:
    assert render("a", "b  c", "- item one").text == "[user]a b  c - item one[assistant]"


TEXTS = {
    "plain": (b"text", "text"),
    "newline kept": (b"text\n", "text\n"),
    "crlf kept": (b"a\r\nb\r\n", "a\r\nb\r\n"),
    "bom": (b"\xef\xbb\xbftext", "text"),
    "utf-16-le": (b"\xff\xfe" + "Ça\r\n".encode("utf-16-le"), "Ça\r\n"),
    "utf-16-be": (b"\xfe\xff" + "🙂".encode("utf-16-be"), "🙂"),
    "json that is no conversation": (b'{"a": 1}', '{"a": 1}'),
    "a list that is no conversation": (b"[1, 2]", "[1, 2]"),
    "broken json": (b'{"messages": [', '{"messages": ['),
    "only space": (b"  \n", "  \n"),
}


BROKEN = b'{"messages": [{"role": "user", "content": "Hi"},]}'


def test_a_conversation_that_is_no_json_is_text_and_is_said_to_be(template: Path) -> None:
    done = strata("render", "--template", str(template), stdin=BROKEN)
    assert done.out == b"[user]" + BROKEN + b"[assistant]"
    assert done.err.startswith("note: standard input begins like a conversation, but it is not valid JSON")
    assert "at column 49" in done.err
    assert "note" not in strata("render", "--template", str(template), stdin=b'{"a": 1,}').err


def test_what_is_to_be_continued_cannot_be_text(render) -> None:
    done = render("--continue", stdin=BROKEN)
    assert done.status == 2 and "standard input is not valid JSON" in done.err and "column 49" in done.err


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n", b"\r\n"])
def test_a_files_text_a_blank_line_the_prompt(render, tmp_path: Path, end: bytes) -> None:
    (tmp_path / "file").write_bytes(b"a" + end)
    given = b"a" + end + {b"": b"\n\n", b"\n\n": b""}.get(end, b"\n")
    assert render("-f", str(tmp_path / "file"), "Hi").out == b"[user]" + given + b"Hi[assistant]"


@pytest.mark.parametrize(("data", "text"), TEXTS.values(), ids=TEXTS)
def test_text_is_the_users_message(render, data: bytes, text: str) -> None:
    assert render(stdin=data).out == f"[user]{text}[assistant]".encode()


def test_a_prompt_follows_the_text(render) -> None:
    assert render("what?", stdin="text").text == "[user]text\n\nwhat?[assistant]"
    assert render("what?", stdin="text\n").text == "[user]text\n\nwhat?[assistant]"
    assert render("what?", stdin="text\n\n").text == "[user]text\n\nwhat?[assistant]"
    assert render("what?", stdin="").text == "[user]what?[assistant]"
    assert (
        render("what?", stdin=json.dumps([HI])).text == '[user][{"role": "user", "content": "Hi"}]\n\nwhat?[assistant]'
    )


@pytest.mark.parametrize("value", [{"messages": [HI]}, [HI]], ids=["object", "list"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "bom"])
def test_a_conversation_is_recognised(render, value: object, mark: bytes) -> None:
    assert render(stdin=mark + json.dumps(value, indent=2).encode()).text == "[user]Hi[assistant]"


def test_input_forces_a_kind(render) -> None:
    piped = json.dumps([HI])
    assert render("--input", "text", stdin=piped).text == f"[user]{piped}[assistant]"
    assert render("--input", "json", "More", stdin=piped).text == "[user]Hi[user]More[assistant]"
    assert render("--input", "none", "More", stdin=piped).text == "[user]More[assistant]"
    assert render("--input", "json", stdin="text").status == 2
    assert render("--input", "none", stdin=piped).status == 2


def test_json_lines_are_recognised_and_answered_in_order(render) -> None:
    lines = [json.dumps({"messages": [{"role": "user", "content": str(n)}]}) for n in range(5)]
    lines[2] = '{"messages": "none"}'
    done = render(stdin="\n".join(lines) + "\n")
    assert done.status == 2
    assert [line.get("prompt", "error") for line in done.lines] == [
        "[user]0[assistant]", "[user]1[assistant]", "error", "[user]3[assistant]", "[user]4[assistant]",
    ]  # fmt: skip


def test_files(render, tmp_path: Path) -> None:
    prompt, messages, output = tmp_path / "prompt", tmp_path / "messages.json", tmp_path / "output"
    prompt.write_bytes(b"from a file\r\n")
    messages.write_text(json.dumps({"messages": [HI]}))
    assert render("-f", str(prompt)).text == "[user]from a file\r\n[assistant]"
    assert render("--messages", str(messages)).text == "[user]Hi[assistant]"
    assert render("--messages", str(messages), "More").text == "[user]Hi[user]More[assistant]"
    done = render("--messages", str(messages), "-o", str(output))
    assert (done.out, output.read_text()) == (b"", "[user]Hi[assistant]")


def test_the_system_message_goes_first(render) -> None:
    assert render("-s", "Be terse.", "Hi").text == "[system]Be terse.[user]Hi[assistant]"


INVALID = {
    "latin-1": (b"caf\xe9 au lait", 3),
    "cut": (b"caf\xc3", 3),
    "after a bom": (b"\xef\xbb\xbfab\xff", 5),
    "utf-16 cut": (b"\xff\xfea\x00b", 4),
    "late": (b"a" * 100_000 + b"\xff", 100_000),
}


@pytest.mark.parametrize(("data", "offset"), INVALID.values(), ids=INVALID)
def test_what_is_not_text_is_refused_with_its_offset(render, data: bytes, offset: int) -> None:
    done = render(stdin=data)
    assert (done.status, done.out) == (2, b"")
    assert f"offset {offset}" in done.err


def test_invalid_bytes_in_a_line_are_an_error_line(render) -> None:
    good = json.dumps({"messages": [HI]}).encode()
    done = render("--input", "jsonl", stdin=good + b"\n" + b'{"messages": "\xff"}\n' + good)
    assert [line.get("error", {}).get("code") for line in done.lines] == [None, "invalid_text", None]


def test_fifty_megabytes(render) -> None:
    data = b"0123456789abcde\n" * (50 * 2**20 // 16)
    done = render(stdin=data)
    assert done.status == 0
    assert done.out == b"[user]" + data + b"[assistant]"


def test_lines_are_answered_as_they_come(template: Path) -> None:
    child = process(
        "render", "--template", str(template), "--input", "jsonl", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdin is not None and child.stdout is not None
    killer = threading.Timer(60, child.kill)
    killer.start()
    for n in range(3):
        child.stdin.write(json.dumps([{"role": "user", "content": str(n)}]).encode() + b"\n")
        child.stdin.flush()
        assert json.loads(child.stdout.readline())["prompt"] == f"[user]{n}[assistant]"
    child.stdin.close()
    assert child.stdout.read() == b""
    child.stdout.close()
    assert child.wait() == 0
    killer.cancel()


def test_bos_and_eos_stand_for_a_model(render, tmp_path: Path) -> None:
    file = tmp_path / "special.jinja"
    file.write_text("{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}")
    done = strata("render", "--template", str(file), "--bos", "<s>", "--eos", "</s>", "Hi")
    assert done.text == "<s>Hi</s>"


def test_render_json_has_no_tokens_without_a_model(render, tiny_model: Path) -> None:
    assert "tokens" not in render("--format", "json", "Hi").json
    value = strata("render", "-m", str(tiny_model), "--format", "json", "--prefix", "Sure", "Hi").json
    assert value["prefill"]["start_position"] == len(value["tokens"])
    assert [span["kind"] for span in value["spans"]] == ["message", "prefix"]


def test_complete_goes_on_with_raw_text(tiny_model: Path) -> None:
    command = ["complete", "-t", "1", "-m", str(tiny_model), "-n", "4", "--temp", "0"]
    plain = strata(*command, "Once upon")
    assert plain.status == 0
    assert strata(*command, "--echo", "Once upon").out == b"Once upon" + plain.out
    assert strata(*command, stdin="Once upon").out == plain.out
    assert strata(*command).status == 2
    reply = strata(*command, "--format", "json", "Once upon").json
    assert reply["choices"][0]["finish_reason"] == "length"


# Tools

SHAPE = {"type": "object", "properties": {"city": {"type": "string"}}}
OPENAI_TOOL = {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": SHAPE}}
ANTHROPIC_TOOL = {"name": "look", "description": "Looks.", "input_schema": SHAPE}


@pytest.fixture
def with_tools(tmp_path: Path):
    """`strata render` with a template that shows the tools, and a file of them."""
    (tmp_path / "tools.jinja").write_text("{{ tools | tojson }}" + TEMPLATE)

    def run(value: object, stdin: str | None = None) -> Done:
        (tmp_path / "tools.json").write_text(json.dumps(value))
        options = ("--template", str(tmp_path / "tools.jinja"), "--tools", str(tmp_path / "tools.json"))
        return strata("render", *options, *(("Hi",) if stdin is None else ()), stdin=stdin)

    return run


@pytest.mark.parametrize("value", [[OPENAI_TOOL], OPENAI_TOOL, [ANTHROPIC_TOOL], ANTHROPIC_TOOL], ids=str)
def test_tools_of_a_file_in_either_form(with_tools, value: object) -> None:
    done = with_tools(value)
    assert done.status == 0, done.err
    assert json.JSONDecoder().raw_decode(done.text)[0] == [OPENAI_TOOL]


def test_tools_of_a_file_replace_the_requests(with_tools) -> None:
    done = with_tools(
        [OPENAI_TOOL], json.dumps({"messages": [HI], "tools": [{**OPENAI_TOOL, "function": {"name": "x"}}]})
    )
    assert json.JSONDecoder().raw_decode(done.text)[0] == [OPENAI_TOOL]
    assert "--tools replaces the request's tools" in done.err


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([{"name": "look"}], "tools[0].function must be an object"),
        ([{"name": "look", "input_schema": 3}], "tools[0].input_schema must be an object"),
        (["look"], "tools[0] must be an object"),
    ],
)
def test_what_is_no_tool_is_refused(with_tools, value: object, words: str) -> None:
    done = with_tools(value)
    assert (done.status, done.out) == (2, b"")
    assert words in done.err
