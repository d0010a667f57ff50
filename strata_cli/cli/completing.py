"""The work of `strata complete`: raw text goes on, without a template."""

from __future__ import annotations

import contextlib

from strata_cli.cli import input as incoming
from strata_cli.cli.answer import Conversation
from strata_cli.cli.conversing import Shown, check_shape, with_output
from strata_cli.cli.destination import destination
from strata_cli.cli.input import Asked
from strata_cli.cli.kept import Kept
from strata_cli.cli.opening import open_engine, with_sampling
from strata_cli.cli.options import DeviceOptions, ModelOptions, OutputOptions, RawInputOptions, SamplingOptions
from strata_cli.cli.shape import shape_of
from strata_cli.conversation.request import Request
from strata_cli.conversation.request import SamplingOptions as Requested
from strata_cli.environment import Environment, listening
from strata_cli.errors import ExitStatus
from strata_cli.output.terminal.messages import Messages
from strata_cli.prompt.turn import Opening, Prompt


def complete(
    environment: Environment,
    words: list[str] | None,
    input: RawInputOptions,
    model: ModelOptions,
    sampling: SamplingOptions,
    device: DeviceOptions,
    output: OutputOptions,
) -> ExitStatus:
    """Continue the text of the command line, of a file or of standard input; raises StrataError and Interrupted."""
    messages = Messages(environment, quiet=output.quiet, debug=output.debug or environment.debug)
    text = incoming.raw_text(environment, incoming.words(words, input.file), input.input or "auto")
    request = with_output(Request(messages=(), sampling=with_sampling(Requested(), sampling)[0]), output)
    asked, kept = Asked(request, shape_of(output.format, input.dialect, None)), Kept()
    check_shape(asked, output, kept)
    with asked.shape.errors(), listening(environment.interrupt), destination(environment, output.output) as stream:
        engine = open_engine(environment, messages, model, device, quiet=output.quiet, cached=not output.no_cache)
        with contextlib.closing(engine):
            conversation = Conversation(environment, messages, engine, engine.timeline(), None, output.quiet)
            shown = None if output.echo else text.rpartition("\n")[2]
            return Shown(conversation, stream, output.but(raw=True), kept).composed(_raw(text), asked, text, shown)


def _raw(text: str) -> Prompt:
    return Prompt(
        text=text, header_end=len(text), kind="generation", opening=Opening("content", None), spans=(), notes=()
    )
