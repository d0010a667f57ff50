"""Documents by grammar: which bytes may come next, and which tokens.

llguidance reads bytes, so the beginning of a document is read as bytes, whatever tokens the prompt spells it with. Two
vocabularies are in use: the 256 bytes, in which the exact place of a mistake can be seen and which cost nothing, and
the model's, which is prepared when the first constrained answer begins.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

from strata_cli.engine import Aside, Breach, Grammar
from strata_cli.engine.llama import gbnf
from strata_cli.engine.llama.vocabulary import Vocabulary
from strata_cli.errors import INVALID_REQUEST, NOT_IN_THIS_BUILD, STRUCTURED_OUTPUT_FAILED, StrataError

_SPECIAL = b"\xff"
"""llguidance's mark before the text of a token that is no part of any text."""
_BLANK = b" \t\r\n"
_MOST_BLANKS = 4
_UNSATISFIABLE = "Unsatisfiable schema: "
_UNKNOWN_KEYWORDS = re.compile(r"Unimplemented keys: \[(.*)\]")

# Strings may be escaped as every JSON writer does it, and a choice whose branches overlap is checked at the end. Blanks
# have a limit: small models fall into writing nothing else.
_JSON = {
    "json_allow_general_unicode_escapes": True,
    "coerce_one_of": True,
    "whitespace_pattern": r"[\x20\x0A\x0D\x09]{1,100}",
}

Phase: TypeAlias = Literal["choice", "aside", "blanks", "document", "lost"]


class Lexicon:
    """A model's vocabulary as llguidance reads it."""

    def __init__(self, api: Any, vocabulary: Vocabulary, markers: str = "") -> None:
        self.size = vocabulary.size
        self.ends = [token for token in range(self.size) if vocabulary.ends(token)]
        texts = [vocabulary.spelling(token) for token in range(self.size)]
        self.marked = {token: vocabulary.data(token) for token in _marked(vocabulary, texts, markers.encode())}
        for token, text in self.marked.items():
            texts[token] = text
        self.beginnings = {token: _beginnings(texts, text) for token, text in self.marked.items()}
        self.blanks = [token for token, text in enumerate(texts) if text and not text.strip(_BLANK)]
        tokenize = ctypes.cast(api._lib.llama_tokenize, ctypes.c_void_p).value
        self.tokenizer = LLTokenizer.from_llamacpp(  # type: ignore[attr-defined]
            tokens=[_SPECIAL + vocabulary.data(token) if text is None else text for token, text in enumerate(texts)],
            vocab_ptr=vocabulary.handle,
            tokenize_fptr=tokenize,
            eos_token=self.ends or [0],
            slices=None,
        )

    def spell(self, text: str, *, special: bool = False) -> list[int]:
        """A text's tokens, without BOS and without the blank that some vocabularies put before a text."""
        data = text.encode()
        tokens: list[int] = self.tokenizer.tokenize_bytes(data, parse_special=special)
        return tokens if special or self.spells(tokens, text) else self.tokenizer.greedy_tokenize(text)

    def spells(self, tokens: list[int], text: str) -> bool:
        return self.tokenizer.decode_bytes(tokens) == text.encode()


def _marked(vocabulary: Vocabulary, texts: list[bytes | None], markers: bytes) -> list[int]:
    """The special tokens that occur in a grammar's markers and end nothing, the longest first."""
    special = (token for token, text in enumerate(texts) if text is None and not vocabulary.ends(token))
    found = [token for token in special if (data := vocabulary.data(token)) and data in markers]
    return sorted(found, key=lambda token: -len(vocabulary.data(token)))


def _beginnings(texts: list[bytes | None], marker: bytes) -> list[int]:
    """The tokens with which a marker could be spelt that is one token."""
    return [token for token, text in enumerate(texts) if text and len(text) < len(marker) and marker.startswith(text)]


