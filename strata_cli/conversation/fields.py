"""The fields of a request, read one by one: what both dialects have in common, and what every field's error says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from strata_cli import errors
from strata_cli.conversation.messages import NOTHING, JsonObject
from strata_cli.conversation.request import SamplingOptions
from strata_cli.errors import StrataError

T = TypeVar("T")

Fields = Mapping[str, Any]
"""A request's or a message's fields, those that are null left out."""

SAMPLING = frozenset(
    ("temperature", "top_p", "top_k", "min_p", "seed", "repeat_penalty", "repeat_last_n", "presence_penalty",
     "frequency_penalty", "max_tokens")
)  # fmt: skip
BEGINNING = frozenset(
    ("assistant_prefix", "response_prefix", "continue_final_message", "add_generation_prompt", "chat_template_kwargs")
)
DELIVERY = frozenset(("stream", "logprobs", "top_logprobs", "metadata"))

_LOWEST, _HIGHEST = -(2.0**63), 2.0**63
_NAMES: dict[type, str] = {
    bool: "true or false", str: "a string", int: "a whole number", list: "a list", Mapping: "an object"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Known:
    """The fields that a dialect knows: those honoured, those that ask for nothing here, those refused.

    `refused` holds beside each name what the field may say all the same.
    """

    honoured: frozenset[str]
    without_effect: frozenset[str]
    refused: Mapping[str, tuple[object, ...]]

    def notes(self, fields: Fields, where: str = "") -> tuple[str, ...]:
        """Refuse what cannot be done; note what changes nothing and what nobody knows."""
        notes = []
        for name, value in fields.items():
            if name in self.refused:
                if not any(type(value) is type(harmless) and value == harmless for harmless in self.refused[name]):
                    raise refused(where + name)
            elif name in self.without_effect:
                notes.append(f"the field {shown(where + name)} has no effect here")
            elif name not in self.honoured:
                notes.append(f"the field {shown(where + name)} is unknown and ignored")
        return tuple(notes)


def shown(value: object) -> str:
    """A value in an error's or a note's line."""
    if isinstance(value, int) and abs(value) >= 10**20:
        return "a huge number"
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


def invalid(where: str, what: str, param: str | None = None) -> StrataError:
    """A field of the wrong type or out of range; `param` is `where` unless it is given."""
    hint = errors.INVALID_REQUEST.remedy
    return StrataError(errors.INVALID_REQUEST, f"{where} {what}", hint=hint, param=where if param is None else param)


def refused(where: str, what: str = "cannot be honoured by this version") -> StrataError:
    return StrataError(errors.NOT_IN_THIS_BUILD, f"{where} {what}", hint=f"remove {where}", param=where)


def present(value: Mapping[Any, Any]) -> dict[str, Any]:
    """The fields that are there; one that is null counts as absent."""
    return {str(key): item for key, item in value.items() if item is not None}


def request_fields(value: object) -> dict[str, Any]:
    """The fields of a request, a bare list of messages being one."""
    if isinstance(value, list):
        value = {"messages": value}
    if not isinstance(value, Mapping):
        what = "must be an object with messages, or a list of messages"
        raise StrataError(errors.INVALID_REQUEST, f"the request {what}", hint=errors.INVALID_REQUEST.remedy)
    fields = present(value)
    if not isinstance(fields.get("messages"), list):
        raise invalid("messages", "must be a list of messages")
    return fields


def of(fields: Fields, name: str, kind: type[T], default: T, where: str = "") -> T:
    """A field's value, of this type."""
    value = fields.get(name)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise invalid(where + name, f"must be {_NAMES[kind]}")
    return value


def one_of(fields: Fields, name: str, kind: type[T], where: str = "") -> T:
    """A field's value that has to be there."""
    value = fields.get(name)
    if not isinstance(value, kind):
        raise invalid(where + name, f"must be {_NAMES[kind]}")
    return value


