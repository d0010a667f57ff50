"""The work of `strata chat`: one request, or one for each line of standard input."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

from strata_cli.cli import input as incoming
from strata_cli.cli.answer import Conversation
from strata_cli.cli.destination import destination
from strata_cli.cli.kept import Kept
from strata_cli.cli.opening import open_engine, with_sampling
from strata_cli.cli.options import (
    DeviceOptions,
    InputOptions,
    ModelOptions,
    OutputOptions,
    PrefillOptions,
    SamplingOptions,
    SessionOptions,
    StructureOptions,
    TemplateOptions,
)
from strata_cli.cli.shape import Shape, shape_of
from strata_cli.cli.structure import structure_of, with_structure
from strata_cli.cli.templates import templates_of
from strata_cli.conversation.incoming import load_json
from strata_cli.conversation.reply import Choice, Gathering, Reasoning, Reply, Text
from strata_cli.conversation.request import Request
from strata_cli.environment import Environment, Stream, listening
from strata_cli.errors import CONFLICTING_OPTIONS, ExitStatus, Interrupted, StrataError
from strata_cli.output import json
from strata_cli.output.terminal.messages import Messages
from strata_cli.output.terminal.reasoning import Thinking
from strata_cli.output.terminal.screen import Answer, answer_on
from strata_cli.output.terminal.stats import remark, stats
from strata_cli.prompt.turn import Prompt, check


def converse(
    environment: Environment,
    prompt: list[str] | None,
    prefill: PrefillOptions,
    input: InputOptions,
    session: SessionOptions,
    model: ModelOptions,
    template: TemplateOptions,
    structure: StructureOptions,
    sampling: SamplingOptions,
    device: DeviceOptions,
    output: OutputOptions,
) -> ExitStatus:
    """Answer what the command line and standard input ask; raises StrataError and Interrupted."""
    messages = Messages(environment, quiet=output.quiet, debug=output.debug or environment.debug)
    prefix, document = incoming.prefix_of(prefill), structure_of(structure)
    kept = Kept.read(session.session)

    def opened(model: ModelOptions) -> Conversation:
        engine = open_engine(environment, messages, model, device, quiet=output.quiet, cached=not output.no_cache)
        templates = templates_of(environment, template, engine.info)
        return Conversation(environment, messages, engine, engine.timeline(), templates, output.quiet)

    def check_model(model: ModelOptions) -> None:
        engine = open_engine(environment, messages, model, device, vocab_only=True, quiet=True)
        with contextlib.closing(engine):
            templates_of(environment, template, engine.info)

    if is_talk(environment, prompt, input, prefill, output):
        if document is not None:
            hint = "give the prompt on the command line"
            raise StrataError(CONFLICTING_OPTIONS, f"{document.field} asks for one answer, not for a talk", hint=hint)
        from strata_cli.cli.repl import begin

        kwargs = incoming.template_kwargs(template)
        return begin(
            environment, messages, opened, check_model, model, kept, input.system, prefix, kwargs, sampling, output
        )

    def finish(request: Request) -> Request:
        request = incoming.with_options(kept.before(request, input.system), input.system, prefill, prefix, template)
        request = with_structure(incoming.with_tools(request, input.tools), document, structure)
        options, notes = with_sampling(request.sampling, sampling)
        request = with_output(request._replace(sampling=options, notes=(*request.notes, *notes)), output)
        check(request)
        return request

    said, fields = incoming.words(prompt, input.file), incoming.fields_of(prefill)
    shapes = functools.partial(shape_of, output.format, input.dialect)
    missing = kept.missing(continued=prefill.continue_final)
    asked = incoming.asked(environment, said, input, fields, finish, shapes, missing=missing)
    one = isinstance(asked, incoming.Asked)
    if one:
        check_shape(asked, output, kept)
    elif kept.file is not None:
        raise StrataError(CONFLICTING_OPTIONS, "--session keeps one conversation, and these are JSON lines of many")
    with (
        asked.shape.errors() if one else contextlib.nullcontext(),
        listening(environment.interrupt),
        destination(environment, output.output) as stream,
    ):
        conversation = opened(model)
        with contextlib.closing(conversation.engine):
            shown = Shown(conversation, stream, output, kept)
            return shown.one(asked) if one else shown.lines(asked)


def with_output(request: Request, output: OutputOptions) -> Request:
    """The request with what the command line says of its answer's form, each replacement a note."""
    delivery, notes = request.delivery, list(request.notes)
    if output.logprobs is not None:
        if delivery.logprobs not in (None, output.logprobs):
            notes.append(f"the command line's logprobs replaces the request's {delivery.logprobs}")
        delivery = delivery._replace(logprobs=output.logprobs)
    if output.format is not None and delivery.stream not in (None, output.format == "jsonl"):
        asked = "true" if delivery.stream else "false"
        notes.append(f"the command line's --format {output.format} replaces the request's stream: {asked}")
    return request._replace(delivery=delivery, notes=tuple(notes))


