"""Grammars over vocabularies: where a text breaks them, and that a model keeps to them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings

from strata_cli.engine import Aside, Grammar, ModelOptions, Sampling, Token
from strata_cli.engine.llama import LlamaEngine, open_model
from strata_cli.engine.llama.constraint import LlamaConstraint
from strata_cli.environment import Interrupt
from strata_cli.errors import INVALID_REQUEST, NOT_IN_THIS_BUILD, STRUCTURED_OUTPUT_FAILED, Kind, StrataError
from tests import tiny
from tests.schemas import Written, places, written

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
GREEDY = Sampling(temperature=0)
PROMPT = "<|im_start|>user\nthe next number<|im_end|>\n<|im_start|>assistant\n"


def schema(value: Any) -> Grammar:
    return Grammar("json_schema", json.dumps(value))


def unused() -> Any:
    raise AssertionError("no vocabulary is needed to look at a text")


def constraint(value: Any) -> LlamaConstraint:
    """A constraint that only looks at texts."""
    return LlamaConstraint(value if isinstance(value, Grammar) else schema(value), unused)


class TestTexts:
    def test_a_beginning_is_accepted_at_every_length(self) -> None:
        text = '{"name": "Zoë \\u00e9 \\ud83d\\ude00 \\n", "age": -12}'
        person = constraint(PERSON)
        assert [person.check(text[:end]) for end in range(len(text) + 1)] == [None] * (len(text) + 1)
        assert [end for end in range(len(text) + 1) if person.complete(text[:end])] == [len(text)]

    @pytest.mark.parametrize(
        ("text", "at", "allowed", "forced"),
        [
            ('{"nome', 3, b"a", b'ame"'),
            ("Sure", 0, b"{", b"{"),
            ('{"age"', 2, b"n", b'name"'),
            ('{"name": "é", "age": 4x', 22, b"\t\n\r ,0123456789}".replace(b",", b""), b""),
            ('{"name": "é", "age": é', 21, b"\t\n\r -0123456789", b""),
            ('{"name": "\\x', 11, b'"\\bfnrtu', b""),
        ],
    )
    def test_the_place_of_a_mistake(self, text: str, at: int, allowed: bytes, forced: bytes) -> None:
        breach = constraint(PERSON).check(text)
        assert breach is not None
        assert (breach.at, breach.allowed, breach.forced) == (at, allowed, forced)

    def test_nothing_follows_a_complete_document(self) -> None:
        breach = constraint(PERSON).check('{"name": "", "age": 0} and')
        assert breach is not None
        assert (breach.at, breach.allowed, breach.complete) == (22, b"", True)

    @settings(max_examples=25, deadline=None)
    @given(written())
    def test_every_beginning_of_a_valid_document_is_accepted(self, example: Written) -> None:
        every_beginning_is_accepted(example)

    @settings(max_examples=25, deadline=None)
    @given(written())
    def test_a_wrong_character_is_refused_where_it_stands(self, example: Written) -> None:
        every_wrong_character_is_refused(example)


def every_beginning_is_accepted(example: Written) -> None:
    checked = constraint(example.schema)
    for end in range(len(example.text) + 1):
        assert checked.check(example.text[:end]) is None, example.text[:end]
    assert checked.complete(example.text)


def every_wrong_character_is_refused(example: Written) -> None:
    checked = constraint(example.schema)
    for at, kind in enumerate(places(example.text)):
        # No JSON holds U+0001; @ and é stand in strings only; the keys are made of the letters from a to e.
        for wrong in {"other": "\x01@é", "string": "\x01", "key": "\x01zé"}[kind]:
            breach = checked.check(example.text[:at] + wrong)
            assert breach is not None and breach.at == at, (example.text[:at], wrong, breach)


class TestGrammars:
    @pytest.mark.parametrize(
        ("grammar", "whole", "broken"),
        [
            (Grammar("gbnf", 'root ::= "yes" | "no" [!]+'), "no!!", "nope"),
            (Grammar("lark", 'start: "yes" | "no" /!+/'), "no!!", "nope"),
            (Grammar("regex", "yes|no!+"), "no!!", "nope"),
        ],
    )
    def test_each_notation(self, grammar: Grammar, whole: str, broken: str) -> None:
        checked = constraint(grammar)
        assert checked.complete(whole)
        breach = checked.check(broken)
        assert breach is not None and breach.at == 2

    @pytest.mark.parametrize(
        ("grammar", "kind", "words"),
        [
            (schema({"properties": {"a": {"not": {"type": "string"}}}}), NOT_IN_THIS_BUILD, 'keyword "not"'),
            (schema({"type": "array", "uniqueItems": True}), NOT_IN_THIS_BUILD, 'keyword "uniqueItems"'),
            (schema({"type": "string", "format": "frob"}), NOT_IN_THIS_BUILD, "Unknown format: frob"),
            (schema({"type": "string", "pattern": "(?=a)b"}), NOT_IN_THIS_BUILD, "look-around"),
            (schema({"$ref": "http://example.org/x"}), NOT_IN_THIS_BUILD, "http://example.org/x"),
            (schema({"type": "string", "minLength": 2, "maxLength": 1}), INVALID_REQUEST, "allows nothing: minLength"),
            (Grammar("gbnf", "root ::= ("), INVALID_REQUEST, "GBNF grammar"),
            (Grammar("lark", "start: ("), INVALID_REQUEST, "Lark grammar"),
            (Grammar("regex", "(a"), INVALID_REQUEST, "regular expression"),
        ],
    )
    def test_what_cannot_be_done_is_refused_by_name(self, grammar: Grammar, kind: Kind, words: str) -> None:
        with pytest.raises(StrataError) as caught:
            constraint(grammar)
        assert caught.value.kind is kind
        assert words in caught.value.message and "\n" not in caught.value.message

    def test_what_is_not_kept_to_the_letter_is_noted(self) -> None:
        notes = constraint({"oneOf": [{"type": "string"}, {"type": "string", "minLength": 3}]}).notes
        assert len(notes) == 1 and "oneOf" in notes[0]
        assert constraint(PERSON).notes == ()


@pytest.fixture
def engine(tiny_engine: LlamaEngine) -> LlamaEngine:
    return tiny_engine


def generated(
    engine: LlamaEngine,
    grammar: Grammar,
    given: str = "",
    aside: Aside | None = None,
    *,
    sampling: Sampling = GREEDY,
    logprobs: int = 0,
    most: int = 300,
    prompt: str = PROMPT,
) -> list[Token]:
    """What a model writes within a grammar, after a given beginning."""
    bound, timeline = engine.constraint(grammar), engine.timeline()
    try:
        bound.start(given, aside)
        timeline.prefill(engine.tokenize(prompt + given))
        tokens: list[Token] = []
        for token in timeline.decode(sampling, logprobs=logprobs, constraint=bound):
            tokens.append(token)
            if len(tokens) == most:
                break
        return tokens
    finally:
        timeline.close()


def text_of(tokens: list[Token]) -> str:
    return b"".join(token.data for token in tokens).decode()


# What a model with random weights can write to the end: nothing in it has an open length.
SHORT = {
    "type": "object",
    "properties": {
        "the number": {"type": "integer", "minimum": 10, "maximum": 99},
        "tags": {"type": "array", "items": {"enum": ["is", "user", "é"]}, "minItems": 1, "maxItems": 3},
        "name": {"type": "string", "maxLength": 8, "pattern": "^[a-zé]*$"},
    },
    "required": ["the number", "tags", "name"],
    "additionalProperties": False,
    "x-guidance": {"whitespace_pattern": " ?"},
}


class TestWriting:
    @pytest.mark.parametrize("seed", range(8))
    @pytest.mark.parametrize("given", ["", '{"the', '{"the number":1', '{"the number":12,"tags":["é","is"],"name":"'])
    def test_a_model_without_sense_writes_a_valid_document(self, engine: LlamaEngine, given: str, seed: int) -> None:
        tokens = generated(engine, schema(SHORT), given, sampling=Sampling(temperature=1.5, seed=seed))
        jsonschema.validate(json.loads(given + text_of(tokens)), SHORT)
        assert tokens[-1].end and not any(token.control for token in tokens[:-1])

    def test_what_has_to_follow_is_not_sampled(self, engine: LlamaEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        api, sampled = engine._loaded.api, []
        sample = api.llama_sampler_sample
        monkeypatch.setattr(api, "llama_sampler_sample", lambda *args: sampled.append(1) or sample(*args))
        grammar = Grammar("lark", 'start: "the next number is " /[0-9]/ ", the next number is over"')
        tokens = generated(engine, grammar)
        assert tokens[-1].end and text_of(tokens).startswith("the next number is ")
        assert len(sampled) < len(tokens) / 3

    def test_a_forced_text_is_the_same_when_it_is_sampled(self, engine: LlamaEngine) -> None:
        grammar = schema(SHORT)
        forced, sampled = generated(engine, grammar), generated(engine, grammar, logprobs=2)
        assert [token.id for token in forced] == [token.id for token in sampled]
        assert all(token.logprob is not None and len(token.top) == 2 for token in sampled[:-1])

    def test_probabilities_are_the_models_own(self, engine: LlamaEngine) -> None:
        free = generated(engine, Grammar("regex", "(?s:.*)"), logprobs=3, most=1)[0]
        bound = generated(engine, Grammar("regex", "[\x01\x02]"), logprobs=3, most=1)[0]
        assert [choice.id for choice in free.top] == [choice.id for choice in bound.top]
        assert bound.id not in [choice.id for choice in free.top]

    def test_logits_are_left_as_they_were(self, engine: LlamaEngine) -> None:
        timeline, bound = engine.timeline(), engine.constraint(Grammar("regex", "\x01{9}"))
        prompt = engine.tokenize(PROMPT)
        timeline.prefill(prompt)
        expected = next(timeline.decode(GREEDY))
        bound.start()
        assert next(timeline.decode(GREEDY, logprobs=1, constraint=bound)).data == b"\x01"
        assert timeline.prefill(prompt).reused == len(prompt)
        assert next(timeline.decode(GREEDY)) == expected
        timeline.close()

    def test_any_token_that_ends_may_end_a_document(self, engine: LlamaEngine) -> None:
        assert generated(engine, Grammar("regex", "a?b?"), most=9)[-1].end

    def test_a_document_that_is_complete_already_ends_at_once(self, engine: LlamaEngine) -> None:
        assert [token.end for token in generated(engine, Grammar("regex", "the"), "the")] == [True]

    def test_the_context_is_a_limit(self, tiny_model: Path) -> None:
        engine = open_model(ModelOptions(str(tiny_model), threads=1, context=40), interrupt=Interrupt())
        tokens = generated(engine, Grammar("lark", 'start: "xyzzy "~20'), most=999)
        assert len(tokens) == 40 - len(engine.tokenize(PROMPT)) + 1
        engine.close()

    def test_a_token_that_the_grammar_refuses_is_an_error(self, engine: LlamaEngine) -> None:
        bound, timeline = engine.constraint(Grammar("regex", "[\x01\x02]")), engine.timeline()
        bound.start()
        timeline.prefill(engine.tokenize(PROMPT))
        bound.restrict = lambda logits: None  # type: ignore[method-assign]
        with pytest.raises(StrataError) as caught:
            next(timeline.decode(GREEDY, constraint=bound))
        assert caught.value.kind is STRUCTURED_OUTPUT_FAILED
        timeline.close()


THINK = Aside("<think>", "</think>", begun=False)


class Scripted:
    """A constraint driven by hand: what may follow, and what was taken."""

    def __init__(self, engine: LlamaEngine, grammar: Grammar, given: str = "", aside: Aside | None = None) -> None:
        self.engine, self.bound = engine, engine.constraint(grammar)
        self.bound.start(given, aside)

    def may(self, text: str) -> bool:
        import numpy

        token = self.token(text)
        logits = numpy.zeros(engine_size(self.engine), numpy.float32)
        self.bound.restrict(logits)
        return bool(logits[token] == 0)

    def token(self, text: str) -> int:
        (token,) = self.engine.tokenize(text)
        return token

    def take(self, *texts: str) -> None:
        for text in texts:
            assert self.may(text), text
            self.bound.take(self.token(text), text.encode())


def engine_size(engine: LlamaEngine) -> int:
    return engine._loaded.vocabulary.size


class TestAsides:
    def test_reasoning_is_free_and_the_document_is_not(self, engine: LlamaEngine) -> None:
        script = Scripted(engine, schema(PERSON), aside=THINK)
        assert script.may("<think>") and script.may("{") and script.may("</think>")
        assert not script.may("x") and not script.may("\n") and not script.may(tiny.END)
        script.take("<think>", "x", "{", "</think>", "\n\n")
        assert script.may("\n") and script.may("{") and not script.may("x") and not script.may("<think>")
        script.take("{")
        assert not script.may("x") and not script.may("<think>")
        script.take('"', "n")

    def test_a_document_may_begin_at_once(self, engine: LlamaEngine) -> None:
        script = Scripted(engine, schema(PERSON), aside=THINK)
        script.take("{")
        assert not script.may("<think>")

    def test_reasoning_that_has_begun(self, engine: LlamaEngine) -> None:
        script = Scripted(engine, schema(PERSON), aside=Aside("<think>", "</think>", begun=True))
        script.take("x", "<", "/", "t", "h", "i", "n", "k", ">")
        assert script.may("{") and not script.may("x")

    def test_the_end_of_reasoning_may_be_begun_in_the_prompt(self, engine: LlamaEngine) -> None:
        script = Scripted(engine, schema(PERSON), "so </thi", Aside("<think>", "</think>", begun=True))
        script.take("n", "k", ">")
        assert not script.may("x")

    def test_tags_of_several_tokens(self, engine: LlamaEngine) -> None:
        script = Scripted(engine, schema(PERSON), aside=Aside("[the]", "[/he]", begun=False))
        script.take("[")
        assert script.may("the") and script.may("/") and not script.may("{")
        script.take("the", "]", "x", "[", "/", "he", "]")
        assert script.may("{") and not script.may("x")

    def test_blanks_after_reasoning_have_an_end(self, engine: LlamaEngine) -> None:
        script = Scripted(engine, schema(PERSON), aside=THINK)
        script.take("</think>", "\n", "\n", "\n", "\n")
        assert not script.may("\n") and script.may("{")

    def test_a_token_may_end_reasoning_and_begin_the_document(self, engine: LlamaEngine) -> None:
        bound = engine.constraint(schema(PERSON))
        bound.start(aside=Aside("<think>", "</think>", begun=True))
        bound.take(0, b'x</think>\n{"na')  # type: ignore[attr-defined]
        assert bound.forced(whole=True)  # type: ignore[attr-defined]

    def test_reasoning_that_runs_into_something_else_is_left_alone(self, engine: LlamaEngine) -> None:
        script = Scripted(engine, schema(PERSON), aside=Aside("<think>", "</think>", begun=True))
        script.bound.take(0, b"x</think> no")
        assert script.may("x") and script.may(tiny.END)


@pytest.fixture(scope="module")
def demo(demo_model: Path) -> Iterator[LlamaEngine]:
    engine = open_model(ModelOptions(str(demo_model), threads=1, context=600), interrupt=Interrupt())
    yield engine
    engine.close()


@pytest.mark.model
class TestDemoModel:
    @pytest.mark.parametrize("given", ["", '{"na', '{"name": "Jo', '{"name": "x", "age": 4'])
    def test_a_document_is_finished(self, demo: LlamaEngine, given: str) -> None:
        ask = "<|im_start|>user\nDescribe a person from a novel, as JSON.<|im_end|>\n<|im_start|>assistant\n"
        tokens = generated(demo, schema(PERSON), given, prompt=ask)
        jsonschema.validate(json.loads(given + text_of(tokens)), PERSON)

    def test_bytes_that_no_token_spells(self, demo: LlamaEngine) -> None:
        with pytest.raises(StrataError) as caught:
            demo.constraint(Grammar("regex", "(?s:.*)")).start("\x04")
        assert caught.value.kind is INVALID_REQUEST


def by_hand() -> None:
    """The same two properties over 200 schemas."""
    more = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
    for checked in (every_beginning_is_accepted, every_wrong_character_is_refused):
        more(given(written())(checked))()


if __name__ == "__main__":
    by_hand()
