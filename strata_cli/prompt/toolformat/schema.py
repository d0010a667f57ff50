"""Which JSON types a tool's definition allows for an argument."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from strata_cli.conversation.messages import Json, JsonObject, Tool

_DEPTH = 16
_NAMES: dict[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}


def name_of(tool: Tool) -> str | None:
    """The name that a call of this tool says."""
    name = _said(tool, "name")
    return name if isinstance(name, str) else None


def parameters_of(tool: Tool) -> JsonObject | None:
    """The schema of the arguments, None where the definition has none."""
    parameters = _said(tool, "parameters")
    return parameters if isinstance(parameters, Mapping) else None


def _said(tool: Tool, key: str) -> Json | JsonObject:
    function = tool.definition.get("function", tool.definition)
    return function.get(key) if isinstance(function, Mapping) else None


def types_of(tool: Tool, key: str) -> frozenset[str]:
    """The names of the JSON types that this argument may have; empty where the definition says nothing."""
    parameters = parameters_of(tool)
    if parameters is None:
        return frozenset()
    properties = parameters.get("properties")
    schema = properties.get(key) if isinstance(properties, Mapping) else None
    return frozenset(_types(schema, parameters, _DEPTH))


def type_of(value: Json) -> str:
    """The JSON type of a value; whole numbers are integers."""
    return _NAMES[type(value)]


def _types(schema: Json | JsonObject, root: JsonObject, depth: int) -> Iterator[str]:
    if not isinstance(schema, Mapping) or not depth:
        return
    kind = schema.get("type")
    yield from (kind,) if isinstance(kind, str) else _texts(kind)
    if schema.get("nullable") is True:
        yield "null"
    if kind is None:
        choices = schema.get("enum")
        yield from map(type_of, choices if isinstance(choices, list) else ())
        if "const" in schema:
            yield type_of(schema["const"])
    for word in ("anyOf", "oneOf", "allOf"):
        options = schema.get(word)
        for option in options if isinstance(options, list) else ():
            yield from _types(option, root, depth - 1)
    yield from _types(_referred(schema.get("$ref"), root), root, depth - 1)


def _texts(kind: Json) -> list[str]:
    return [item for item in kind if isinstance(item, str)] if isinstance(kind, Sequence) else []


def _referred(reference: Json, root: JsonObject) -> Json | JsonObject:
    """What `#/$defs/…` points to within the parameters, None where it points elsewhere."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    found: Json | JsonObject = root
    for step in reference[2:].split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found
