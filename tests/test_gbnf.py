"""GBNF means what llama.cpp, whose notation it is, takes it to mean."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from math import inf
from typing import TypeAlias

import pytest

from strata_cli.engine import Grammar
from strata_cli.engine.llama import LlamaEngine
from strata_cli.engine.llama.gbnf import UnreadableGbnf, lark

Taken: TypeAlias = tuple[int, bool]
"""How many bytes of a text a grammar takes, and whether they are a whole text of it."""

GRAMMARS = [
    ('root ::= [a-z]* "x"', ["abx", "x", "xx", "xa", "abc"]),
    ('root ::= "ab" | [a] "bc"', ["ab", "abc", "a"]),
    ('root ::= ws ws "a"\nws ::= [ ]*', ["  a", "a", " b"]),
    ('root ::= "(" root ")" | [a-z]* "x"', ["(x)", "((ax))", "(xx)", "(x", "()"]),
    ('root ::= "ab" root | "a" "bc" root | ""', ["ababc", "abcab", "abb"]),
    ('root ::= "caf\\u00e9" "\\x41" "\\U0001F600"', ["caféA😀", "cafe"]),
    ("root ::= [\\u00e0-\\u00fcぁ-ん]+", ["éあ", "éz"]),
    ("root ::= [\\U0001F600-\\U0001F64F]", ["😀", "x"]),
    ('root ::= .+ "!"', ["a\nb!", "!!", "!", "é!"]),
    ('root ::= "a/b\\\\" [^/]+ "/"', ["a/b\\cd/", "a/b\\/"]),
    ('root ::= "\\[" [^\\]]+ "]"', ["[ab]", "[]"]),
    ('root ::= "\\"" [^"]* "\\"\\t\\r\\n"', ['"ab"\t\r\n', '""x']),
    ("root ::= [\\-a-c]+", ["-a", "d"]),
    ("root ::= [a-c-]+", ["-a", "d"]),
    ("root ::= [.*+?(){}|^$&~\\\\]+", [".*+?(){}|^$&~\\", "a"]),
    ("root ::= [^^]", ["a", "^"]),
    ('root ::= ab{2,3} "c"\nab ::= "x" | "y"', ["xyc", "xyxc", "xc", "xyxyc"]),
    ('root ::= "ab"{2} "c"{0} ("d" "e"){1,}', ["ababde", "ababdede", "abbde", "ababc"]),
    ('root ::= ("a" | "b" "c")* "d"?', ["abcd", "d", "bd", ""]),
    ('root ::= "a" foo-bar fooBar start # it\n\n# more\nfoo-bar ::= "b"\nfooBar ::= "c"\nstart ::= (\n"d" |\n"e")\n',
     ["abcd", "abce", "abd"]),
    ("root ::= 1a\r\n1a ::= [a]\r\n", ["a", "b"]),
    ('root ::= "a" |', ["a", "", "b"]),
]  # fmt: skip


@pytest.fixture(scope="module")
def by_llama_cpp(tiny_engine: LlamaEngine) -> Callable[[str, bytes], Taken]:
    """llama.cpp's own reading of a grammar, over a vocabulary that has every byte as a token."""
    api, model = tiny_engine._loaded.api, tiny_engine._loaded.model
    vocabulary = api.llama_model_get_vocab(model)
    pieces = {tiny_engine.token_bytes(token): token for token in range(256)}
    (end,) = [
        token for token in range(api.llama_vocab_n_tokens(vocabulary)) if api.llama_vocab_is_eog(vocabulary, token)
    ]

    def allowed(sampler: int, token: int) -> bool:
        candidate = api.llama_token_data(token, 0.0, 0.0)
        candidates = api.llama_token_data_array(ctypes.pointer(candidate), 1, -1, False)
        api.llama_sampler_apply(sampler, ctypes.byref(candidates))
        return bool(candidate.logit != -inf)

    def taken(grammar: str, text: bytes) -> Taken:
        sampler = api.llama_sampler_init_grammar(vocabulary, grammar.encode(), b"root")
        assert sampler, f"llama.cpp cannot read {grammar}"
        try:
            for at in range(len(text)):
                token = pieces[text[at : at + 1]]
                if not allowed(sampler, token):
                    return at, False
                api.llama_sampler_accept(sampler, token)
            return len(text), allowed(sampler, end)
        finally:
            api.llama_sampler_free(sampler)

    return taken


@pytest.mark.parametrize(("grammar", "text"), [(grammar, text) for grammar, texts in GRAMMARS for text in texts])
def test_a_grammar_means_what_llama_cpp_takes_it_to_mean(
    tiny_engine: LlamaEngine, by_llama_cpp: Callable[[str, bytes], Taken], grammar: str, text: str
) -> None:
    count, whole = by_llama_cpp(grammar, text.encode())
    ours = tiny_engine.constraint(Grammar("gbnf", grammar))
    breach = ours.check(text)
    assert (len(text) if breach is None else breach.at) == len(text.encode()[:count].decode(errors="ignore"))
    assert ours.complete(text) == whole


@pytest.mark.parametrize(
    ("grammar", "words"),
    [
        ('root ::= ("a"', "line 1, column 14: ) should stand here"),
        ('root ::= "a', "line 1, column 12: it ends within a text or a class"),
        ("root ::= [a-", "line 1, column 13: it ends within"),
        ('root ::= "\\q"', "line 1, column 11: an escape that GBNF does not have"),
        ('root ::= "\\uD800"', "line 1, column 11: \\uD800 is no character"),
        ('root ::= "\\U00110000"', "\\U00110000 is no character"),
        ("root ::= [b-a]", "line 1, column 11: a range that ends before it begins"),
        ("root ::= [^]", "line 1, column 10: a class of no characters"),
        ('root ::= "a" | *', "line 1, column 16: there is nothing to repeat"),
        ('root ::= "a"{3,2}', "a repetition whose most is less than its least"),
        ('root ::= "a"{,2}', "line 1, column 13: there is nothing to repeat"),
        ('root ::= a\n\nb ::= "b"', "line 1, column 10: there is no rule a"),
        ('a ::= "a"', "line 1, column 1: there is no rule root"),
        ('root ::= "a"\nroot ::= "b"', "line 2, column 1: the rule root is defined twice"),
        ('root ::= "a"\n  | "b"', "line 2, column 3: the name of a rule should stand here"),
        ('root : "a"', "line 1, column 6: ::= should stand here"),
        ('root ::= "a" ]', "line 1, column 14: ']' cannot stand here"),
        ("root ::= <|im_end|>", "line 1, column 10: tokens cannot be named"),
        ("root ::= " + "(" * 10_000, "nested too deeply"),
        ("", "there is no rule root"),
    ],
    ids=lambda value: value[:30],
)
def test_what_cannot_be_read_is_named_with_its_place(grammar: str, words: str) -> None:
    with pytest.raises(UnreadableGbnf) as caught:
        lark(grammar)
    assert words in str(caught.value)