def mapping(value: object, where: str, what: str = "must be an object") -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise invalid(where, what)
    return value


def number(
    fields: Fields, name: str, kind: Callable[[Any], T], low: float = _LOWEST, high: float = _HIGHEST
) -> T | None:
    """A number of this kind within these limits; 2.0 is a whole number too."""
    value = fields.get(name)
    if value is None:
        return None
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not isinstance(value, (int, float)) or (kind is int and not whole):
        raise invalid(name, "must be a whole number" if kind is int else "must be a number")
    if not low <= value <= high:
        raise invalid(name, f"is {shown(value)}; it must be from {low:g} to {high:g}")
    return kind(value)


# What both dialects have


@dataclass(frozen=True, slots=True)
class Beginning:
    """How the answer begins, as in a Request."""

    assistant_prefix: str
    response_prefix: str
    continue_final: bool
    add_generation_prompt: bool


def beginning(fields: Fields, *, continues: bool) -> Beginning:
    """`continues` says whether a request that is silent about it continues its final message."""
    generation = of(fields, "add_generation_prompt", bool, False) if "add_generation_prompt" in fields else None
    continue_final = of(fields, "continue_final_message", bool, continues and generation is not True)
    if continue_final and generation:
        raise StrataError(
            errors.CONFLICTING_OPTIONS,
            "continue_final_message and add_generation_prompt: true exclude each other",
            hint="remove add_generation_prompt",
            param="add_generation_prompt",
        )
    return Beginning(
        assistant_prefix=of(fields, "assistant_prefix", str, ""),
        response_prefix=of(fields, "response_prefix", str, ""),
        continue_final=continue_final,
        add_generation_prompt=not continue_final if generation is None else generation,
    )


def template_kwargs(fields: Fields) -> JsonObject:
    """More variables for the template, none of them the request's own."""
    name = "chat_template_kwargs"
    value = mapping(fields.get(name, NOTHING), name)
    for key in ("messages", "tools", "add_generation_prompt"):
        if key in value:
            raise invalid(f"{name}.{key}", "is a field of the request itself")
    return value


def sampling(fields: Fields, stop: tuple[str, ...], max_tokens: str = "max_tokens") -> SamplingOptions:
    """How tokens are chosen; `max_tokens` names the field that limits them."""
    return SamplingOptions(
        max_tokens=number(fields, max_tokens, int, low=1),
        temperature=number(fields, "temperature", float, low=0),
        top_k=number(fields, "top_k", int, low=-1),
        top_p=number(fields, "top_p", float, low=0, high=1),
        min_p=number(fields, "min_p", float, low=0, high=1),
        seed=number(fields, "seed", int),
        repeat_penalty=number(fields, "repeat_penalty", float, low=0),
        repeat_last_n=number(fields, "repeat_last_n", int, low=-1),
        presence_penalty=number(fields, "presence_penalty", float, low=-2, high=2),
        frequency_penalty=number(fields, "frequency_penalty", float, low=-2, high=2),
        stop=stop,
    )


def texts(fields: Fields, name: str, what: str) -> tuple[str, ...]:
    """A list of strings, none of them empty; `what` says what the field must be."""
    value = fields.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(text, str) and text for text in value):
        raise invalid(name, f"must be {what}, none of them empty")
    return tuple(value)


def stream(fields: Fields) -> bool | None:
    return of(fields, "stream", bool, False) if "stream" in fields else None


def metadata(fields: Fields) -> JsonObject:
    return mapping(fields.get("metadata", NOTHING), "metadata")


def logprobs(fields: Fields) -> int | None:
    """How many likeliest tokens are asked for beside each token, None where no logprobs are."""
    asked = of(fields, "logprobs", bool, False)
    top = number(fields, "top_logprobs", int, low=0)
    if top and not asked:
        raise invalid("top_logprobs", "needs logprobs: true")
    return (top or 0) if asked else None
