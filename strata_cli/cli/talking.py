"""The REPL: a dialogue with an open model, in which an answer can be stopped, edited and truly continued."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from strata_cli.cli.answer import Conversation, Outcome
from strata_cli.conversation import saved
from strata_cli.conversation.dialogue import Dialogue, Draft
from strata_cli.conversation.messages import Json
from strata_cli.conversation.request import Request, SamplingOptions
from strata_cli.environment import Environment, die_of, listening
from strata_cli.errors import CONTEXT_LENGTH_EXCEEDED, Interrupted, StrataError
from strata_cli.generation.accounting import Accounting, line
from strata_cli.output.terminal.screen import Messages, TextAnswer, error_line
from strata_cli.store import sessions

SIGINT = 2


@dataclass(frozen=True, slots=True)
class Start:
    """From where a generation starts: its tokens, what of the answer is given, the bytes of half a character."""

    tokens: tuple[int, ...]
    begun: str
    accounting: Accounting
    continued: bool
    pending: bytes = b""


@dataclass(slots=True)
class Talk:
    """The state of one REPL. `dialogue` is replaced, never changed; every change is saved when there is a session."""

    environment: Environment
    messages: Messages
    conversation: Conversation
    reopen: Callable[[str], Conversation]
    edit: Callable[[str], str]
    dialogue: Dialogue = field(default_factory=Dialogue)
    sampling: SamplingOptions = field(default_factory=SamplingOptions)
    template_kwargs: dict[str, Json] = field(default_factory=dict)
    session: str | None = None
    accounting: Accounting | None = None
    continued: bool = False

    # What is said

    def say(self, text: str) -> None:
        self.change(self.dialogue.say(text))
        self.answer()

    def change(self, dialogue: Dialogue) -> None:
        self.dialogue = dialogue
        if self.session is not None:
            sessions.write(self.session, saved.dump(dialogue))

    def note(self, text: str) -> None:
        self.messages.note(text)

    def answer(self) -> None:
        """Let the model go on from where the dialogue stands, and keep what comes, however it ends."""
        start = self.start()
        self.accounting, self.continued = start.accounting, start.continued
        with listening(self.environment.interrupt, patience=2):
            try:
                outcome = self._generate(start)
            finally:
                stopped = self.environment.interrupt.signal
                self.environment.interrupt.clear()
        self._keep(start, outcome)
        if stopped not in (0, SIGINT):
            die_of(stopped)
        if outcome is None:
            self.note("stopped before the answer began; /retry begins it again")
        elif outcome.finished.reason == "length":
            self.note("the answer was cut by a limit; /continue goes on")
        elif outcome.finished.reason == "interrupted":
            self.note("stopped; /continue goes on, /edit changes it")

    def _generate(self, start: Start) -> Outcome | None:
        """The outcome, or None when the prompt's evaluation was stopped."""
        shown = TextAnswer(self.environment.stdout)
        plan = self.conversation.plan(self.sampling, start.pending)
        shown.write(last_line(start.begun))
        try:
            return self.conversation.run(start.tokens, plan, shown)
        except Interrupted:
            return None
        finally:
            shown.finish()

    def _keep(self, start: Start, outcome: Outcome | None) -> None:
        if outcome is None:
            return
        text = start.begun + outcome.text
        finished = outcome.finished
        if finished.reason in ("stop", "stop_string"):
            self.change(self.dialogue.answered(text, None))
        else:
            self.change(self.dialogue.answered(text, Draft((*start.tokens, *finished.ids), finished.pending)))

    # Where the next answer starts

    def start(self) -> Start:
        """From its own tokens where an answer was stopped and left alone, else from the composed prompt."""
        dialogue = self.dialogue
        if dialogue.draft is not None and not dialogue.prefix:
            tokens = dialogue.draft.tokens
            before = self.accounting.prompt_tokens if self.accounting else 0
            accounting = Accounting(before, len(tokens) - before, len(tokens))
            self.messages.debug(line(accounting, continued=True))
            return Start(tokens, dialogue.answer or "", accounting, True, dialogue.draft.pending)
        prompt = self.conversation.compose(self.request())
        for note in prompt.notes:
            self.note(note)
        tokens, accounting = self.conversation.account(prompt)
        begun = (dialogue.answer or "") + dialogue.prefix if dialogue.unfinished else dialogue.prefix
        return Start(tuple(tokens), begun, accounting, dialogue.unfinished)

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

    # What the toolbar says

    def used(self) -> int:
        """Tokens in the KV cache, of which the next turn reuses what is still right."""
        return len(self.conversation.timeline.tokens)

    def toolbar(self) -> str:
        info = self.conversation.engine.info
        left = max(info.context - self.used(), 0)
        state = "unfinished: /continue" if self.dialogue.unfinished else "/help"
        prefix = " · prefix set" if self.dialogue.prefix else ""
        return f"{info.name} on {info.device} · context {self.used()} used, {left} left · {state}{prefix}"

    def failed(self, error: StrataError) -> None:
        """Say what went wrong and go on; nothing of the dialogue is lost."""
        if error.kind is CONTEXT_LENGTH_EXCEEDED:
            hint = "/undo takes the last turn back, /clear begins anew, or start again with a larger -c"
            error = StrataError(error.kind, error.message, hint=hint)
        self.messages.line(error_line(error))


def last_line(text: str) -> str:
    """What of a given beginning is shown before its continuation: its last line."""
    return text.rpartition("\n")[2]
