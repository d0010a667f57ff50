"""Whether a text is a JSON document that is valid by a schema."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from strata_cli.conversation.messages import Json
from strata_cli.errors import INVALID_REQUEST, StrataError

_LONGEST = 300
_REFERENCES = {"$ref", "$dynamicRef"}


class Invalid(Exception):
    """Where a document is not what it should be, as a path such as $.tags[0], and why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.path, self.reason = path, _shortened(reason)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


class Validator:
    """A schema, ready to be used; raises INVALID_REQUEST where it is none, with the place in it.

    All that it refers to has to be in it, or in the specification.
    """

    def __init__(self, schema: Json, field: str) -> None:
        # 0.2 s, which only this needs.
        from jsonschema import SchemaError
        from jsonschema.validators import Draft202012Validator, validator_for
        from jsonschema_specifications import REGISTRY

        # jsonschema and its meta-schemas want dicts, not any mapping.
        schema = json.loads(json.dumps(schema, default=dict))
        kind = validator_for(schema, default=Draft202012Validator)
        self._field = field
        try:
            kind.check_schema(schema, format_checker=kind.FORMAT_CHECKER)
        except SchemaError as error:
            raise self._refusal(f"is no JSON schema at {error.json_path}: {_shortened(error.message)}") from None
        # A registry of its own keeps it from fetching what a schema refers to.
        self._validator: Any = kind(schema, registry=REGISTRY, format_checker=kind.FORMAT_CHECKER)
        try:
            _follow(schema, kind, REGISTRY)
            # A loop of references comes back to every document without end.
            self._validator.is_valid(None)
        except _Unfollowed as error:
            raise self._refusal(f"refers to {error.reference!r}, which {error}") from None
        except RecursionError:
            raise self._refusal("refers to itself without end") from None

    def check(self, text: str) -> None:
        """Raise Invalid where the text is no valid document."""
        from jsonschema.exceptions import best_match

        document = _parsed(text)
        try:
            error = best_match(self._validator.iter_errors(document))
        except RecursionError:
            raise self._refusal("refers to itself without end") from None
        if error is not None:
            raise Invalid(error.json_path, error.message)

    def _refusal(self, what: str) -> StrataError:
        return StrataError(INVALID_REQUEST, f"The schema {what}", hint="Correct the schema.", param=self._field)


class _Unfollowed(Exception):
    def __init__(self, reference: object, reason: str) -> None:
        super().__init__(_shortened(reason))
        self.reference = reference


def _follow(schema: Json, kind: Any, registry: Any) -> None:
    """Follow every reference of a schema, and those from there on; raises _Unfollowed."""
    from referencing.jsonschema import specification_with

    make = specification_with(kind.META_SCHEMA["$schema"]).create_resource
    root = make(schema)
    within, references, seen = [(root, registry.resolver_with_root(root))], list[tuple[Any, Any]](), set[int]()
    while within or references:
        if within:
            resource, resolver = within.pop()
        else:
            found = _referred(*references.pop(), kind, seen)
            if found is None:
                continue
            resource, resolver = make(found.contents), found.resolver
        seen.add(id(resource.contents))
        within += [(inner, resolver.in_subresource(inner)) for inner in resource.subresources()]
        if isinstance(resource.contents, dict):
            references += [(resolver, resource.contents[key]) for key in _REFERENCES & resource.contents.keys()]


def _referred(resolver: Any, reference: object, kind: Any, seen: set[int]) -> Any:
    """What a reference leads to, None where that is known; it may be a place where nothing was said to be a schema."""
    from jsonschema import SchemaError
    from referencing.exceptions import Unresolvable

    try:
        found = resolver.lookup(reference)
    except (Unresolvable, AttributeError, LookupError, TypeError, ValueError):
        raise _Unfollowed(reference, "it does not hold") from None
    if id(found.contents) in seen:
        return None
    try:
        kind.check_schema(found.contents, format_checker=kind.FORMAT_CHECKER)
    except SchemaError as error:
        raise _Unfollowed(reference, f"is no schema: {error.message}") from None
    return found


def _parsed(text: str) -> Json:
    try:
        return json.loads(text, parse_constant=_refuse_constant)  # type: ignore[no-any-return]
    except json.JSONDecodeError as error:
        raise Invalid("$", f"it is no JSON: {error.msg} at character {error.pos + 1}") from None
    except (ValueError, RecursionError) as error:
        raise Invalid("$", f"it is no JSON: {error}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")
