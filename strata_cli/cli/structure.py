"""From options to the document that an answer has to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata_cli.cli.input import read_text_file
from strata_cli.cli.options import StructureOptions
from strata_cli.conversation.incoming import load_json
from strata_cli.conversation.messages import Json
from strata_cli.conversation.request import Request
from strata_cli.errors import CONFLICTING_OPTIONS, INVALID_REQUEST, StrataError

if TYPE_CHECKING:
    from strata_cli.conversation.structure import Structure


def structure_of(options: StructureOptions) -> Structure | None:
    """What the command line asks for; raises INVALID_REQUEST where a schema is none."""
    if options.schema is not None and options.grammar is not None:
        raise StrataError(CONFLICTING_OPTIONS, "--schema and --grammar exclude each other")
    if options.schema is None and options.grammar is None:
        return None
    from strata_cli.conversation.structure import GrammarText, Schema, Structure, notation_of

    if options.grammar is not None:
        # The line end that an editor puts there is no part of a regular expression.
        text = read_text_file(options.grammar).removesuffix("\n").removesuffix("\r")
        return Structure(GrammarText(notation_of(options.grammar, text), text), field="--grammar")
    assert options.schema is not None
    return Structure(Schema(_schema(options.schema)), field="--schema")


def _schema(said: str) -> dict[str, Json] | bool:
    """A schema as JSON text, or the file of that name."""
    given = said.lstrip().startswith("{") or said.strip() in ("true", "false")
    value = load_json(said, "--schema") if given else load_json(read_text_file(said), said)
    if not isinstance(value, (dict, bool)):
        raise StrataError(INVALID_REQUEST, f"{said} holds no JSON schema, which is an object", param="--schema")
    return value


def with_structure(request: Request, asked: Structure | None, options: StructureOptions) -> Request:
    """The request with what the command line asks for in place of its own structure, which is a note."""
    structure, notes = request.structure, request.notes
    if asked is not None:
        if structure is not None:
            notes = (*notes, f"{asked.field} replaces the request's {structure.field}")
        structure = asked
    if structure is None:
        return request
    from dataclasses import replace

    structure = replace(
        structure,
        constrained=structure.constrained if options.schema_mode is None else options.schema_mode == "constrain",
        instructed=structure.instructed and not options.no_schema_instruction,
    )
    return request._replace(structure=structure, notes=notes)
