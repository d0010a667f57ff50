"""Where a request comes from: words on the command line, files, standard input."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from strata_cli.cli.options import InputOptions, PrefillOptions, TemplateOptions
from strata_cli.cli.shape import Shape, ShapeOf
from strata_cli.conversation.incoming import decode, kind_of, load_json, mistake_in
from strata_cli.conversation.messages import Json, Message
from strata_cli.conversation.request import Request
from strata_cli.environment import Environment
from strata_cli.errors import (
    CONFLICTING_OPTIONS,
    FILE_NOT_READABLE,
    INVALID_REQUEST,
    INVALID_USAGE,
    StrataError,
)

PATIENCE = 1.0
"""Seconds of silence on an open standard input after which the user is told what is being waited for."""


NO_PROMPT = 'give one: strata chat "Hello", or pipe text or a JSON conversation'
"""What to do where nothing is asked."""
WAITING = "strata: waiting for standard input (end it with Ctrl-D, or use --input none)\n"


class Asked(NamedTuple):
    """A request and how it is answered."""

    request: Request
    shape: Shape


class Line(NamedTuple):
    """One line of a JSON lines input: the request, or the error that this line is, and how it is answered."""

    number: int
    request: Request | StrataError
    shape: Shape


class Sources(NamedTuple):
    """The raw pieces of one request, before they are put together."""

    prompt: str | None
    piped: str | None = None
    conversation: Json = None
    lines: list[bytes] | None = None
    notes: tuple[str, ...] = ()


def read_file(name: str) -> bytes:
    """A file's bytes; raises FILE_NOT_READABLE with the reason."""
    try:
        return Path(os.path.expanduser(name)).read_bytes()
    except OSError as error:
        raise StrataError(FILE_NOT_READABLE, f"cannot read {name}: {error.strerror}") from None
    except ValueError as error:
        raise StrataError(FILE_NOT_READABLE, f"cannot read {name!r}: {error}") from None


def read_text_file(name: str) -> str:
    return decode(read_file(name), name)


def chunks(environment: Environment) -> Iterator[bytes]:
    """Standard input as it comes, up to its end; says on stderr what it waits for."""
    if environment.stdin is None:
        return
    told = environment.stdin_terminal
    while True:
        environment.interrupt.blocking = True
        try:
            if not told and not select.select([environment.stdin], [], [], PATIENCE)[0]:
                environment.stderr.text(WAITING)
            told = True
            environment.interrupt.blocking = True
            data = os.read(environment.stdin, 1 << 20)
        except OSError as error:
            raise StrataError(FILE_NOT_READABLE, f"cannot read standard input: {error.strerror}") from None
        finally:
            environment.interrupt.blocking = False
        if not data:
            return
        yield data


def read_stdin(environment: Environment) -> str:
    return decode(b"".join(chunks(environment)), "standard input")


def lines(environment: Environment) -> Iterator[bytes]:
    """Standard input line by line, each as soon as it is complete; without line ends, blank lines left out."""
    rest: list[bytes] = []
    for data in chunks(environment):
        *complete, last = data.split(b"\n")
        for part in complete:
            line = b"".join([*rest, part])
            rest = []
            if line.strip():
                yield line
        rest.append(last)
    if (line := b"".join(rest)).strip():
        yield line


def words(prompt: list[str] | None, file: str | None) -> str | None:
    """The prompt of the command line: the file's text, a blank line, the words joined with spaces."""
    spoken = " ".join(prompt) if prompt else None
    if file is None:
        return spoken
    return _joined(read_text_file(file), spoken)


def fields_of(options: PrefillOptions) -> dict[str, Json]:
    """What the command line says in a conversation's own words."""
    return {"continue_final_message": True} if options.continue_final else {}


def prefix_of(options: PrefillOptions) -> str:
    if options.prefix is not None and options.prefix_file is not None:
        raise StrataError(CONFLICTING_OPTIONS, "--prefix and --prefix-file exclude each other")
    if options.prefix_file is not None:
        return read_text_file(options.prefix_file)
    return options.prefix or ""


def raw_text(environment: Environment, words: str | None, kind: str) -> str:
    """The text that `strata complete` continues, byte for byte."""
    text = _joined(_piped(environment, kind), words)
    if text is None:
        hint = 'give it: strata complete "Once upon a time", or pipe it'
        raise StrataError(INVALID_USAGE, "there is no text to continue", hint=hint)
    return text


def asked(
    environment: Environment,
    prompt: str | None,
    options: InputOptions,
    fields: dict[str, Json],
    finish: Callable[[Request], Request],
    shape_of: ShapeOf,
    *,
    missing: str | None = NO_PROMPT,
) -> Asked | Iterator[Line]:
    """What is asked for: one request, or one a line.

    `fields` are laid over each JSON conversation before it is parsed; `finish` adds what the command line says.

    Raises INVALID_USAGE when nothing is asked, with the hint `missing`; None: that is no error.
    """
    reader = Reader(fields, finish, shape_of)
    if options.input == "jsonl" and environment.stdin is not None:
        return reader.lines(lines(environment))
    sources = _gather(environment, prompt, options, continued=bool(fields))
    if sources.lines is not None:
        return reader.lines(iter(sources.lines))
    text = _joined(sources.piped, sources.prompt)
    if sources.conversation is not None:
        return reader.one(sources.conversation, text)
    if text is None and missing is not None:
        raise StrataError(INVALID_USAGE, "there is no prompt", hint=missing)
    shape = shape_of(None)
    with shape.errors():
        messages = () if text is None else (Message("user", text),)
        return Asked(finish(Request(messages, notes=sources.notes)), shape)


