"""The REPL: a dialogue with an open model, in which an answer can be stopped, edited and truly continued."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from strata_cli.cli.answer import Conversation, Outcome
from strata_cli.cli.kept import elsewhere
from strata_cli.conversation import saved
from strata_cli.conversation.dialogue import Dialogue, Draft
from strata_cli.conversation.messages import Json
from strata_cli.conversation.reply import Delta, Reasoning, Text
from strata_cli.conversation.request import Request, SamplingOptions
from strata_cli.engine import Prefill
from strata_cli.environment import Environment
from strata_cli.errors import CONTEXT_LENGTH_EXCEEDED, Interrupted, StrataError
from strata_cli.generation.accounting import Accounting, line
from strata_cli.generation.tell import Teller
from strata_cli.output.terminal.messages import Messages, error_line
from strata_cli.output.terminal.reasoning import Thinking
from strata_cli.output.terminal.repl import is_dumb, unechoed
from strata_cli.output.terminal.screen import Answer, answer_on
from strata_cli.prompt.turn import Prompt, Span
from strata_cli.store.sessions import SessionFile

EVERY = 1.0
"""Seconds after which what came of an answer is saved again while it is still coming."""


@dataclass(frozen=True, slots=True)
class Start:
    """From where a generation starts: its tokens, what of the answer is given, the bytes of half a character.

    `reasoned` is the reasoning that the prompt goes on with; `raw` is what the model said after `prompt` before it was
    stopped, markup included.
    """

    tokens: tuple[int, ...]
    begun: str
    accounting: Accounting
    continued: bool
    prompt: Prompt
    reasoned: str = ""
    raw: str = ""
    pending: bytes = b""

    @property
    def so_far(self) -> Prompt:
        """The prompt with what the model said after it before it was stopped."""
        end = len(self.prompt.text)
        span = Span(end, end + len(self.raw), "prefix")
        spans = (*self.prompt.spans, span) if self.raw else self.prompt.spans
        return self.prompt._replace(text=self.prompt.text + self.raw, spans=spans)


class Coming:
    """An answer while it comes: shown at once, and saved from time to time."""

    def __init__(self, shown: Answer, teller: Teller, save: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._shown, self._teller, self._save, self._clock = shown, teller, save, clock
        self._saved = clock()
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def write(self, text: str) -> None:
        self._pieces.append(text)
        self._show(self._teller.push(text))
        if self._clock() - self._saved >= EVERY:
            self._save(self.text)
            self._saved = self._clock()

    def finish(self) -> None:
        """Show what was held back, and end the last line."""
        self._show(self._teller.finish())
        self._shown.finish()

    def _show(self, deltas: Iterable[Delta]) -> None:
        for delta in deltas:
            if isinstance(delta, Text):
                self._shown.write(delta.text)
            elif isinstance(delta, Reasoning):
                self._shown.write_reasoning(delta.text)


@dataclass(slots=True)
class Talk:
    """The state of one REPL. `dialogue` is replaced, never changed; every change is saved when there is a session.

    `files` are those that this talk has loaded or saved, by where they are; `before_clear` is what /clear took away.
    """

    environment: Environment
    messages: Messages
    conversation: Conversation
    reopen: Callable[[str], Conversation]
    edit: Callable[[str], str]
    check_model: Callable[[str], None] = lambda name: None
    dialogue: Dialogue = field(default_factory=Dialogue)
    sampling: SamplingOptions = field(default_factory=SamplingOptions)
    template_kwargs: dict[str, Json] = field(default_factory=dict)
    raw: bool = False
    colour: str = "auto"
    thinking: Thinking = "show"
    session: SessionFile | None = None
    files: dict[str, SessionFile] = field(default_factory=dict)
    before_clear: Dialogue | None = None
    accounting: Accounting | None = None
    continued: bool = False
    prefill: Prefill | None = None
    counted: tuple[Dialogue, int | None] | None = None
    drafted: tuple[Draft, Start, str] | None = None

    # What is said

    def say(self, text: str) -> None:
        self.change(self.dialogue.say(text))
        self.before_clear = None
        self.answer()

    def change(self, dialogue: Dialogue) -> None:
        """Put another dialogue in place and save it; one that cannot be saved is said to be so and goes on."""
        self.dialogue = dialogue
        try:
            self._save(dialogue)
        except StrataError as error:
            self.failed(error)

    def _save(self, dialogue: Dialogue) -> None:
        if self.session is None:
            return
        name = self.session.name
        if moved := self.session.keep(saved.dump(dialogue)):
            self.note(elsewhere(name, moved))

    def _save_meanwhile(self, dialogue: Dialogue) -> None:
        """Save without a word; the save at the end says what is wrong."""
        if self.session is not None:
            with contextlib.suppress(StrataError):
                self.session.replace(saved.dump(dialogue))

    def note(self, text: str) -> None:
        self.messages.note(text)

    def answer(self) -> None:
        """Let the model go on from where the dialogue stands, and keep what comes, however it ends."""
        start = self.start()
        self.accounting, self.continued = start.accounting, start.continued
        stdout = self.environment.stdout
        shown = answer_on(self.environment, stdout, raw=self.raw, colour=self.colour, thinking=self.thinking)
        teller = self.conversation.teller(start.so_far, self.request())
        save = lambda text: self._save_meanwhile(self._left(start, text))  # noqa: E731
        coming = Coming(shown, teller, save, self.environment.clock)
        try:
            with unechoed(None if is_dumb(self.environment.variables) else self.environment.stdin):
                outcome = self._generate(start, coming, shown)
        except BaseException as reason:
            if text := coming.text:
                self.change(self._left(start, text))
            elif isinstance(reason, Interrupted):
                self.note("stopped before the answer began; /retry begins it again")
            raise
        self.prefill = outcome.prefill
        self._keep(start, outcome)
        self._report(start, outcome)

    def _generate(self, start: Start, coming: Coming, shown: Answer) -> Outcome:
        plan = self.conversation.plan(self.sampling, start.pending)
        shown.begin(start.begun, last_line(start.begun))
        try:
            return self.conversation.run(start.tokens, plan, coming)
        finally:
            # The answer is there, whether or not the terminal takes its last line end.
            with contextlib.suppress(Interrupted):
                coming.finish()

    def _left(self, start: Start, text: str) -> Dialogue:
        """The dialogue with an answer that broke off."""
        content, reasoning = self._parts(start, text)
        return self.dialogue.answered(content, unfinished=True, reasoning=reasoning)

    def _parts(self, start: Start, text: str) -> tuple[str, str | None]:
        """The answer's content and its reasoning; a block that the model opened itself stays in the content.

        What follows an open block of the prompt has no opening tag, so it is no text that could be read again.
        """
        if start.prompt.opening.where == "content":
            return start.begun + text, None
        teller = self.conversation.teller(start.prompt, self.request())
        deltas = [*teller.push(start.raw + text), *teller.finish()]
        content = "".join(delta.text for delta in deltas if isinstance(delta, Text))
        reasoning = "".join(delta.text for delta in deltas if isinstance(delta, Reasoning))
        return content, start.reasoned + reasoning

    def _keep(self, start: Start, outcome: Outcome) -> None:
        finished = outcome.finished
        tokens = (*start.tokens, *finished.ids)
        complete = finished.reason in ("stop", "stop_string")
        draft = None if complete else Draft(tokens, finished.pending)
        content, reasoning = self._parts(start, outcome.text)
        self.drafted = draft and (draft, start, start.raw + outcome.text)
        self.change(self.dialogue.answered(content, draft, reasoning=reasoning))
        self.counted = (self.dialogue, len(tokens))

    def _report(self, start: Start, outcome: Outcome) -> None:
        reason, context = outcome.finished.reason, self.conversation.engine.info.context
        if reason == "interrupted":
            self.note("stopped; /continue goes on, /edit changes it, Ctrl-C again leaves")
        elif reason == "length" and len(start.tokens) + outcome.finished.tokens > context:
            self.note(f"the context of {context:,} tokens is full; {WAYS_OUT}")
        elif reason == "length":
            self.note("the answer was cut by its limit of tokens; /continue goes on")
        elif not outcome.text.strip():
            self.note("the model had nothing to say" + (" after that" if start.begun else ""))

    # Where the next answer starts

    def start(self) -> Start:
        """From its own tokens where an answer was stopped and left alone, else from the composed prompt."""
        dialogue = self.dialogue
        if self.drafted is not None and dialogue.draft is self.drafted[0] and not dialogue.prefix:
            draft, first, raw = self.drafted
            tokens = draft.tokens
            before = min(self.accounting.prompt_tokens if self.accounting else 0, len(tokens))
            accounting = Accounting(before, len(tokens) - before, len(tokens))
            self.messages.debug(line(accounting, continued=True))
            return replace(
                first, tokens=tokens, begun=dialogue.answer or "", accounting=accounting, continued=True, raw=raw,
                pending=draft.pending,
            )  # fmt: skip
        prompt = self.conversation.compose(self.request())
        for note in prompt.notes:
            self.note(note)
        tokens, accounting = self.conversation.account(prompt)
        begun = (dialogue.answer or "") + dialogue.prefix if dialogue.unfinished else dialogue.prefix
        reasoned = dialogue.messages[-1].reasoning or "" if dialogue.unfinished else ""
        return Start(tuple(tokens), begun, accounting, dialogue.unfinished, prompt, reasoned)

    def request(self) -> Request:
        """The dialogue as a request for its next words."""
        return Request(
            messages=self.dialogue.messages,
            assistant_prefix=self.dialogue.prefix,
            continue_final=self.dialogue.unfinished,
            add_generation_prompt=not self.dialogue.unfinished,
            template_kwargs=self.template_kwargs,
            sampling=self.sampling,
        )

    def standing(self) -> Request:
        """The dialogue as a request for nothing: after a finished answer its prompt is the history."""
        request = self.request()
        if self.dialogue.answer is None or self.dialogue.unfinished:
            return request
        return request._replace(add_generation_prompt=False, assistant_prefix="")

    # What the toolbar says

    def used(self) -> int | None:
        """The tokens of the dialogue, None where its prompt cannot be made; counted again only after a change."""
        if self.counted is None or self.counted[0] is not self.dialogue:
            self.counted = (self.dialogue, self._count())
        return self.counted[1]

    def _count(self) -> int | None:
        if not self.dialogue.asked:
            return 0
        if self.dialogue.draft is not None:
            return len(self.dialogue.draft.tokens)
        try:
            return len(self.conversation.engine.tokenize(self.conversation.compose(self.standing()).text))
        except Exception:
            # Whatever is wrong is said when the prompt is needed; the toolbar only leaves the number out.
            return None

    def toolbar(self, columns: int) -> str:
        """The longest of its forms that fits."""
        info, used = self.conversation.engine.info, self.used()
        left = "" if used is None else f"{used:,} used, {max(info.context - used, 0):,} left"
        state = "unfinished: /continue" if self.dialogue.unfinished else "/help"
        prefix = " · prefix set" if self.dialogue.prefix else ""
        forms = (
            f"{info.name} on {info.device} · context {left or f'{info.context:,}'} · {state}{prefix}",
            f"{info.name} on {info.device} · {left} · {state}",
            f"{_short(info.name, columns // 3)} on {_short(info.device, 12)} · {left}",
            f"{_short(info.name, columns // 3)} · {left}",
            left,
        )
        return next((form for form in forms if len(form) <= columns), left[:columns])

    def failed(self, error: StrataError) -> None:
        """Say what went wrong and go on; nothing of the dialogue is lost."""
        if error.kind is CONTEXT_LENGTH_EXCEEDED:
            error = StrataError(error.kind, error.message, hint=WAYS_OUT)
        self.messages.line(error_line(error))


WAYS_OUT = "/undo takes the last turn back, /clear begins anew, and a larger -c at the start has room for more"


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: max(length - 1, 0)] + "…"


def last_line(text: str) -> str:
    """What of a given beginning is shown before its continuation: its last line."""
    return text.rpartition("\n")[2]
