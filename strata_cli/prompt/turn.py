"""The prompt from which the model writes, or goes on writing, the assistant's turn.

Nothing is known of any model. A template is asked: it renders the conversation with a mark where the assistant's text
would stand, and what it writes before the mark is the header. The history is always the generation prompt's (G),
because that is what the model was trained to answer; the header is always what the template writes before the text of
an answer, with its reasoning block completed. A cut that cannot be verified is refused.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from strata_cli import errors
from strata_cli.conversation.messages import Message
from strata_cli.conversation.request import Request, ToolChoice
from strata_cli.errors import Kind, StrataError
from strata_cli.prompt.adapt import Adapted, Reader, adapt
from strata_cli.prompt.header import Scene, bare_header, closing, completed
from strata_cli.prompt.losses import losses
from strata_cli.prompt.marks import History, read_history
from strata_cli.prompt.tags import Family, family_in, last_block
from strata_cli.prompt.template import ChatTemplate

PromptKind: TypeAlias = Literal["generation", "prefix", "continuation"]


class Opening(NamedTuple):
    """Where the model's output starts, and the reasoning family in use, None where the template shows none."""

    where: Literal["content", "reasoning"]
    family: Family | None


class Span(NamedTuple):
    """A stretch of the prompt, in characters, that came from a message or from the prefix."""

    start: int
    end: int
    kind: Literal["message", "prefix"]


class Prompt(NamedTuple):
    """The exact text to tokenise.

    `header_end` counts the characters before the prefix or the continued text; `spans` are ordered and do not overlap,
    what lies between them is the template's; `notes` name every adaptation and every loss.
    """

    text: str
    header_end: int
    kind: PromptKind
    opening: Opening
    spans: tuple[Span, ...]
    notes: tuple[str, ...]


def check(request: Request) -> None:
    """Refuse, before any work, what no template could make sense of; the error names the message and what to do."""
    if request.assistant_prefix and request.response_prefix:
        words = "assistant_prefix and response_prefix exclude each other"
        raise _refusal(errors.CONFLICTING_OPTIONS, words, "response_prefix")
    if request.choice is not None:
        _check_choice(request, request.choice)
    if request.continue_final:
        _check_continued(request)
    elif request.assistant_prefix:
        _check_prefixed(request)


def _check_choice(request: Request, choice: ToolChoice) -> None:
    if request.structure is not None:
        words = f"tool_choice demands a call, {request.structure.field} a document; an answer is one of them"
        raise _refusal(errors.CONFLICTING_OPTIONS, words, "tool_choice")
    from strata_cli.prompt.toolformat.schema import name_of

    known = {name_of(tool) for tool in request.tools}
    missing = next((name for name in choice.names if name not in known), None)
    if not known or missing is not None:
        words = "there are no tools" if not known else f"there is no tool {missing!r}"
        raise StrataError(
            errors.INVALID_REQUEST,
            f"tool_choice demands a call, but {words}",
            hint="name one of tools",
            param="tool_choice",
        )


def _check_continued(request: Request) -> None:
    if not request.messages:
        words = "there are no messages, so there is none to continue"
        raise _refusal(errors.NOTHING_TO_CONTINUE, words, "continue_final_message")
    index = len(request.messages) - 1
    final, where = request.messages[index], f"messages[{index}]"
    if final.role != "assistant":
        words = f"{where}, the final message, is of the role {final.role!r}, so there is no answer to continue"
        raise _refusal(errors.NOTHING_TO_CONTINUE, words, where)
    if final.tool_calls:
        raise _refusal(errors.CONTINUE_TOOL_CALLS, f"{where} has tool calls, so its text is complete", where)
    if index and request.messages[index - 1].role == "assistant":
        words = f"messages[{index - 1}] and {where} are both the assistant's; only one answer can be continued"
        raise _refusal(errors.CONTINUE_TWO_ASSISTANTS, words, where)


def _check_prefixed(request: Request) -> None:
    if request.messages and request.messages[-1].role == "assistant":
        words = f"messages[{len(request.messages) - 1}] is an answer already; a prefix would begin another"
        raise _refusal(errors.PREFIX_AFTER_ASSISTANT, words, "assistant_prefix")
    if not request.add_generation_prompt:
        words = "add_generation_prompt: false leaves no answer that assistant_prefix could begin"
        raise _refusal(errors.CONFLICTING_OPTIONS, words, "add_generation_prompt")


def _refusal(kind: Kind, words: str, param: str) -> StrataError:
    return StrataError(kind, words, hint=kind.remedy, param=param)


