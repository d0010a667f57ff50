"""The call that an answer has to be: in the template's own format, its arguments valid by the tool's schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from strata_cli.conversation.messages import Tool
from strata_cli.conversation.reply import CallArguments, CallBegan
from strata_cli.conversation.request import Request, ToolChoice
from strata_cli.engine import Aside, Constraint, Grammar
from strata_cli.errors import INVALID_REQUEST, NOT_IN_THIS_BUILD, STRUCTURED_OUTPUT_FAILED, StrataError
from strata_cli.generation.split import said_in
from strata_cli.generation.split.shown import shown
from strata_cli.generation.structured.call_grammar import arguments_schema, call_grammar, markers_of, opening_of
from strata_cli.generation.structured.task import Grammars, Place, described, place, written_after
from strata_cli.generation.structured.validation import Invalid, Validator
from strata_cli.generation.tell import Teller
from strata_cli.prompt.adapt import Reader
from strata_cli.prompt.template import ChatTemplate
from strata_cli.prompt.toolformat.schema import name_of
from strata_cli.prompt.toolformat.shape import ToolFormat
from strata_cli.prompt.turn import Prompt


class CallTask:
    """The call, or the calls, that the answer to a prompt has to be.

    Raises NOT_IN_THIS_BUILD where the template shows no format of calls that can be demanded and for a schema that
    cannot be enforced, INVALID_REQUEST for one that is none and for a prefix that begins a call and breaks off from it.
    """

    def __init__(self, choice: ToolChoice, prompt: Prompt, template: ChatTemplate, request: Request, engine: Grammars):
        self._prompt = prompt
        tools = [tool for tool in request.tools if not choice.names or name_of(tool) in choice.names]
        self._validators = {name_of(tool): self._validator(tool) for tool in tools}
        learnt = shown(Reader(template, request.tools, request.template_kwargs))
        text = learnt.format and call_grammar(learnt.format, learnt.turn, tools, several=choice.several)
        if learnt.format is None or text is None:
            raise _no_format()
        self._constraint = engine.constraint(Grammar("calls", text, markers_of(learnt.format, learnt.turn)))
        self._teller: Callable[[], Teller] = lambda: Teller.after(prompt, template, request)
        self._place = self._placed(learnt.format)
        self.notes = self._constraint.notes

    def constraint(self) -> Constraint:
        """What the next answer is held to; each call of this begins anew."""
        self._constraint.start(self._place.given, self._place.aside)
        return self._constraint

    def check(self, generated: str, *, cut: bool) -> None:
        """Raise STRUCTURED_OUTPUT_FAILED where what was generated is not whole calls, or one that may not be made."""
        text, calls = written_after(self._place, generated), self._calls(generated)
        if not calls or not self._constraint.complete(text):
            words = "was cut before it was complete" if cut else "is not what the format allows"
            raise _failure(words, text)
        for name, arguments in calls:
            try:
                self._validators[name].check(arguments)
            except Invalid as invalid:
                words = f"of {name} is not valid at {invalid.path}: {invalid.reason}"
                raise _failure(words, text, invalid.path) from None

    def _calls(self, generated: str) -> list[tuple[str, str]]:
        """Names and arguments, as whoever gets the answer will read them."""
        teller = self._teller()
        found: list[tuple[str, str]] = []
        for event in (*teller.push(generated), *teller.finish()):
            if isinstance(event, CallBegan):
                found.append((event.name, ""))
            elif isinstance(event, CallArguments):
                found[-1] = (found[-1][0], found[-1][1] + event.text)
        return found

    def _validator(self, tool: Tool) -> Validator:
        return Validator(arguments_schema(tool), f"tools: {name_of(tool)}")

    def _placed(self, format: ToolFormat) -> Place:
        """Where the call begins: what the prompt holds of it, or after everything that is there."""
        found = place(self._prompt, lambda _: True)
        if found.aside is not None:
            # An envelope ends its reasoning as it ends every message.
            close = "<|end|>" if format.recipient is not None else found.aside.close
            return replace(found, aside=Aside(found.aside.open, close, begun=found.aside.begun))
        said = said_in(self._prompt)
        start = _start(said, opening_of(format), lambda char: self._constraint.check(char) is None)
        if start is None:
            return Place("", None)
        given = said[start:]
        breach = self._constraint.check(given)
        if breach is not None:
            raise StrataError(
                INVALID_REQUEST,
                f"The answer's given beginning breaks off from the call: {described(breach, given, start)}",
                hint="Correct the prefix, or end it before the call.",
                param="assistant_prefix",
            )
        return Place(given, None, start)


def _start(said: str, opening: str, begins: Callable[[str], bool]) -> int | None:
    """Where in what is said a call begins, also where only a part of its marker is there; None where none does."""
    if not opening:
        start = len(said) - len(said.lstrip())
        return start if said.strip() and begins(said[start]) else None
    if (found := said.find(opening)) >= 0:
        return found
    part = next((size for size in range(min(len(opening), len(said)), 0, -1) if said.endswith(opening[:size])), 0)
    return len(said) - part if part else None


def _no_format() -> StrataError:
    return StrataError(
        NOT_IN_THIS_BUILD,
        "tool_choice demands a call, but the template does not show what one looks like",
        hint="leave it out, or give a template whose tool calls can be told (--template)",
        param="tool_choice",
    )


def _failure(words: str, text: str, path: str = "$") -> StrataError:
    return StrataError(STRUCTURED_OUTPUT_FAILED, f"The call {words}", details={"text": text, "path": path})
