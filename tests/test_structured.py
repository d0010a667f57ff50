"""Answers that are documents, from the command line to the result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests import tiny
from tests.shell import Done, strata

# Nothing in it has an open length, so that a model with random weights comes to its end.
BADGE = {
    "type": "object",
    "properties": {
        "number": {"type": "integer", "minimum": 10, "maximum": 99},
        "tags": {"type": "array", "items": {"enum": ["is", "é"]}, "minItems": 1, "maxItems": 2},
        "sure": {"type": "boolean"},
    },
    "required": ["number", "tags", "sure"],
    "additionalProperties": False,
    "x-guidance": {"whitespace_pattern": " ?"},
}
SCHEMA = json.dumps(BADGE)


@pytest.fixture
def model(tiny_model: Path) -> str:
    return str(tiny_model)


def chat(model: str, *args: str, stdin: str | None = None, terminal: bool = False) -> Done:
    return strata("chat", "-t", "1", "-m", model, "--seed", "5", *args, stdin=stdin, terminal=terminal)


def asked(model: str, *args: str, **fields: Any) -> Done:
    request = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 120, **fields}
    return chat(model, "--format", "json", *args, stdin=json.dumps(request))


def content(done: Done) -> str:
    return done.json["choices"][0]["message"]["content"]


class TestConstrained:
    def test_the_answer_is_a_document(self, model: str) -> None:
        done = chat(model, "--schema", SCHEMA, "Hi")
        assert done.status == 0, done.err
        jsonschema.validate(json.loads(done.out), BADGE)

    @pytest.mark.parametrize("prefix", ["{", '{"num', '{"number": 4', '{"number":42,"tags":["é","i', " \n{"])
    def test_a_prefix_is_the_documents_beginning(self, model: str, prefix: str) -> None:
        done = chat(model, "--schema", SCHEMA, "--prefix", prefix, "Hi")
        assert done.status == 0, done.err
        jsonschema.validate(json.loads(prefix + done.text), BADGE)

    @pytest.mark.parametrize("prefix", ["Sure: ", "```json\n", "   "])
    def test_a_prefix_may_be_prose(self, model: str, prefix: str) -> None:
        done = chat(model, "--schema", SCHEMA, "--prefix", prefix, "Hi")
        assert done.status == 0, done.err
        jsonschema.validate(json.loads(done.out), BADGE)

    def test_a_complete_prefix_needs_nothing_more(self, model: str) -> None:
        done = asked(model, "--schema", SCHEMA, assistant_prefix='{"number": 10, "tags": ["is"], "sure": true}\n')
        assert content(done) == ""

    def test_a_prefix_that_breaks_the_schema_is_refused(self, model: str) -> None:
        done = chat(model, "--schema", SCHEMA, "--prefix", '{"number": 4x', "Hi")
        assert (done.status, done.out) == (2, b"")
        assert "character 13, 'x', where '0' to '9' can stand" in done.err

    def test_a_prefix_that_is_no_text_is_refused(self, model: str) -> None:
        done = asked(model, "--schema", SCHEMA, assistant_prefix='{"\ud800')
        assert (done.status, done.json["error"]["code"]) == (2, "invalid_text")

    def test_a_continued_answer_is_the_documents_beginning(self, model: str) -> None:
        talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": '{"number": 3'}]
        done = asked(model, "--schema", SCHEMA, messages=talk, continue_final_message=True, assistant_prefix='1, "tags')
        jsonschema.validate(json.loads('{"number": 31, "tags' + content(done)), BADGE)

    def test_a_request_asks_in_its_own_words(self, model: str) -> None:
        done = asked(model, response_format={"type": "json_schema", "json_schema": {"name": "b", "schema": BADGE}})
        jsonschema.validate(json.loads(content(done)), BADGE)

    def test_the_command_line_goes_before_the_request(self, model: str) -> None:
        done = asked(model, "--schema", SCHEMA, response_format={"type": "json_object"})
        jsonschema.validate(json.loads(content(done)), BADGE)
        assert "--schema replaces the request's response_format" in done.json["strata"]["notes"]

    def test_several_answers_are_documents_each(self, model: str) -> None:
        choices = asked(model, "--schema", SCHEMA, n=3).json["choices"]
        assert len({choice["message"]["content"] for choice in choices}) > 1
        for choice in choices:
            jsonschema.validate(json.loads(choice["message"]["content"]), BADGE)

    def test_a_stream_is_a_document_too(self, model: str) -> None:
        stdin = json.dumps({"messages": [{"role": "user", "content": "Hi"}]})
        lines = chat(model, "--schema", SCHEMA, "--format", "jsonl", stdin=stdin).lines
        pieces = [choice["delta"].get("content") or "" for line in lines for choice in line.get("choices", [])]
        jsonschema.validate(json.loads("".join(pieces)), BADGE)

    def test_a_document_is_not_taken_for_a_call(self, model: str) -> None:
        call = {"properties": {"name": {"const": "f"}, "arguments": {"const": {}}}, "required": ["name", "arguments"]}
        schema = {"type": "object", "additionalProperties": False, **call, "x-guidance": BADGE["x-guidance"]}
        tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
        done = asked(model, "--schema", json.dumps(schema), tools=[tool])
        assert json.loads(content(done)) == {"name": "f", "arguments": {}}
        assert any("no tool can be called" in note for note in done.json["strata"]["notes"])

    def test_warnings_are_notes(self, model: str) -> None:
        schema = '{"oneOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}]}'
        done = asked(model, "--schema", schema, assistant_prefix='"a')
        assert content(done) == '"'
        assert any("oneOf" in note for note in done.json["strata"]["notes"]) and not done.err

    def test_markdown_is_not_drawn(self, model: str) -> None:
        grammar = {"const": "*a*"}
        done = chat(model, "--schema", json.dumps(grammar), "Hi", terminal=True)
        assert done.text.strip() == '"*a*"'


class TestReasoning:
    def test_reasoning_is_free(self, tmp_path: Path) -> None:
        template = tiny.CHATML.replace("assistant\n{% endif", "assistant\n<think>\n{% endif")
        model = str(tiny.write(tmp_path / "thinks.gguf", template))
        done = asked(model, "--schema", SCHEMA, max_tokens=30)
        # A model without sense does not come to the end of its thoughts.
        assert done.status == 4 and done.json["error"]["text"] == ""
        done = asked(model, "--schema", SCHEMA, response_prefix="Well.\n</think>\n\n")
        jsonschema.validate(json.loads(content(done)), BADGE)


class TestFailures:
    def test_a_cut_answer_is_an_error_with_its_text(self, model: str) -> None:
        done = asked(model, "--schema", SCHEMA, assistant_prefix='{"number": 4', max_tokens=2)
        error = done.json["error"]
        assert (done.status, error["code"]) == (4, "structured_output_failed")
        assert error["text"].startswith('{"number": 4') and "was cut" in error["message"]

    def test_text_has_been_shown_when_it_fails(self, model: str) -> None:
        done = chat(model, "--schema", SCHEMA, "-n", "2", "Hi")
        assert done.status == 4 and done.text.startswith("{")
        assert done.err.startswith("strata: the document was cut before it was complete")

    @pytest.mark.parametrize("args", [("-n", "0"), ("--stop", ",")])
    def test_a_document_may_not_end_before_its_end(self, model: str, args: tuple[str, ...]) -> None:
        assert chat(model, "--schema", SCHEMA, *args, "Hi").status == 4

    def test_free_text_is_only_checked(self, model: str) -> None:
        done = asked(model, "--schema", SCHEMA, "--schema-mode", "validate", max_tokens=5)
        assert (done.status, done.json["error"]["code"]) == (4, "structured_output_failed")
        assert done.json["error"]["path"] == "$"

    def test_a_failed_line_does_not_end_the_others(self, model: str) -> None:
        request = {"messages": [{"role": "user", "content": "Hi"}], "response_format": {"type": "json_object"}}
        lines = [
            request | {"max_tokens": 1},
            request | {"assistant_prefix": "{}"},
            request | {"assistant_prefix": "{,"},
        ]
        done = chat(model, "--format", "json", "--input", "jsonl", stdin="\n".join(map(json.dumps, lines)))
        assert [line.get("error", {}).get("code") for line in done.lines] == [
            "structured_output_failed", None, "invalid_request",
        ]  # fmt: skip
        assert done.status == 4

    @pytest.mark.parametrize(
        ("args", "words"),
        [
            (["--schema", "{"], "--schema"),
            (["--schema", "[]"], "[]"),
            (["--schema", '{"type": "strin"}'], "$.type"),
            (["--schema", '{"not": {}}'], '"not"'),
            (["--schema", "false"], "the schema allows nothing"),
            (["--schema", "{}", "--grammar", "x"], "exclude each other"),
            (["--schema-mode", "force"], "force"),
        ],
    )
    def test_what_is_wrong_is_said_before_anything_is_written(self, model: str, args: list[str], words: str) -> None:
        done = chat(model, *args, "Hi")
        assert done.status == 2 and not done.out
        assert words in done.err

    def test_true_and_false_are_schemas(self, model: str) -> None:
        assert chat(model, "--schema", "true", "--prefix", '{"a": 1}', "Hi").status == 0
        done = chat(model, "--schema", "false", "--schema-mode", "validate", "-n", "3", "Hi")
        assert done.status == 4 and done.out

    def test_a_talk_is_no_document(self, model: str) -> None:
        done = chat(model, "--schema", "{}", "--format", "text", terminal=True)
        assert done.status == 2


class TestGrammars:
    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("a.gbnf", 'root ::= ("is" | "he") [0-9]\n'),
            ("a.lark", 'start: ("is" | "he") /[0-9]/\n'),
            ("a.txt", "(is|he)[0-9]\n"),
        ],
    )
    def test_each_notation(self, model: str, tmp_path: Path, name: str, text: str) -> None:
        file = tmp_path / name
        file.write_text(text)
        answer = chat(model, "--grammar", str(file), "Hi").text.strip()
        assert len(answer) == 3 and answer[:2] in ("is", "he") and answer[2].isdigit()
        assert chat(model, "--grammar", str(file), "--prefix", "h", "Hi").text.strip()[0] == "e"
        assert chat(model, "--grammar", str(file), "--schema-mode", "validate", "-n", "4", "Hi").status == 4


class TestRender:
    def test_the_instruction_is_part_of_the_prompt(self, model: str) -> None:
        shown = strata("render", "-m", model, "-s", "Be terse.", "--schema", '{"type": "null"}', "Hi").text
        assert "<|im_start|>system\nBe terse.\n\nAnswer with one JSON document" in shown
        assert '{"type": "null"}<|im_end|>' in shown

    def test_it_can_be_left_out(self, model: str) -> None:
        plain = strata("render", "-m", model, "Hi").text
        assert strata("render", "-m", model, "--schema", "{}", "--no-schema-instruction", "Hi").text == plain

    def test_a_session_keeps_what_was_said_only(self, model: str, tmp_path: Path) -> None:
        file = tmp_path / "talk.json"
        assert chat(model, "--schema", SCHEMA, "--session", str(file), "Hi").status == 0
        assert [message["role"] for message in json.loads(file.read_text())] == ["user", "assistant"]


PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "city": {"type": "string"}},
    "required": ["name", "age", "city"],
    "additionalProperties": False,
}


@pytest.mark.model
class TestDemoModel:
    @pytest.mark.parametrize("prefix", ["", '{"name": "Ja', "Here it is:\n\n```json\n"])
    def test_a_person(self, demo_model: Path, prefix: str) -> None:
        schema = json.dumps(PERSON)
        args = ["--schema", schema, "--prefix", prefix, "--temp", "0", "-n", "150", "-c", "1024"]
        done = chat(str(demo_model), *args, "Describe a person.")
        assert done.status == 0, done.err
        jsonschema.validate(json.loads((prefix if prefix.startswith("{") else "") + done.text), PERSON)
