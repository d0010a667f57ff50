"""The work of `strata chat`: one request, or one for each line of standard input."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

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
    TemplateOptions,
)
from strata_cli.cli.templates import templates_of
from strata_cli.conversation.reply import Reply
from strata_cli.conversation.request import Request
from strata_cli.environment import Environment, Stream, listening
from strata_cli.errors import CONFLICTING_OPTIONS, ExitStatus, Interrupted, StrataError
from strata_cli.output import json
from strata_cli.output.terminal.screen import Messages, TextAnswer
from strata_cli.output.terminal.stats import stats
from strata_cli.prompt.turn import Prompt, check


def converse(
    environment: Environment,
    prompt: list[str] | None,
    prefill: PrefillOptions,
    input: InputOptions,
    session: SessionOptions,
    model: ModelOptions,
    template: TemplateOptions,
    sampling: SamplingOptions,
    device: DeviceOptions,
    output: OutputOptions,
) -> ExitStatus:
    """Answer what the command line and standard input ask; raises StrataError and Interrupted."""
    messages = Messages(environment, quiet=output.quiet, debug=output.debug or environment.debug)
    prefix = incoming.prefix_of(prefill)
    kept = Kept.read(session.session)

    def opened(model: ModelOptions) -> Conversation:
        engine = open_engine(environment, messages, model, device, quiet=output.quiet)
        templates = templates_of(environment, template, engine.info)
        return Conversation(environment, messages, engine, engine.timeline(), templates, output.quiet)

    def check_model(model: ModelOptions) -> None:
        engine = open_engine(environment, messages, model, device, vocab_only=True, quiet=True)
        with contextlib.closing(engine):
            templates_of(environment, template, engine.info)

    if is_talk(environment, prompt, input, prefill, output):
        from strata_cli.cli.repl import begin

        kwargs = incoming.template_kwargs(template)
        return begin(environment, messages, opened, check_model, model, kept, input.system, prefix, kwargs, sampling)

    def finish(request: Request) -> Request:
        request = incoming.with_options(kept.before(request, input.system), input.system, prefill, prefix, template)
        options, notes = with_sampling(request.sampling, sampling)
        request = replace(request, sampling=options, notes=(*request.notes, *notes))
        check(request)
        return request

    said, fields = incoming.words(prompt, input.file), incoming.fields_of(prefill)
    asked = incoming.asked(environment, said, input, fields, finish, may_be_empty=bool(kept.dialogue.messages))
    if kept.file is not None and not isinstance(asked, Request):
        raise StrataError(CONFLICTING_OPTIONS, "--session keeps one conversation, and these are JSON lines of many")
    with listening(environment.interrupt), destination(environment, output.output) as stream:
        conversation = opened(model)
        with contextlib.closing(conversation.engine):
            shown = Shown(conversation, stream, output, kept)
            return shown.one(asked) if isinstance(asked, Request) else shown.lines(asked)


def is_talk(
    environment: Environment,
    prompt: list[str] | None,
    input: InputOptions,
    prefill: PrefillOptions,
    output: OutputOptions,
) -> bool:
    """A conversation begins where a person sits at both ends and nothing was asked yet."""
    asked = prompt or input.file or input.messages or input.input or prefill.continue_final
    plain = output.output is None and output.format in (None, "text")
    return not asked and plain and environment.stdin_terminal and environment.stdout.terminal


class Nowhere:
    """A sink for answers that are shown when they are complete."""

    def write(self, text: str) -> None:
        pass


class Shown:
    """Answers in the chosen format."""

    def __init__(self, conversation: Conversation, stream: Stream, output: OutputOptions, kept: Kept) -> None:
        self._kept = kept
        self._conversation = conversation
        self._messages = conversation.messages
        self._stream = stream
        self._output = output

    def one(self, request: Request) -> ExitStatus:
        """Answer one request as text or as a JSON object."""
        prompt = self._conversation.compose(request)
        if self._output.format == "json":
            self._json(prompt, request)
        else:
            self._text(prompt, request, echo=prompt.text[prompt.header_end :])
        return ExitStatus.OK

    def raw(self, prompt: Prompt, request: Request) -> ExitStatus:
        """Continue raw text, which is all given beginning."""
        if self._output.format == "json":
            self._json(prompt, request)
        else:
            self._text(prompt, request, echo=prompt.text)
        return ExitStatus.OK

    def lines(self, asked: Iterator[incoming.Line]) -> ExitStatus:
        """One JSON line for each request, an error being one too; the status is that of the first error."""
        status = ExitStatus.OK
        for line in asked:
            try:
                if isinstance(line.request, StrataError):
                    raise line.request
                self._json(self._conversation.compose(line.request), line.request)
            except StrataError as error:
                self._stream.text(json.error_text(error))
                status = status or error.kind.status
        return status

    def _json(self, prompt: Prompt, request: Request) -> None:
        reply = self._conversation.answer(prompt, request, Nowhere())
        self._kept.keep(request, reply, self._messages)
        self._stream.text(json.reply_text(reply))
        self._after(reply)

    def _text(self, prompt: Prompt, request: Request, echo: str) -> None:
        for note in prompt.notes:
            self._messages.note(note)
        answer = TextAnswer(self._stream)
        try:
            if self._output.echo:
                answer.write(echo)
            reply = self._conversation.answer(prompt, request, answer)
            self._kept.keep(request, reply, self._messages)
        finally:
            answer.finish()
        self._after(reply)

    def _after(self, reply: Reply) -> None:
        if self._output.stats:
            for line in stats(self._conversation.engine.info, reply):
                self._messages.line(line)
        if reply.ending == "interrupted":
            raise Interrupted
