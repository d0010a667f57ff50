"""Marks: strings put into messages so that their places in the rendered text can be found, never by their own text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from strata_cli import errors
from strata_cli.conversation.messages import Message, Part, TextPart
from strata_cli.errors import StrataError
from strata_cli.prompt.adapt import Adapted, Placed, Reader

CONTINUE_MARK = "CONTINUE_FINAL_MESSAGE_TAG"  # a template may know this one and print nothing after it
_ATTEMPTS = 8


class History(NamedTuple):
    """What was said before the turn that is to be written.

    `generation` is the generation prompt, G; `end` is where in it the last history message that the template prints
    ends, and `last` that message's position, None where none was found; `spans` are the places of the messages.
    """

    messages: tuple[Message, ...]
    generation: str
    end: int
    last: int | None
    spans: tuple[tuple[int, int], ...]

    @property
    def tail(self) -> str:
        """What the generation prompt holds after the last history message."""
        return self.generation[self.end :]


def unused(word: str, texts: Sequence[str]) -> str:
    """The word, or the word with a number, that occurs in none of the texts."""
    candidate, number = word, 1
    while any(candidate in text for text in texts):
        number += 1
        candidate = f"{word}_{number}"
    return candidate


def texts_of(messages: Sequence[Message]) -> list[str]:
    """Every text of these messages that a mark must not occur in."""
    texts: list[str] = []
    for message in messages:
        texts.append(message.reasoning or "")
        if isinstance(message.content, str):
            texts.append(message.content)
        else:
            texts.extend(part.text for part in message.content or () if isinstance(part, TextPart))
        texts.extend(str(call.arguments) for call in message.tool_calls)
    return texts


def read_history(reader: Reader, adapted: Adapted) -> History:
    """Render the history's generation prompt and find where its messages end.

    Raises what the template raises, with the index of the message that it refuses.
    """
    generation = _generation(reader, adapted.placed)
    word = unused("STRATAMARK", [*texts_of(adapted.messages), reader.template.source])
    forms = [_marked(message, f"{word}{index}A", f"{word}{index}Z") for index, message in enumerate(adapted.messages)]
    found = _places(reader, tuple(forms), word, generation)
    if not found:
        last, end = _last_end(reader, adapted.messages, word, generation) or (
            None,
            _bare_end(reader, adapted.messages, generation),
        )
        return History(adapted.messages, generation, end, last, ())
    last, end = max(((index, places[1]) for index, places in found.items()), key=lambda item: item[1])
    end = _past_blank(adapted.messages[last], generation, end)
    if last < len(forms) - 1:
        last, end = _last_end(reader, adapted.messages, word, generation, after=last) or (last, end)
    return History(adapted.messages, generation, end, last, tuple(sorted(found.values())))


def _generation(reader: Reader, placed: tuple[Placed, ...]) -> str:
    messages = [item.message for item in placed]
    try:
        return reader.render(messages, generation=True)
    except StrataError as error:
        if error.kind is not errors.TEMPLATE_RAISED or not placed:
            raise
        if _tools_refused(reader, error.message):
            where = "tools"
        else:
            where = f"messages[{placed[_first_refused(reader, messages, error.message)].index}]"
        raise StrataError(error.kind, f"{where}: {error.message}", hint=error.hint, param=where) from None


def _tools_refused(reader: Reader, words: str) -> bool:
    """Whether the template refuses the tools in these words, whatever was said."""
    plain = [Message("user", "Hello.")]
    return reader.has_tools and reader.attempt(plain, generation=True) is not None and _refusal(reader, plain) == words


def _first_refused(reader: Reader, messages: list[Message], words: str) -> int:
    """The position of the first message with which the template refuses in the same words."""
    low, high = 1, len(messages)
    while low < high:
        middle = (low + high) // 2
        if _refusal(reader, messages[:middle]) == words:
            high = middle
        else:
            low = middle + 1
    return low - 1


def _refusal(reader: Reader, messages: list[Message]) -> str | None:
    try:
        reader.render(messages, generation=True)
    except StrataError as error:
        return error.message
    return None


def _places(
    reader: Reader, messages: tuple[Message, ...], word: str, generation: str
) -> dict[int, tuple[int, int]] | None:
    """Where each marked message begins and ends in G; None where marks change what the template writes."""
    try:
        text = reader.render(messages, generation=True)
    except StrataError as error:
        if error.kind is errors.TEMPLATE_RAISED:
            return None
        raise
    plain, marks = read_marks(text, word)
    if plain != generation:
        return None
    starts = {index: position for index, kind, position in marks if kind == "A"}
    ends = {index: position for index, kind, position in marks if kind == "Z"}
    printed = Counter(index for index, kind, _ in marks if kind == "Z")
    return {
        index: (starts[index], end)
        for index, end in ends.items()
        if printed[index] == 1 and starts.get(index, end + 1) <= end
    }


def read_marks(text: str, word: str) -> tuple[str, list[tuple[int, str, int]]]:
    """The text without its marks, and each mark as (message, "A" or "Z", place in the text without marks)."""
    pieces: list[str] = []
    marks: list[tuple[int, str, int]] = []
    start = length = 0
    for match in re.finditer(rf"{re.escape(word)}(\d+)([AZ])", text):
        pieces.append(text[start : match.start()])
        length += match.start() - start
        start = match.end()
        marks.append((int(match[1]), match[2], length))
    pieces.append(text[start:])
    return "".join(pieces), marks


def _last_end(
    reader: Reader, messages: tuple[Message, ...], word: str, generation: str, after: int = -1
) -> tuple[int, int] | None:
    """The last message that can be marked alone, of those after a position, and where it ends in G."""
    for index in range(len(messages) - 1, max(after, len(messages) - 1 - _ATTEMPTS), -1):
        message = _ended(messages[index], f"{word}{index}Z")
        if message is messages[index]:
            continue
        found = _places_of_end(reader, (*messages[:index], message, *messages[index + 1 :]), word, generation)
        if found is not None:
            return index, _past_blank(messages[index], generation, found)
    return None


def _places_of_end(reader: Reader, messages: tuple[Message, ...], word: str, generation: str) -> int | None:
    try:
        plain, marks = read_marks(reader.render(messages, generation=True), word)
    except StrataError as error:
        if error.kind is errors.TEMPLATE_RAISED:
            return None
        raise
    return marks[0][2] if plain == generation and len(marks) == 1 else None


def _bare_end(reader: Reader, messages: tuple[Message, ...], generation: str) -> int:
    """Where the history ends in G when no message in it can be marked: where G begins to add something."""
    try:
        history = reader.render(messages, generation=False)
    except StrataError as error:
        if error.kind is errors.TEMPLATE_RAISED:
            return 0
        raise
    return len(history) if generation.startswith(history) else 0


def end_of_last(reader: Reader, history: History, final: Message, text: str) -> int | None:
    """Where the last history message ends in `text`, which renders the history and `final`; None if not found."""
    if history.last is None:
        return None
    word = unused("STRATAMARK", [*texts_of((*history.messages, final)), reader.template.source, text])
    messages = list(history.messages)
    messages[history.last] = _ended(messages[history.last], f"{word}0Z")
    plain, marks = read_marks(reader.render([*messages, final], generation=False), word)
    if plain != text or len(marks) != 1:
        return None
    return _past_blank(history.messages[history.last], text, marks[0][2])


def _marked(message: Message, start: str, end: str) -> Message:
    """The message with marks around its text, inside the blanks at its ends; itself where there is no text."""
    content = message.content
    if isinstance(content, str):
        body = content.strip()
        if not body:
            return message
        lead = len(content) - len(content.lstrip())
        return message._replace(content=f"{content[:lead]}{start}{body}{end}{content[lead + len(body) :]}")
    parts: list[Part] = list(content or ())
    texts = [index for index, part in enumerate(parts) if isinstance(part, TextPart) and part.text.strip()]
    if not texts or texts[-1] != len(parts) - 1:
        return message
    for index, head, foot in ((texts[0], start, ""), (texts[-1], "", end)):
        text = parts[index].text  # type: ignore[union-attr]
        lead, body = len(text) - len(text.lstrip()), text.strip()
        parts[index] = TextPart(f"{text[:lead]}{head}{body}{foot}{text[lead + len(body) :]}")
    return message._replace(content=tuple(parts))


def _ended(message: Message, mark: str) -> Message:
    """The message with a mark at its end, also where it is blank there or ends in an image."""
    marked = _marked(message, "", mark)
    if marked is not message or message.tool_calls or message.content is None:
        return marked
    if isinstance(message.content, str):
        return message._replace(content=mark + message.content)
    return message._replace(content=(*message.content, TextPart(mark)))


def _past_blank(message: Message, text: str, position: int) -> int:
    """The position after the blanks that end a message's text, where the template printed them."""
    content = message.content
    if not isinstance(content, str):
        last = content[-1] if content else None
        content = last.text if isinstance(last, TextPart) else ""
    blank = content[len(content.rstrip()) :]
    return position + len(blank) if text.startswith(blank, position) else position
