"""The work of `strata render`: the exact prompt of one request, or of one for each line of standard input."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from strata_cli.cli import input as incoming
from strata_cli.cli.destination import destination
from strata_cli.cli.options import (
    DeviceOptions,
    InputOptions,
    ModelOptions,
    PrefillOptions,
    RenderOutputOptions,
    StructureOptions,
    TemplateOptions,
    TokenTextOptions,
)
from strata_cli.cli.shape import Shape, spoken
from strata_cli.cli.structure import structure_of, with_structure
from strata_cli.cli.templates import Templates, templates_of
from strata_cli.conversation.messages import Json
from strata_cli.conversation.request import Request
from strata_cli.environment import Environment, Stream, listening
from strata_cli.errors import ExitStatus, StrataError
from strata_cli.output import json
from strata_cli.output.terminal.messages import Messages
from strata_cli.prompt.turn import Prompt, check, compose

if TYPE_CHECKING:
    from strata_cli.engine import Engine
    from strata_cli.generation.accounting import Accounting


class Rendering(NamedTuple):
    """A composed prompt and, where there is a vocabulary, its tokens and their accounting."""

    prompt: Prompt
    tokens: list[int] | None
    accounting: Accounting | None
    token_texts: tuple[bytes, ...] = ()

    def value(self) -> dict[str, Json]:
        """As JSON: character positions for the spans, token counts for the prefill."""
        value: dict[str, Json] = {"prompt": self.prompt.text, "header_end": self.prompt.header_end}
        if self.tokens is not None and self.accounting is not None:
            value["tokens"] = list(self.tokens)
            value["prefill"] = {
                "prompt_tokens": self.accounting.prompt_tokens,
                "prefix_tokens": self.accounting.prefix_tokens,
                "start_position": self.accounting.start_position,
            }
        value["spans"] = [{"start": s.start, "end": s.end, "kind": s.kind} for s in self.prompt.spans]
        value["notes"] = list(self.prompt.notes)
        return value


def render(
    environment: Environment,
    words: list[str] | None,
    prefill: PrefillOptions,
    input: InputOptions,
    model: ModelOptions,
    template: TemplateOptions,
    structure: StructureOptions,
    token_texts: TokenTextOptions,
    output: RenderOutputOptions,
) -> ExitStatus:
    """Render what the command line and standard input ask; raises StrataError and Interrupted."""
    messages = Messages(environment, quiet=output.quiet, debug=output.debug or environment.debug)
    prefix, document = incoming.prefix_of(prefill), structure_of(structure)

    def finish(request: Request) -> Request:
        request = incoming.with_options(request, input.system, prefill, prefix, template)
        request = with_structure(incoming.with_tools(request, input.tools), document, structure)
        check(request)
        return request

    def shape_of(value: Json) -> Shape:
        return Shape(output.format or "text", spoken(input.dialect, value))

    said, fields = incoming.words(words, input.file), incoming.fields_of(prefill)
    asked = incoming.asked(environment, said, input, fields, finish, shape_of)
    with (
        asked.shape.errors() if isinstance(asked, incoming.Asked) else contextlib.nullcontext(),
        listening(environment.interrupt),
        destination(environment, output.output) as stream,
        _opened(environment, messages, model, template, token_texts) as (templates, engine),
    ):
        shown = _Shown(environment, messages, stream, output, _renderer(templates, engine))
        return shown.one(asked.request) if isinstance(asked, incoming.Asked) else shown.lines(asked)


@contextlib.contextmanager
def _opened(
    environment: Environment,
    messages: Messages,
    model: ModelOptions,
    template: TemplateOptions,
    texts: TokenTextOptions,
) -> Iterator[tuple[Templates, Engine | None]]:
    """The templates, and the vocabulary where a model was named or has to give the template."""
    if template.template is not None and not model.model:
        source = incoming.read_text_file(template.template)
        yield Templates({"default": source}, texts.bos or "", texts.eos or "", environment), None
        return
    from dataclasses import replace

    from strata_cli.cli.opening import open_engine

    engine = open_engine(environment, messages, model, DeviceOptions(), vocab_only=True)
    with contextlib.closing(engine):
        info = replace(
            engine.info,
            bos=engine.info.bos if texts.bos is None else texts.bos,
            eos=engine.info.eos if texts.eos is None else texts.eos,
        )
        yield templates_of(environment, template, info), engine


def _renderer(templates: Templates, engine: Engine | None) -> Callable[[Request], Rendering]:
    def rendered(request: Request) -> Rendering:
        if request.structure is not None:
            from strata_cli.generation.structured.instruction import instructed

            request = instructed(request)
        prompt = compose(templates.chosen(tools=bool(request.tools)), request)
        prompt = prompt._replace(notes=(*request.notes, *prompt.notes))
        if engine is None:
            return Rendering(prompt, None, None)
        from strata_cli.generation.accounting import account

        tokens, accounting = account(engine.tokenize, prompt)
        return Rendering(prompt, tokens, accounting, tuple(map(engine.token_bytes, tokens)))

    return rendered


class _Shown:
    """Renderings in the chosen format."""

    def __init__(
        self,
        environment: Environment,
        messages: Messages,
        stream: Stream,
        output: RenderOutputOptions,
        rendered: Callable[[Request], Rendering],
    ) -> None:
        self._messages = messages
        self._stream = stream
        self._json = output.format == "json"
        self._colour = environment.colour(stream, output.color or "auto")
        self._rendered = rendered

    def one(self, request: Request) -> ExitStatus:
        rendering = self._rendered(request)
        if self._json:
            self._stream.text(json.line(rendering.value()))
            return ExitStatus.OK
        for note in rendering.prompt.notes:
            self._messages.note(note)
        if rendering.accounting is not None:
            from strata_cli.generation.accounting import line

            continued = rendering.prompt.kind == "continuation"
            self._messages.debug(line(rendering.accounting, continued=continued))
            self._messages.debug(f"tokens: {' '.join(map(str, rendering.tokens or ()))}")
        self._stream.text(self._text(rendering))
        return ExitStatus.OK

    def _text(self, rendering: Rendering) -> str:
        """Exactly the prompt, unless a person looks at it."""
        if not self._stream.terminal and not self._colour:
            return rendering.prompt.text
        from strata_cli.output.terminal.picture import picture

        return picture(rendering.prompt, rendering.token_texts, colour=self._colour)

    def lines(self, asked: Iterator[incoming.Line]) -> ExitStatus:
        status = ExitStatus.OK
        for asked_line in asked:
            try:
                if isinstance(asked_line.request, StrataError):
                    raise asked_line.request
                self._stream.text(json.line(self._rendered(asked_line.request).value()))
            except StrataError as error:
                self._stream.text(json.error_text(error, asked_line.shape.dialect))
                status = status or error.kind.status
        return status
