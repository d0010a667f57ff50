"""Documents by schema: what asks for them, what the model is told, where they begin, how they turn out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from strata_cli.conversation.messages import Message, TextPart, Tool
from strata_cli.conversation.openai.response_format import response_format
from strata_cli.conversation.request import Request
from strata_cli.conversation.structure import ANY_OBJECT, GrammarText, Schema, Structure, notation_of
from strata_cli.engine import Aside, Constraint, Grammar
from strata_cli.engine.llama.constraint import LlamaConstraint
from strata_cli.errors import INVALID_REQUEST, NOT_IN_THIS_BUILD, STRUCTURED_OUTPUT_FAILED, Kind, StrataError
from strata_cli.generation.structured.instruction import instructed
from strata_cli.generation.structured.task import Task
from strata_cli.generation.structured.validation import Invalid, Validator
from strata_cli.prompt.tags import FAMILIES
from strata_cli.prompt.turn import Opening, Prompt, Span

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
THINK = FAMILIES[0]
ASKED = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"


class Bytes:
    """An engine as far as texts go."""

    def constraint(self, grammar: Grammar) -> Constraint:
        return LlamaConstraint(grammar, lambda: pytest.fail("no vocabulary is needed"))


def prompt(said: str = "", opening: Opening | None = None, header: str = ASKED, kind: Any = None) -> Prompt:
    spans = [Span(17, 19, "message")]
    if said:
        spans.append(Span(len(header), len(header) + len(said), "prefix"))
    kind = kind or ("prefix" if said else "generation")
    return Prompt(header + said, len(header), kind, opening or Opening("content", None), tuple(spans), ())


def task(value: Any = PERSON, said: str = "", *, constrained: bool = True, **more: Any) -> Task:
    document = value if isinstance(value, GrammarText) else Schema(value)
    return Task(Structure(document, constrained=constrained), prompt(said, **more), Bytes())


def refused(call: Any, kind: Kind = INVALID_REQUEST) -> StrataError:
    with pytest.raises(StrataError) as caught:
        call()
    assert caught.value.kind is kind
    return caught.value


class TestRequests:
    @pytest.mark.parametrize(
        ("value", "document"),
        [
            ({"type": "json_object"}, ANY_OBJECT),
            ({"type": "json_object", "schema": PERSON}, Schema(PERSON)),
            ({"type": "json_schema", "json_schema": {"name": "p", "schema": PERSON}}, Schema(PERSON)),
            (
                {"type": "json_schema", "json_schema": {"name": "p", "description": "d", "schema": PERSON}},
                Schema(PERSON, "d"),
            ),
        ],
    )
    def test_response_format(self, value: Any, document: Schema) -> None:
        assert response_format({"response_format": value}) == Structure(document)

    def test_text_asks_for_nothing(self) -> None:
        assert response_format({"response_format": {"type": "text"}}) is None
        assert response_format({}) is None

    @pytest.mark.parametrize(
        ("value", "param"),
        [
            ("json", "response_format"),
            ({"type": "xml"}, "response_format.type"),
            ({"type": "json_schema"}, "response_format.json_schema"),
            ({"type": "json_schema", "json_schema": {}}, "response_format.json_schema.schema"),
            ({"type": "json_object", "schema": 1}, "response_format.schema"),
        ],
    )
    def test_what_is_wrong_is_named(self, value: Any, param: str) -> None:
        assert refused(lambda: response_format({"response_format": value})).param == param

    @pytest.mark.parametrize(
        ("name", "text", "notation"),
        [
            ("x.gbnf", "", "gbnf"),
            ("x.lark", "root ::= a", "lark"),
            ("x.regex", "start: a", "regex"),
            ("x.txt", 'root ::= "a"\n', "gbnf"),
            ("x", '%ignore " "\nstart: "a"\n', "lark"),
            ("lark", "a+b", "regex"),
        ],
    )
    def test_the_notation_of_a_grammar(self, name: str, text: str, notation: str) -> None:
        assert notation_of(name, text) == notation


class TestInstruction:
    def test_it_ends_the_system_message(self) -> None:
        asked = (Message("system", "Be terse."), Message("developer", "Be kind."), Message("user", "Hi"))
        messages = instructed(Request(asked, structure=Structure(Schema({"type": "string"})))).messages
        assert [message.role for message in messages] == ["system", "developer", "user"]
        assert messages[0] == asked[0] and messages[2] == asked[2]
        assert messages[1].content == (
            "Be kind.\n\nAnswer with one JSON document that is valid by this schema, and nothing else:\n\n"
            '{"type": "string"}'
        )

    def test_it_is_the_system_message_where_there_is_none(self) -> None:
        messages = instructed(Request((Message("user", "Hi"),), structure=Structure(ANY_OBJECT))).messages
        assert messages == (Message("system", "Answer with one JSON object and nothing else."), Message("user", "Hi"))

    def test_it_joins_parts(self) -> None:
        asked = (Message("system", (TextPart("Be terse."),)),)
        (message,) = instructed(Request(asked, structure=Structure(ANY_OBJECT))).messages
        assert message.content == (
            TextPart("Be terse."),
            TextPart("\n\nAnswer with one JSON object and nothing else."),
        )

    def test_it_says_what_the_document_is_for(self) -> None:
        request = Request((Message("user", "Hi"),), structure=Structure(Schema(PERSON, "a guest")))
        assert str(instructed(request).messages[0].content).endswith("\n\nWhat the document is for: a guest")

    @pytest.mark.parametrize("structure", [None, Structure(ANY_OBJECT, instructed=False),
                                           Structure(GrammarText("regex", "a"))])  # fmt: skip
    def test_nothing_is_said(self, structure: Structure | None) -> None:
        request = Request((Message("user", "Hi"),), structure=structure)
        assert instructed(request) == request

    def test_tools_that_cannot_be_called_are_noted(self) -> None:
        request = Request((Message("user", "Hi"),), tools=(Tool({}),), structure=Structure(ANY_OBJECT))
        assert any("no tool can be called" in note for note in instructed(request).notes)


class TestValidation:
    @pytest.mark.parametrize(
        ("text", "path", "words"),
        [
            ("{", "$", "no JSON"),
            ('{"name": "x", "age": 1} x', "$", "Extra data at character 25"),
            ('{"name": "x", "age": "1"}', "$.age", "'1' is not of type 'integer'"),
            ('{"name": "x", "age": NaN}', "$", "NaN"),
            ('{"name": "x"}', "$", "'age' is a required property"),
            ("[" * 100_000, "$", "no JSON"),
            ('{"name": "x", "age": ' + "1" * 5000 + "}", "$", "no JSON"),
        ],
    )
    def test_where_a_document_is_wrong(self, text: str, path: str, words: str) -> None:
        with pytest.raises(Invalid) as caught:
            Validator(PERSON, "schema").check(text)
        assert caught.value.path == path and words in caught.value.reason

    def test_a_valid_document(self) -> None:
        Validator(PERSON, "schema").check(' {"age": 1, "name": "x"}\n')
        Validator(True, "schema").check("null")

    def test_formats_are_checked(self) -> None:
        with pytest.raises(Invalid):
            Validator({"format": "date"}, "schema").check('"2023-02-30"')

    @pytest.mark.parametrize(
        ("schema", "words"),
        [
            ({"type": "strin"}, "$.type"),
            ({"properties": {"a": {"minimum": "3"}}}, "$.properties.a.minimum"),
            ({"pattern": "("}, "$.pattern"),
        ],
    )
    def test_what_is_no_schema_is_refused_with_the_place(self, schema: Any, words: str) -> None:
        error = refused(lambda: Validator(schema, "response_format"))
        assert words in error.message and error.param == "response_format"

    @pytest.mark.parametrize(
        ("schema", "words"),
        [
            ({"$ref": "http://localhost:1/x"}, "refers to 'http://localhost:1/x', which it does not hold"),
            ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "refers to '#/$defs/none', which it does not hold"),
            ({"$ref": "#/$defs/x", "$defs": {"x": {"items": {"$ref": "#y"}}}}, "refers to '#y'"),
            ({"$dynamicRef": "#x"}, "refers to '#x', which it does not hold"),
            ({"$ref": "http://[::"}, "which it does not hold"),
            ({"$ref": "#/a/b", "a": [True]}, "which it does not hold"),
            ({"$schema": "http://json-schema.org/draft-04/schema#", "$ref": {}}, "refers to {}"),
            ({"$ref": "#/x", "x": 5}, "refers to '#/x', which is no schema: 5 is not of type"),
            ({"$ref": "#/x", "x": {"type": "strin"}}, "refers to '#/x', which is no schema: 'strin'"),
            ({"$ref": "#/x", "x": {"$ref": "#/y"}}, "refers to '#/y'"),
            ({"$ref": "#"}, "refers to itself without end"),
            ({"$ref": "#/x", "x": {"anyOf": [{"$ref": "#/y"}]}, "y": {"$ref": "#/x"}}, "refers to itself without end"),
        ],
    )
    def test_a_reference_that_cannot_be_followed_is_refused(self, schema: Any, words: str) -> None:
        assert words in refused(lambda: Validator(schema, "schema")).message

    @pytest.mark.parametrize(
        "schema",
        [
            {"properties": {"a": {"$ref": "#"}}},
            {"$ref": "#x", "$defs": {"a": {"$anchor": "x", "properties": {"a": {"$ref": "#x"}}}}},
            {"$id": "http://example.org/a", "$ref": "b", "$defs": {"x": {"$id": "b", "type": "object"}}},
            {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/x", "definitions": {"x": {}}},
            {"$ref": "https://json-schema.org/draft/2020-12/schema"},
            {"properties": {"$ref": {"type": "integer"}}, "enum": [{}, {"$ref": "#/none"}]},
        ],
    )
    def test_other_references_are_followed(self, schema: Any) -> None:
        Validator(schema, "schema").check("{}")


class TestWhereItBegins:
    @pytest.mark.parametrize("said", ["", " ", "Sure, here it is:\n\n", "```json\n", "Result: [1] ", "\n\n```\n{"[:5]])
    def test_prose_comes_before_the_document(self, said: str) -> None:
        task(said=said).check('{"name": "x", "age": 1}', cut=False)

    @pytest.mark.parametrize(
        "said", ["{", ' \n{"name": "x", ', '{"name": "x", "age": 1}', '{"name": "x", "age": 1}\n ']
    )
    def test_a_document_begins_in_the_prefix(self, said: str) -> None:
        task(said=said).check('{"name": "x", "age": 1}'[len(said.strip()) :], cut=False)

    def test_prefix_and_answer_are_validated_together(self) -> None:
        error = refused(lambda: task(said='{"name": ').check("3}", cut=False), STRUCTURED_OUTPUT_FAILED)
        assert error.details == {"text": '{"name": 3}', "path": error.details["path"]}

    @pytest.mark.parametrize(
        ("said", "words"),
        [
            ('{"nome": ', "character 4, 'o', where only 'ame\"' can stand"),
            ('  {"name": 3', "character 12, '3', where '\\t' to '\\n', '\\r', ' ' or '\"' can stand"),
            ('{"name": "", "age": 1} so', "character 24, 's', stands after its end"),
            ('{"name": "", "age": -a', "character 22, 'a', where '0' to '9' can stand"),
        ],
    )
    def test_a_prefix_that_breaks_off_is_refused(self, said: str, words: str) -> None:
        assert words in refused(lambda: task(said=said)).message

    def test_a_prefix_may_be_wrong_where_only_the_end_is_checked(self) -> None:
        task(said='{"age": 1,', constrained=False).check('"name": "x"}', cut=False)

    @pytest.mark.parametrize("value", [{"type": "integer"}, {"enum": ["yes", "no"]}, {"type": "array"}])
    def test_it_depends_on_the_schema_whether_a_character_begins_a_document(self, value: Any) -> None:
        text = {"integer": "12", "array": "[ ]"}.get(value.get("type"), '"yes"')
        task(value, said=text[0]).check(text[1:], cut=False)
        task(value, said="{").check(text, cut=False)

    def test_a_schema_that_can_only_be_checked(self) -> None:
        value = {"not": {"type": "string"}}
        assert '"not"' in refused(lambda: task(value), NOT_IN_THIS_BUILD).message
        task(value, said="[1", constrained=False).check("]", cut=False)
        refused(lambda: task(value, constrained=False).check('"x"', cut=False), STRUCTURED_OUTPUT_FAILED)

    def test_warnings_are_notes(self) -> None:
        value = {"oneOf": [{"type": "string"}, {"minLength": 3, "type": "string"}]}
        assert "oneOf" in task(value).notes[0]
        assert task(value, constrained=False).notes == ()


class TestReasoning:
    DOCUMENT = '{"name": "x", "age": 1}'

    def test_the_document_comes_after_reasoning_that_the_prompt_opened(self) -> None:
        header = ASKED + "<think>\n"
        made = task(header=header, opening=Opening("reasoning", THINK))
        assert made._place.aside == Aside("<think>", "</think>", begun=True)
        made.check("I {think}.\n</think>\n\n" + self.DOCUMENT, cut=False)
        refused(lambda: made.check(self.DOCUMENT, cut=False), STRUCTURED_OUTPUT_FAILED)

    def test_a_prefix_within_reasoning_is_free(self) -> None:
        opening = Opening("reasoning", THINK)
        made = task(said='{"x', header=ASKED + "<think>\n", opening=opening)
        made.check("</think>" + self.DOCUMENT, cut=False)
        made = task(said='so</think>{"name"', header=ASKED + "<think>\n", opening=opening)
        made.check(': "x", "age": 1}', cut=False)

    def test_a_model_may_reason_first(self) -> None:
        made = task(opening=Opening("content", THINK))
        assert made._place.aside == Aside("<think>", "</think>", begun=False)
        made.check("<think>\n{}</think>\n\n" + self.DOCUMENT, cut=False)
        made.check(self.DOCUMENT, cut=False)

    def test_after_a_closed_block_it_may_not(self) -> None:
        made = task(header=ASKED + "<think>\n\n</think>\n\n", opening=Opening("content", THINK))
        assert made._place.aside is None

    def test_nor_in_a_prefix(self) -> None:
        assert task(said="Sure: ", opening=Opening("content", THINK))._place.aside is None
        assert task(opening=Opening("content", THINK), kind="continuation")._place.aside is None


class TestCut:
    @pytest.mark.parametrize("text", ['{"name": "x', '{"name": "x", "age": 1'])
    def test_an_unfinished_document_was_cut(self, text: str) -> None:
        error = refused(lambda: task().check(text, cut=True), STRUCTURED_OUTPUT_FAILED)
        assert "was cut" in error.message and error.details["text"] == text

    def test_a_document_that_is_complete_was_not(self) -> None:
        task().check('{"name": "x", "age": 1}', cut=True)
        task({"type": "boolean"}).check("true", cut=True)
        task({"const": 12}).check("12", cut=True)
        task(GrammarText("regex", "ab")).check("ab", cut=True)

    def test_a_number_or_a_text_that_may_go_on_was(self) -> None:
        for constrained in (True, False):
            made = task({"type": "integer"}, constrained=constrained)
            refused(lambda made=made: made.check("12", cut=True), STRUCTURED_OUTPUT_FAILED)
        refused(lambda: task(GrammarText("regex", "ab+")).check("ab", cut=True), STRUCTURED_OUTPUT_FAILED)

    @pytest.mark.parametrize(
        ("text", "words"), [("a", "too early"), ("abx", "character 3, 'x', where 'b' can stand"), ("ab ", "")]
    )
    def test_a_grammar_is_checked_too(self, text: str, words: str) -> None:
        made = task(GrammarText("regex", "ab+"), constrained=False)
        if not words:
            made.check(text, cut=False)
        else:
            assert words in refused(lambda: made.check(text, cut=False), STRUCTURED_OUTPUT_FAILED).message


def test_a_schema_may_be_any_mapping() -> None:
    from types import MappingProxyType

    made = task(MappingProxyType({"type": "array", "items": MappingProxyType({"type": "null"})}))
    made.check(json.dumps([None]), cut=False)
