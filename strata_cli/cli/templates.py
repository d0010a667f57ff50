"""The chat templates of a model or of a file."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from strata_cli.cli.input import read_text_file
from strata_cli.cli.options import TemplateOptions
from strata_cli.environment import Environment
from strata_cli.errors import NO_CHAT_TEMPLATE, StrataError
from strata_cli.prompt.template import ChatTemplate, choose

if TYPE_CHECKING:
    from strata_cli.engine import ModelInfo


class Templates:
    """The chat templates of one model or file, each compiled when it is first needed."""

    def __init__(self, sources: dict[str, str], bos: str, eos: str, environment: Environment) -> None:
        self._sources = sources
        self._bos = bos
        self._eos = eos
        self._now = datetime.fromtimestamp(environment.now(), tz=_zone(environment))
        self._compiled: dict[str, ChatTemplate] = {}

    def chosen(self, *, tools: bool) -> ChatTemplate:
        source = choose(self._sources, tools=tools)
        if source not in self._compiled:
            self._compiled[source] = ChatTemplate(source, bos=self._bos, eos=self._eos, now=self._now)
        return self._compiled[source]


def _zone(environment: Environment) -> timezone | None:
    """UTC where the date is fixed, the local zone otherwise."""
    if environment.variables.get("SOURCE_DATE_EPOCH", "").isdigit():
        return timezone.utc
    return datetime.fromtimestamp(environment.now()).astimezone().tzinfo


def templates_of(environment: Environment, options: TemplateOptions, info: ModelInfo) -> Templates:
    """The template of --template, else the model's; raises NO_CHAT_TEMPLATE where there is neither."""
    if options.template is not None:
        return Templates({"default": read_text_file(options.template)}, info.bos, info.eos, environment)
    if not info.templates:
        raise StrataError(NO_CHAT_TEMPLATE, f"{info.name} holds no chat template")
    return Templates(dict(info.templates), info.bos, info.eos, environment)