class Reader(NamedTuple):
    """Reads requests as JSON, with what the command line says of them."""

    fields: dict[str, Json]
    finish: Callable[[Request], Request]
    shape_of: ShapeOf

    def one(self, conversation: Json, text: str | None = None) -> Asked:
        """One request; `text` is one more user's turn."""
        # What is no JSON needs no dialect, and a start is felt at every prompt.
        from strata_cli.conversation.dialects import DIALECTS

        shape = self.shape_of(conversation)
        with shape.errors():
            conversation = self._laid_over(conversation, text)
            return Asked(self.finish(DIALECTS[shape.dialect].parse(conversation)), shape)

    def _laid_over(self, conversation: Json, text: str | None) -> Json:
        if isinstance(conversation, list):
            conversation = {"messages": conversation}
        if not isinstance(conversation, dict):
            return conversation
        conversation = {**conversation, **self.fields}
        messages = conversation.get("messages")
        if text is not None and isinstance(messages, list):
            conversation["messages"] = [*messages, {"role": "user", "content": text}]
        return conversation

    def lines(self, source: Iterator[bytes]) -> Iterator[Line]:
        """What is wrong with a line is a value, so that the lines after it are still answered."""
        for number, data in enumerate(source, start=1):
            shape, name = self.shape_of(None), f"line {number} of standard input"
            request: Request | StrataError
            try:
                value = load_json(decode(data, name), name)
                shape = self.shape_of(value)
                request = self.one(value).request
            except StrataError as error:
                request = error
            yield Line(number, request, shape)


def _gather(environment: Environment, prompt: str | None, options: InputOptions, *, continued: bool) -> Sources:
    """Read the files and standard input, and find out which of it is a conversation; text cannot be `continued`."""
    kind = options.input or "auto"
    if options.messages is not None:
        conversation = load_json(read_text_file(options.messages), options.messages)
        return Sources(prompt, _piped(environment, kind), conversation)
    piped = _piped(environment, kind)
    if piped is None:
        return Sources(prompt)
    notes = ()
    if kind == "auto":
        kind = kind_of(piped) if prompt is None else "text"
        mistake = mistake_in(piped) if kind == "text" and prompt is None else None
        if mistake is not None:
            kind = "json" if continued else kind
            notes = (f"standard input begins like a conversation, but {mistake}; so it is a message's text",)
    if kind == "json":
        return Sources(prompt, conversation=load_json(piped, "standard input"))
    if kind == "jsonl":
        return Sources(prompt, lines=[line for line in piped.encode().split(b"\n") if line.strip()])
    return Sources(prompt, piped, notes=notes)


def _piped(environment: Environment, kind: str) -> str | None:
    """Standard input's text; from a terminal only where a kind was named."""
    if kind == "none" or environment.stdin is None or (environment.stdin_terminal and kind == "auto"):
        return None
    text = read_stdin(environment)
    return None if kind == "auto" and not text else text


def _joined(piped: str | None, prompt: str | None) -> str | None:
    if piped is None or prompt is None:
        return prompt if piped is None else piped
    gap = "" if piped.endswith("\n\n") else "\n" if piped.endswith("\n") else "\n\n"
    return f"{piped}{gap}{prompt}"


def with_options(
    request: Request,
    system: str | None,
    prefill: PrefillOptions,
    prefix: str,
    template: TemplateOptions,
) -> Request:
    """The request with what the command line says in place of its own fields, each replacement a note."""
    notes = list(request.notes)
    changes: dict[str, object] = {}
    if system is not None:
        changes["messages"] = _with_system(request, system)
    if prefix:
        if request.assistant_prefix not in ("", prefix):
            notes.append("--prefix replaces the request's assistant_prefix")
        changes["assistant_prefix"] = prefix
    if prefill.continue_final and not request.continue_final:
        changes |= {"continue_final": True, "add_generation_prompt": False}
    if _ends_complete(request, prefill, prefix):
        notes.append(
            "the conversation ends with an assistant message, which counts as complete; --continue goes on with it"
        )
    if kwargs := template_kwargs(template):
        changes["template_kwargs"] = {**request.template_kwargs, **kwargs}
    return request._replace(notes=tuple(notes), **changes)


_ANY_REQUEST: dict[str, Json] = {"messages": [], "max_tokens": 1}


def with_tools(request: Request, file: str | None) -> Request:
    """The request with the tools of --tools in place of its own, which is a note."""
    if file is None:
        return request
    from strata_cli.conversation.dialects import DIALECTS

    value = load_json(read_text_file(file), file)
    listed = value if isinstance(value, list) else [value]
    anthropic = any(isinstance(tool, dict) and "input_schema" in tool for tool in listed)
    tools = DIALECTS["anthropic" if anthropic else "openai"].parse({**_ANY_REQUEST, "tools": listed}).tools
    replaced = ("--tools replaces the request's tools",) if request.tools else ()
    return request._replace(tools=tools, notes=(*request.notes, *replaced))


def _ends_complete(request: Request, prefill: PrefillOptions, prefix: str) -> bool:
    if prefill.continue_final or request.continue_final or prefix or request.assistant_prefix:
        return False
    return bool(request.messages) and request.messages[-1].role == "assistant"


def _with_system(request: Request, system: str) -> tuple[Message, ...]:
    return (Message("system", system), *request.messages)


def template_kwargs(options: TemplateOptions) -> dict[str, Json]:
    kwargs: dict[str, Json] = {}
    if options.template_kwargs is not None:
        value = load_json(options.template_kwargs, "--template-kwargs")
        if not isinstance(value, dict):
            raise StrataError(
                INVALID_REQUEST,
                "--template-kwargs is not a JSON object",
                hint="""write it as '{"name": value}'""",
                param="chat_template_kwargs",
            )
        kwargs.update(value)
    if options.think is not None:
        kwargs["enable_thinking"] = options.think
    return kwargs
