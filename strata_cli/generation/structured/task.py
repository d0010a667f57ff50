"""One document to be written after one prompt: where it begins, what the model is held to, and how it turned out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from strata_cli.conversation.structure import GrammarText, Schema, Structure
from strata_cli.engine import Aside, Breach, Constraint, Grammar
from strata_cli.errors import INVALID_REQUEST, STRUCTURED_OUTPUT_FAILED, StrataError
from strata_cli.generation.split import said_in
from strata_cli.generation.structured.validation import Invalid, Validator
from strata_cli.prompt.tags import last_block
from strata_cli.prompt.turn import Prompt

_BLANK = " \t\r\n"
_JSON_BEGINS = frozenset('{["-0123456789tfn')


class Grammars(Protocol):
    """What makes constraints: an engine."""

    def constraint(self, grammar: Grammar) -> Constraint: ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where a document begins: after an aside, or where what is `given` in the prompt begins it.

    With an aside that has begun, `given` is what the prompt holds of that. `skipped` are the characters of the answer's
    beginning before it.
    """

    given: str
    aside: Aside | None
    skipped: int = 0


class Task:
    """The document that the answer to a prompt has to be.

    Raises NOT_IN_THIS_BUILD for a schema that cannot be enforced, INVALID_REQUEST for one that is none and for a prefix
    that begins a document and then breaks off from the schema.
    """

    def __init__(self, structure: Structure, prompt: Prompt, engine: Grammars) -> None:
        self._structure = structure
        document = structure.document
        self._validator = Validator(document.value, structure.field) if isinstance(document, Schema) else None
        self._constraint = _constraint(structure, engine)
        self._place = place(prompt, self._begins)
        if structure.constrained and self._place.aside is None:
            self._place = replace(self._place, given=self._accepted(self._place))
        self.notes = self._constraint.notes if self._constraint is not None and structure.constrained else ()

    def constraint(self) -> Constraint | None:
        """What the next answer is held to, None where it is only checked; each call begins anew."""
        if not self._structure.constrained:
            return None
        assert self._constraint is not None
        self._constraint.start(self._place.given, self._place.aside)
        return self._constraint

    def check(self, generated: str, *, cut: bool) -> None:
        """Raise STRUCTURED_OUTPUT_FAILED where what was generated does not complete a valid document.

        `cut` says that the model would have gone on.
        """
        text = written_after(self._place, generated)
        try:
            self._validate(text)
        except Invalid as invalid:
            words = "was cut before it was complete" if cut else f"is not valid at {invalid.path}: {invalid.reason}"
            raise _failure(words, text, invalid.path) from None
        if cut and self._may_go_on(text):
            raise _failure("was cut before it was complete", text, "$")

    def _validate(self, text: str) -> None:
        if self._validator is not None:
            self._validator.check(text)
        elif self._constraint is not None and not self._constraint.complete(text.strip(_BLANK)):
            breach = self._constraint.check(text.strip(_BLANK))
            raise Invalid("$", "it ends too early" if breach is None else described(breach, text.strip(_BLANK)))

    def _may_go_on(self, text: str) -> bool:
        """Whether more could follow a document that is valid as it is."""
        if self._constraint is None or (self._validator is not None and not self._structure.constrained):
            return text[-1:].isdigit()
        breach = self._constraint.check(text + "\0")
        return breach is None or bool(breach.allowed)

    def _begins(self, character: str) -> bool:
        if self._constraint is None:
            return character in _JSON_BEGINS
        return self._constraint.check(character) is None

    def _accepted(self, place: Place) -> str:
        """The document's beginning as the grammar takes it: blanks after a complete one are left out."""
        assert self._constraint is not None
        given = place.given
        breach = self._constraint.check(given)
        if breach is None:
            return given
        if breach.complete:
            rest = given[breach.at :].lstrip(_BLANK)
            if not rest:
                return given[: breach.at]
            breach = replace(breach, at=len(given) - len(rest))
        raise StrataError(
            INVALID_REQUEST,
            f"The answer's given beginning breaks off from the {_name(self._structure)}: "
            + described(breach, given, place.skipped),
            hint="Correct the prefix, or begin it with words if it is no part of the document.",
            param="assistant_prefix",
        )


def _constraint(structure: Structure, engine: Grammars) -> Constraint | None:
    """The grammar of the document; None where it can only be validated."""
    try:
        return engine.constraint(_grammar(structure))
    except StrataError:
        if structure.constrained or isinstance(structure.document, GrammarText):
            raise
        return None


def _grammar(structure: Structure) -> Grammar:
    document = structure.document
    if isinstance(document, Schema):
        if document.value is False:
            raise StrataError(
                INVALID_REQUEST, "The schema allows nothing: it is false.", hint="Correct it.", param=structure.field
            )
        value = {} if document.value is True else document.value
        return Grammar("json_schema", json.dumps(value, default=dict))
    return Grammar(document.notation, document.text)


def _name(structure: Structure) -> str:
    return "schema" if isinstance(structure.document, Schema) else "grammar"


# Where it begins


def place(prompt: Prompt, begins: Callable[[str], bool]) -> Place:
    """Where the document begins after this prompt; `begins` says whether one can begin with a character."""
    said, family = said_in(prompt), prompt.opening.family
    if prompt.opening.where == "reasoning":
        assert family is not None
        before, closed, after = said.partition(family.close)
        if not closed:
            return Place(before, Aside(family.open, family.close, begun=True))
        said = after
    elif not said and family is not None and _may_reason(prompt):
        return Place("", Aside(family.open, family.close, begun=False))
    given = said.lstrip(_BLANK)
    if not given or not begins(given[0]):
        return Place("", None)
    return Place(given, None, len(said_in(prompt)) - len(given))


def _may_reason(prompt: Prompt) -> bool:
    """Whether the model may still begin to reason: it writes its turn from the start, and no block was closed in it."""
    if prompt.kind != "generation":
        return False
    own = max((span.end for span in prompt.spans), default=0)
    return last_block(prompt.text[own:]) is None


def written_after(place: Place, generated: str) -> str:
    """The document: what the prompt holds of it and what was generated, or what comes after the aside."""
    aside = place.aside
    if aside is None:
        return place.given + generated
    if aside.begun or generated.lstrip(_BLANK).startswith((aside.open, aside.close)):
        return generated.partition(aside.close)[2].lstrip(_BLANK)
    return generated


# What is said of it


def _failure(words: str, text: str, path: str) -> StrataError:
    return StrataError(STRUCTURED_OUTPUT_FAILED, f"The document {words}", details={"text": text, "path": path})


def described(breach: Breach, text: str, skipped: int = 0) -> str:
    """Which character is wrong, and what was allowed there."""
    wrong = f"character {skipped + breach.at + 1}, {text[breach.at]!r}"
    if breach.forced:
        return f"{wrong}, where only {breach.forced.decode('utf-8', 'replace')!r} can stand"
    if not breach.allowed:
        return f"{wrong}, stands after its end"
    return f"{wrong}, where {_characters(breach.allowed)} can stand"


def _characters(allowed: bytes) -> str:
    """Bytes as the characters that they are or begin, those in a row as a range."""
    names, rest = [], sorted(byte for byte in allowed if byte < 128)
    while rest:
        first = last = rest.pop(0)
        while rest and rest[0] == last + 1 and chr(first).isalnum() == chr(rest[0]).isalnum():
            last = rest.pop(0)
        names += [repr(chr(first))] if first == last else [f"{chr(first)!r} to {chr(last)!r}"]
    if any(byte >= 128 for byte in allowed):
        names.append("letters beyond ASCII")
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