class LlamaConstraint:
    """A grammar over the vocabulary of one model, for one document.

    A phase says what may come: before the document the beginning of an aside or of the document itself (choice), all
    of an aside, blanks after it; the document; or anything, once an aside ran into what no document begins with.
    """

    def __init__(self, grammar: Grammar, lexicon: Callable[[str], Lexicon]) -> None:
        self._compiled, self._markers = compiled(grammar), grammar.markers
        self._prepare = lexicon
        # At the document's beginning; texts are tried on copies, since compiling takes 0.1 s for a large schema.
        self._fresh = LLMatcher(_bytes(), self._compiled, log_level=0)
        self.notes = _checked(self._fresh, grammar)
        self._phase: Phase = "lost"

    def check(self, text: str) -> Breach | None:
        """How a text breaks the grammar, None where a document can begin with it."""
        data = text.encode()
        matcher = self._fresh.deep_copy()
        taken = matcher.try_consume_tokens(list(data))
        if taken == len(data):
            return None
        stopped = matcher.is_stopped()
        allowed = () if stopped else matcher.compute_logit_bias()[:256]
        return Breach(
            at=len(data[:taken].decode("utf-8", "ignore")),
            allowed=bytes(byte for byte, weight in enumerate(allowed) if weight),
            forced=b"" if stopped else matcher.compute_ff_bytes(),
            complete=matcher.is_accepting(),
        )

    def complete(self, text: str) -> bool:
        """Whether a text is a whole document."""
        data = text.encode()
        matcher = self._fresh.deep_copy()
        return matcher.try_consume_tokens(list(data)) == len(data) and matcher.is_accepting()

    def start(self, given: str = "", aside: Aside | None = None) -> None:
        """Take the place after `given`, a beginning of the document or of an aside that has begun.

        Raises INVALID_REQUEST where a document's beginning cannot be spelt.
        """
        self._lexicon = lexicon = self._prepare(self._markers)
        self._matcher = LLMatcher(lexicon.tokenizer, self._compiled, log_level=0)
        self._mask = numpy.zeros((lexicon.size + 31) // 32, numpy.int32)
        self._tail, self._blanks, self._path = b"", 0, 0
        self._aside, self._paths = aside, self._beginnings(aside)
        self._phase = "document" if aside is None else "aside" if aside.begun else "choice"
        if self._phase == "aside":
            self._listen(given.encode())
        elif not self._takes(given):
            raise StrataError(INVALID_REQUEST, "This model's vocabulary cannot spell the beginning of the document.")

    def _beginnings(self, aside: Aside | None) -> list[tuple[Phase, list[int]]]:
        """How an aside that has not begun begins, or shows that there is none."""
        if aside is None or aside.begun:
            return []
        spell = self._lexicon.spell
        return [("aside", spell(aside.open, special=True)), ("blanks", spell(aside.close, special=True))]

    def _takes(self, text: str) -> bool:
        tokens = self._lexicon.spell(text)
        spelt = self._lexicon.spells(tokens, text)
        return spelt and self._matcher.try_consume_tokens(tokens) == len(tokens)

    # For each token of an answer

    def forced(self, *, whole: bool) -> list[int]:
        """The tokens that have to follow, only the one that ends unless `whole`; they count as taken."""
        if self._phase != "document":
            return []
        if self._matcher.is_stopped():
            self._fail_on_error()
            return self._lexicon.ends[:1]
        if not whole:
            return []
        tokens: list[int] = self._forced_marker() if self._lexicon.marked else self._matcher.compute_ff_tokens()
        if tokens:
            self._matcher.consume_tokens(tokens)
        return tokens

    def _forced_marker(self) -> list[int]:
        """The one token of a marker that has to follow; its text would be other tokens, which no model is used to."""
        coming = self._matcher.compute_ff_bytes()
        return [token for token, text in self._lexicon.marked.items() if coming.startswith(text)][:1]

    def restrict(self, logits: Any) -> None:
        """Set the logits of all tokens that may not follow to minus infinity; `logits` has the vocabulary's size."""
        if self._phase in ("aside", "lost"):
            return
        free = self._also()
        kept = logits[free]
        if self._path:
            logits.fill(-numpy.inf)
        else:
            self._matcher.unsafe_compute_mask_ptr(self._mask.ctypes.data, self._mask.nbytes)
            self._fail_on_error()
            bits = numpy.unpackbits(self._mask.view(numpy.uint8), count=len(logits), bitorder="little")
            self._prefer_markers(bits)
            numpy.copyto(logits, -numpy.inf, where=bits == 0)
        logits[free] = kept

    def _prefer_markers(self, bits: Any) -> None:
        """Leave a marker that is one token no other spelling; where it has to follow, the mask names another only."""
        if self._lexicon.marked and (forced := self._forced_marker()):
            bits[:], bits[forced] = 0, 1
        for marked, beginnings in self._lexicon.beginnings.items():
            if bits[marked]:
                bits[beginnings] = 0

    def take(self, token: int, data: bytes) -> None:
        """Go on after a token that was sampled; `data` is what it adds to the text."""
        if self._phase == "aside":
            self._listen(data)
        elif self._phase != "lost" and not self._path and self._matcher.try_consume_tokens([token]):
            self._phase = "document"
        elif self._phase == "document":
            raise StrataError(STRUCTURED_OUTPUT_FAILED, "The grammar allows no token that this model can write.")
        elif self._phase == "blanks":
            self._blanks += 1
        elif self._phase == "choice":
            self._walk(token)

    def _also(self) -> Sequence[int]:
        """The tokens that may follow beside the document's."""
        if self._phase == "blanks" and self._blanks < _MOST_BLANKS:
            return self._lexicon.blanks
        if self._phase == "choice":
            return sorted({path[self._path] for _, path in self._paths})
        return []

    def _walk(self, token: int) -> None:
        """Take a token of the texts that come before a document."""
        self._paths = [(then, path) for then, path in self._paths if path[self._path] == token]
        self._path += 1
        done = [then for then, path in self._paths if len(path) == self._path]
        if done or not self._paths:
            self._phase, self._path = (done or ["lost"])[0], 0

    def _listen(self, data: bytes) -> None:
        """Wait for the end of an aside."""
        assert self._aside is not None
        close = self._aside.close.encode()
        before, found, after = (self._tail + data).partition(close)
        self._tail = before[-len(close) :]
        if found:
            rest = after.lstrip(_BLANK)
            self._phase = "blanks" if not rest else "document"
            if rest and not self._takes(rest.decode("utf-8", "replace")):
                self._phase = "lost"

    def _fail_on_error(self) -> None:
        if self._matcher.is_error():
            reason = _first_line(self._matcher.get_error().partition("<state>")[0])
            raise StrataError(STRUCTURED_OUTPUT_FAILED, f"The grammar cannot be followed any further: {reason}")


@lru_cache(maxsize=1)
def _bytes() -> LLTokenizer:
    """A vocabulary of the 256 bytes."""

    class Bytes:
        eos_token_id, bos_token_id = 256, None
        special_token_ids = (256,)
        tokens = (*(bytes([byte]) for byte in range(256)), _SPECIAL + b"end")

        def __call__(self, data: bytes) -> list[int]:
            return list(data)

    return LLTokenizer(TokenizerWrapper(Bytes()), slices=[])


def compiled(grammar: Grammar) -> str:
    """A grammar in llguidance's own notation; raises INVALID_REQUEST for GBNF that cannot be read."""
    match grammar.kind:
        case "json_schema":
            return LLMatcher.grammar_from_json_schema(grammar.text, defaults=_JSON)
        case "gbnf":
            try:
                return LLMatcher.grammar_from_lark(gbnf.lark(grammar.text))
            except gbnf.UnreadableGbnf as error:
                raise _unreadable(grammar, str(error)) from None
        case "lark" | "calls":
            return LLMatcher.grammar_from_lark(grammar.text)
        case "regex":
            return LLMatcher.grammar_from_regex(grammar.text)


def _checked(matcher: LLMatcher, grammar: Grammar) -> tuple[str, ...]:
    """What llguidance remarks on a grammar; raises for one that it refuses."""
    if matcher.is_error():
        if grammar.kind not in ("json_schema", "calls"):
            raise _unreadable(grammar, matcher.get_error())
        raise _inexpressible(matcher.get_error(), grammar)
    if not matcher.is_accepting() and not any(matcher.deep_copy().compute_logit_bias()[:256]):
        raise StrataError(INVALID_REQUEST, "The grammar allows nothing.", hint="Correct it.", param="grammar")
    return tuple(map(_first_line, matcher.get_grammar_warnings()))


def _unreadable(grammar: Grammar, reason: str) -> StrataError:
    names = {"gbnf": "GBNF grammar", "lark": "Lark grammar", "regex": "regular expression"}
    words = f"The {names[grammar.kind]} cannot be read: {_first_line(reason)}"
    return StrataError(INVALID_REQUEST, words, hint="Correct the grammar.", param="grammar")


def _inexpressible(reason: str, grammar: Grammar) -> StrataError:
    found = _UNKNOWN_KEYWORDS.search(reason)
    when, calls = "cannot be enforced while the answer is written", grammar.kind == "calls"
    whose, other = ("A tool's schema", "let the model choose (tool_choice auto)") if calls else (
        "The schema", "let the answer be checked when it is complete (--schema-mode validate)"
    )  # fmt: skip
    if _UNSATISFIABLE in reason:
        words = f"{whose} allows nothing: {_first_line(reason.partition(_UNSATISFIABLE)[2])}"
        return StrataError(INVALID_REQUEST, words, hint="Correct it.", param="tools" if calls else "schema")
    return StrataError(
        NOT_IN_THIS_BUILD,
        f"{whose}: the keyword {found[1]} {when}" if found else f"{whose} {when}: {_first_line(reason)}",
        hint=f"Leave it out, or {other}.",
        param="tools" if calls else "schema",
    )


def _first_line(text: str) -> str:
    """A message of several lines in one, without llguidance's frames and positions."""
    lines: Iterable[str] = (line.strip() for line in text.strip().splitlines())
    return "; ".join(line for line in lines if line and line.strip("^ "))