def compose(template: ChatTemplate, request: Request) -> Prompt:
    """The one prompt for this request; raises StrataError with the message's index and what to do."""
    check(request)
    reader = Reader(template, request.tools, request.template_kwargs)
    adapted = adapt(reader, request)
    if request.continue_final:
        *placed, final = adapted.placed
        adapted = Adapted(tuple(placed), adapted.notes)
        scene = Scene(reader, _history(reader, adapted), final.index, final.message)
        draft = _continuation(scene, final.message, request)
    else:
        scene = Scene(reader, read_history(reader, adapted), len(request.messages))
        draft = _prefix(scene, request) if request.assistant_prefix else _generation(scene, request)
    text = draft.text + draft.prefix
    notes = (*adapted.notes, *draft.notes, *losses(reader, adapted, text), *_seam(draft.prefix))
    return Prompt(text, draft.header_end, draft.kind, draft.opening, _spans(scene.history, draft), notes)


def _seam(prefix: str) -> tuple[str, ...]:
    """A space before the seam is a token of its own, which the model has hardly ever seen before a word."""
    if not prefix.endswith(" "):
        return ()
    return ("the prefix ends in a space, which the next word's token usually holds; the model does better without it",)


def _history(reader: Reader, adapted: Adapted) -> History:
    """The history before a continued answer; where it is empty, G is what the template writes without messages."""
    if adapted.placed:
        return read_history(reader, adapted)
    return History((), reader.attempt((), generation=True) or "", 0, None, ())


class _Draft(NamedTuple):
    """A prompt before its prefix is appended; `own` are the stretches of the continued message."""

    text: str
    prefix: str
    header_end: int
    kind: PromptKind
    opening: Opening
    own: tuple[tuple[int, int], ...] = ()
    notes: tuple[str, ...] = ()


def _generation(scene: Scene, request: Request) -> _Draft:
    """G, or the history alone; what `response_prefix` says follows verbatim."""
    history, notes = scene.history, ()
    if request.add_generation_prompt:
        text, notes = _thinking_off(scene, request)
    else:
        text = scene.reader.render(history.messages, generation=False)
    kind: PromptKind = "prefix" if request.response_prefix else "generation"
    opening = _opening(scene, text[history.end :])
    return _Draft(text, request.response_prefix, len(text), kind, opening, notes=notes)


def _thinking_off(scene: Scene, request: Request) -> tuple[str, tuple[str, ...]]:
    """G; where the template ignores that thinking is off and leaves the block open, the block is closed."""
    text, tail = scene.history.generation, scene.history.tail
    block = last_block(tail)
    if request.template_kwargs.get("enable_thinking") is not False or block is None or block.state == "closed":
        return text, ()
    note = "the template ignores enable_thinking: false; the reasoning block that it opens is closed"
    return text + closing(scene, block, tail), (note,)


def _prefix(scene: Scene, request: Request) -> _Draft:
    """Header and prefix, the prefix byte for byte."""
    header = completed(scene, bare_header(scene), continued=False)
    opening = _opening(scene, header.own)
    return _Draft(header.text, request.assistant_prefix, len(header.text), "prefix", opening)


def _continuation(scene: Scene, final: Message, request: Request) -> _Draft:
    """The final message left open, and a prefix, if there is one, after its text."""
    # Only a continued turn needs these rules, and a start is felt at every prompt.
    from strata_cli.prompt.continuation import cut

    found = cut(scene, final)
    if found.inside is not None:
        opening = Opening("reasoning", found.inside)
    else:
        opening = Opening("content", _family(scene, found.text[scene.history.end : found.start]))
    prefix = request.assistant_prefix or request.response_prefix
    return _Draft(found.text, prefix, found.start, "continuation", opening, found.spans, found.notes)


def _opening(scene: Scene, tail: str) -> Opening:
    """Where output starts after the template's own text since the last history message."""
    block = last_block(tail)
    where: Literal["content", "reasoning"] = "reasoning" if block is not None and block.state == "open" else "content"
    return Opening(where, _family(scene, tail))


def _family(scene: Scene, tail: str) -> Family | None:
    """The reasoning family in use: seen in the tail, in what the template writes around reasoning, or in its source."""
    for text in (tail, scene.history.tail, scene.reader.closing() or ""):
        block = last_block(text)
        if block is not None:
            return block.family
    return family_in(scene.reader.template.source)


def _spans(history: History, draft: _Draft) -> tuple[Span, ...]:
    kept = history.generation[: history.end]
    messages = history.spans if draft.text.startswith(kept) else ()
    spans = [Span(start, end, "message") for start, end in (*messages, *draft.own) if start < end]
    if draft.prefix:
        spans.append(Span(len(draft.text), len(draft.text) + len(draft.prefix), "prefix"))
    return tuple(spans)
