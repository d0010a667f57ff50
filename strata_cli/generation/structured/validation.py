"""Whether a text is a JSON document that is valid by a schema."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from strata_cli.conversation.messages import Json
from strata_cli.errors import INVALID_REQUEST, StrataError

_LONGEST = 300


class Invalid(Exception):
    """Where a document is not what it should be, as a path such as $.tags[0], and why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.path, self.reason = path, _shortened(reason)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


class Validator:
    """A schema, ready to be used; raises INVALID_REQUEST with the place in it where it is no schema."""

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

    def check(self, text: str) -> None:
        """Raise Invalid where the text is no valid document; INVALID_REQUEST where the schema turns out to be none."""
        from jsonschema.exceptions import best_match
        from referencing.exceptions import Unresolvable

        document = _parsed(text)
        try:
            error = best_match(self._validator.iter_errors(document))
        except Unresolvable as error:
            raise self._refusal(f"refers to {error.ref!r}, which it does not hold") from None
        except RecursionError:
            raise self._refusal("refers to itself without end") from None
        if error is not None:
            raise Invalid(error.json_path, error.message)

    def _refusal(self, what: str) -> StrataError:
        return StrataError(INVALID_REQUEST, f"The schema {what}", hint="Correct the schema.", param=self._field)


def _parsed(text: str) -> Json:
    try:
        return json.loads(text, parse_constant=_refuse_constant)  # type: ignore[no-any-return]
    except json.JSONDecodeError as error:
        raise Invalid("$", f"it is no JSON: {error.msg} at character {error.pos + 1}") from None
    except (ValueError, RecursionError) as error:
        raise Invalid("$", f"it is no JSON: {error}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")
