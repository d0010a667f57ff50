"""The field `response_format` as a value."""

from __future__ import annotations

from collections.abc import Mapping

from strata_cli.conversation import fields as read
from strata_cli.conversation.fields import Fields
from strata_cli.conversation.structure import ANY_OBJECT, Schema, Structure


def response_format(fields: Fields) -> Structure | None:
    """What `response_format` asks for: OpenAI's `text`, `json_object` or `json_schema`, or llama-server's `schema`."""
    name = "response_format"
    if fields.get(name) is None:
        return None
    value = read.mapping(fields[name], name)
    match value.get("type"):
        case "text":
            return None
        case "json_object":
            schema = value.get("schema")
            return Structure(ANY_OBJECT if schema is None else _schema(schema, f"{name}.schema"))
        case "json_schema":
            inner = read.mapping(value.get("json_schema"), f"{name}.json_schema")
            description = read.of(inner, "description", str, "", f"{name}.json_schema.")
            return Structure(_schema(inner.get("schema"), f"{name}.json_schema.schema", description or None))
        case kind:
            what = f"is {read.shown(kind)}; it must be 'text', 'json_object' or 'json_schema'"
            raise read.invalid(f"{name}.type", what)


def _schema(value: object, where: str, description: str | None = None) -> Schema:
    if not isinstance(value, (Mapping, bool)):
        raise read.invalid(where, "must be a JSON schema, an object")
    return Schema(value, description)  # type: ignore[arg-type]