def check_shape(asked: incoming.Asked, output: OutputOptions, kept: Kept) -> None:
    """Refuse what has no place in the answer's form, before any work."""
    several = asked.request.delivery.choices > 1
    with asked.shape.errors():
        if several and kept.file is not None:
            raise StrataError(CONFLICTING_OPTIONS, "--session keeps one answer, and n asks for several", param="n")
        if asked.shape.format != "text":
            return
        hint = "add --format json"
        if output.logprobs is not None:
            raise StrataError(CONFLICTING_OPTIONS, "--logprobs has no place in text", hint=hint)
        if several:
            raise StrataError(CONFLICTING_OPTIONS, "n asks for several answers, and text is one", hint=hint, param="n")


def is_talk(
    environment: Environment,
    prompt: list[str] | None,
    input: InputOptions,
    prefill: PrefillOptions,
    output: OutputOptions,
) -> bool:
    """A conversation begins where a person sits at both ends and nothing was asked yet."""
    asked = prompt or input.file or input.messages or input.input or prefill.continue_final
    plain = output.output is None and output.format in (None, "text") and output.logprobs is None
    return not asked and plain and environment.stdin_terminal and environment.stdout.terminal


def call_lines(choice: Choice) -> Iterator[str]:
    """Each tool call as a line of JSON, after the answer's text."""
    if choice.calls and choice.content and not choice.content.endswith("\n"):
        yield "\n"
    for call in choice.calls:
        yield json.line({"name": call.name, "arguments": load_json(str(call.arguments), "the call")})


class Shown:
    """Answers in the chosen format."""

    def __init__(self, conversation: Conversation, stream: Stream, output: OutputOptions, kept: Kept) -> None:
        self._kept = kept
        self._conversation = conversation
        self._messages = conversation.messages
        self._stream = stream
        self._output = output

    def one(self, asked: incoming.Asked) -> ExitStatus:
        """Answer one request as text, as a JSON object or as its stream."""
        prompt = self._conversation.compose(asked.request)
        return self.composed(prompt, asked, echo=prompt.text[prompt.header_end :])

    def composed(self, prompt: Prompt, asked: incoming.Asked, echo: str, shown: str | None = None) -> ExitStatus:
        """Answer a composed prompt; `echo` is the given beginning of the answer, `shown` what a terminal has of it."""
        if asked.shape.format == "text":
            self._text(prompt, asked.request, echo, shown)
        else:
            self._json(prompt, asked.request, asked.shape)
        return ExitStatus.OK

    def lines(self, asked: Iterator[incoming.Line]) -> ExitStatus:
        """JSON for each request, an error being one line too; the status is that of the first error."""
        status = ExitStatus.OK
        for line in asked:
            try:
                if isinstance(line.request, StrataError):
                    raise line.request
                self._json(self._conversation.compose(line.request), line.request, line.shape)
            except StrataError as error:
                self._stream.text(json.error_text(error, line.shape.dialect))
                status = status or error.kind.status
        return status

    def _json(self, prompt: Prompt, request: Request, shape: Shape) -> None:
        gathering = Gathering()
        with contextlib.closing(self._conversation.answer(prompt, request)) as events:
            if shape.format == "jsonl":
                for text in json.stream_texts(gathering.through(events), shape.dialect):
                    # A signal that ends a wait for the reader ends the generation too, at its next token.
                    with contextlib.suppress(Interrupted):
                        self._stream.text(text)
            else:
                for _ in gathering.through(events):
                    pass
        reply = gathering.reply
        self._kept.keep(request, reply, self._messages)
        if shape.format != "jsonl":
            self._stream.text(json.reply_text(reply, shape.dialect))
        self._after(reply)

    def _text(self, prompt: Prompt, request: Request, echo: str, shown: str | None) -> None:
        for note in prompt.notes:
            self._messages.note(note)
        if request.delivery.logprobs is not None:
            self._messages.note("logprobs have no place in text; --format json has one")
        answer, gathering = self._screen(request), Gathering()
        try:
            if self._output.echo and not self._stream.terminal:
                answer.write(echo)
            answer.begin(echo, shown)
            with contextlib.closing(self._conversation.answer(prompt, request)) as events:
                for event in gathering.through(events):
                    with contextlib.suppress(Interrupted):
                        if isinstance(event, Text):
                            answer.write(event.text)
                        elif isinstance(event, Reasoning):
                            answer.write_reasoning(event.text)
            for line in call_lines(gathering.reply.choices[0]):
                answer.write(line)
            self._kept.keep(request, gathering.reply, self._messages)
        finally:
            answer.finish()
        if reason := remark(gathering.reply, self._conversation.engine.info.context):
            self._messages.aside(reason)
        self._after(gathering.reply)

    def _screen(self, request: Request) -> Answer:
        output = self._output
        # A document is data, not markdown.
        raw = output.raw or request.structure is not None
        thinking: Thinking = "hide" if output.hide_thinking else "show"
        return answer_on(
            self._conversation.environment,
            self._stream,
            raw=raw,
            colour=output.color or "auto",
            thinking=thinking,
        )

    def _after(self, reply: Reply) -> None:
        if self._output.stats:
            for line in stats(self._conversation.engine.info, self._conversation.engine.threads, reply):
                self._messages.line(line)
        if any(choice.ending == "interrupted" for choice in reply.choices):
            raise Interrupted
