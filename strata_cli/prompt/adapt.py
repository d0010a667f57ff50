"""What this template reads, found by probing, and the conversation put into that form without changing what it says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from strata_cli import errors
from strata_cli.conversation.messages import NOTHING, ImagePart, JsonObject, Message, Part, TextPart, Tool, ToolCall
from strata_cli.conversation.request import Request
from strata_cli.errors import StrataError
from strata_cli.prompt.template import ChatTemplate, Given, given

ImageForm: TypeAlias = Literal["image_url", "image"]
Where: TypeAlias = Literal["alone at the start", "beside others at the start", "later"]
T = TypeVar("T")

# Words of the probes: nothing that a template would print or test for.
_ONE, _TWO, _LEAD, _NAME, _KEY, _VALUE, _TOOL = (
    f"strataprobe{word}" for word in ("one", "two", "lead", "name", "key", "value", "tool")
)
_USER = Message("user", "strataprobeuser")
_ASSISTANT = Message("assistant", "strataprobeassistant")
_INVENTED = "narrator"


class Calls(NamedTuple):
    """How this template reads tool calls: arguments as a mapping or as text, null beside calls, nine-letter ids."""

    mapping: bool = True
    null_content: bool = False
    short_ids: bool = False
    printed: bool = False


class Placed(NamedTuple):
    """A message in the form that the template reads, with its index in the request."""

    message: Message
    index: int


class Adapted(NamedTuple):
    """The whole conversation in the template's form, in order; `notes` name every adaptation."""

    placed: tuple[Placed, ...]
    notes: tuple[str, ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(item.message for item in self.placed)


class Reader:
    """A template together with what a request passes to it beside the messages, and what probes show of it.

    What was learnt is kept with the template, per set of template arguments.
    """

    def __init__(self, template: ChatTemplate, tools: Sequence[Tool] = (), extra: JsonObject = NOTHING) -> None:
        self.template = template
        self.extra = extra
        self._tools = tuple(given(tool.definition) for tool in tools)
        self._tools_size = len(json.dumps(self._tools)) if tools else 0
        self._key = json.dumps(dict(extra), sort_keys=True, default=str) if extra else ""

    @property
    def has_tools(self) -> bool:
        return bool(self._tools)

    def render(self, messages: Sequence[Message], *, generation: bool) -> str:
        """The template's text; raises TEMPLATE_RAISED, TEMPLATE_EXHAUSTED or TEMPLATE_UNSAFE."""
        return self.template.render(
            [self.form(message) for message in messages],
            tools=self._tools,
            add_generation_prompt=generation,
            extra=self.extra,
            size=self._tools_size + sum(map(_length, messages)),
        )

    def form(self, message: Message) -> Given:
        """A message as the template sees it; reasoning under its three names."""
        fields: dict[str, Any] = {"role": message.role, "content": self._content(message)}
        if message.reasoning is not None:
            fields["reasoning_content"] = fields["thinking"] = fields["reasoning"] = message.reasoning
        if message.tool_calls:
            fields["tool_calls"] = given([_call_form(call) for call in message.tool_calls])
        if message.tool_call_id is not None:
            fields["tool_call_id"] = message.tool_call_id
        if message.name is not None:
            fields["name"] = message.name
        for key, value in message.extra.items():
            fields.setdefault(key, given(value))
        return Given(fields)

    def _content(self, message: Message) -> Any:
        if message.content is None:
            return None
        if isinstance(message.content, str):
            return given([_text_form(message.content)]) if self.only_parts(message.role) else message.content
        form = self.image_form(message.role) or "image_url"
        return given(
            [
                _text_form(part.text) if isinstance(part, TextPart) else _image_form(part, form)
                for part in message.content
            ]
        )

    # Probes. Each is asked once per template and set of template arguments.

    def _learn(self, what: object, probe: Callable[[], T]) -> T:
        key = (self._key, what)
        if key not in self.template.learnt:
            self.template.learnt[key] = probe()
        return self.template.learnt[key]  # type: ignore[no-any-return]

    def attempt(
        self, messages: Sequence[Message], *, tools: Sequence[Tool] = (), generation: bool = False
    ) -> str | None:
        """A probe's text, None where the template refuses it."""
        return self._attempt([self.form(message) for message in messages], tools, generation)

    def _attempt(self, forms: list[Given], tools: Sequence[Tool] = (), generation: bool = False) -> str | None:
        try:
            return self.template.render(
                forms,
                tools=tuple(given(tool.definition) for tool in tools),
                add_generation_prompt=generation,
                extra=self.extra,
            )
        except StrataError as error:
            if error.kind is errors.TEMPLATE_RAISED:
                return None
            raise

    def only_parts(self, role: str) -> bool:
        """Whether content of this role must come in parts: a plain string is refused or not printed."""
        role = role if role in ("user", "assistant", "system") else "user"
        return self._learn(("only_parts", role), lambda: self._probe_only_parts(role))

    def _probe_only_parts(self, role: str) -> bool:
        text = self._attempt(self._around(role, _ONE))
        if text is not None and _ONE in text:
            return False
        text = self._attempt(self._around(role, given([_text_form(_ONE)])))
        return text is not None and _ONE in text and not _printed_as_data(text, _ONE)

    def _around(self, role: str, content: Any) -> list[Given]:
        """A short conversation with one message of this role and this content."""
        if role == "tool":
            *call, result = _call_probe(self.calls())
            return [self.form(_USER), *call[1:], Given({**result, "content": content})]
        message = Given(role=role, content=content)
        if role == "assistant":
            return [self.form(_USER), message]
        return [message, self.form(_USER)] if role == "system" else [message]

    def image_form(self, role: str) -> ImageForm | None:
        """The form of image part that the template has a place for in this role's messages, None where it has none."""
        return self._learn(("image", role), lambda: self._probe_image(role))

    def _probe_image(self, role: str) -> ImageForm | None:
        """A part has a place when it leaves a trace between texts and alone, and is not printed as data."""
        one, two = _text_form(_ONE), _text_form(_TWO)
        bare = self._attempt(self._around(role, given([one, two]))) or ""
        nothing = self._attempt(self._around(role, given([])))
        forms: tuple[ImageForm, ImageForm] = ("image_url", "image")
        for form in forms:
            image = _image_form(ImagePart("data:,"), form)
            text = self._attempt(self._around(role, given([one, image, two])))
            if text is None or text == bare or text.count(_ONE) != 1 or text.count(_TWO) != 1:
                continue
            if any(text.count(word) > bare.count(word) for word in ("'type'", '"type"', '\\"type')):
                continue
            if nothing is None or self._attempt(self._around(role, given([image]))) != nothing:
                return form
        return None

    def developer(self, where: Where) -> bool:
        """Whether `developer` is a role that this template knows in this place."""
        return self._learn(("developer", where), lambda: self._probe_developer(where))

    def _probe_developer(self, where: Where) -> bool:
        text = self.attempt(_in_place(Message("developer", _ONE), where))
        if text is None or _ONE not in text:
            return False
        invented = self.attempt(_in_place(Message(_INVENTED, _ONE), where))
        return invented is None or invented.lower().replace(_INVENTED, "developer") != text.lower()

    def leading_system(self) -> bool:
        """Whether a system message at the start is printed."""
        return self._learn("leading_system", self._probe_leading_system)

    def _probe_leading_system(self) -> bool:
        text = self.attempt([Message("system", _ONE), _USER])
        return text is not None and _ONE in text

    def later_system(self, *, led: bool) -> bool:
        """Whether a system message in mid-conversation is printed, and (`led`) leaves the one at the start in place."""
        return self._learn(("later_system", led), lambda: self._probe_later_system(led))

    def _probe_later_system(self, led: bool) -> bool:
        lead = [Message("system", _LEAD)] if led else []
        text = self.attempt([*lead, _USER, _ASSISTANT, Message("system", _ONE), _USER])
        return text is not None and _ONE in text and (not led or _LEAD in text)

    def calls(self) -> Calls:
        """How this template reads tool calls."""
        return self._learn("calls", self._probe_calls)

    def _probe_calls(self) -> Calls:
        for short_ids in (False, True):
            for null_content in (False, True):
                for mapping in (True, False):
                    calls = Calls(mapping, null_content, short_ids, printed=True)
                    text = self._attempt(_call_probe(calls), (_probe_tool(),), generation=True)
                    if text is not None and _prints_call(text, mapping):
                        return calls
        return Calls()

    def prints_tools(self) -> bool:
        """Whether tool definitions get into the prompt."""
        return self._learn("prints_tools", self._probe_tools)

    def _probe_tools(self) -> bool:
        text = self.attempt([_USER], tools=(_probe_tool(),), generation=True)
        return text is None or _TOOL in text

    def closing(self) -> str | None:
        """What this template writes between reasoning and content, None where it renders no reasoning."""
        return self._learn("closing", self._probe_closing)

    def _probe_closing(self) -> str | None:
        text = self.attempt([_USER, Message("assistant", _TWO, reasoning=_ONE)])
        if text is None or text.count(_ONE) != 1 or text.count(_TWO) != 1:
            return None
        start, end = text.index(_ONE) + len(_ONE), text.index(_TWO)
        return text[start:end] if start <= end else None


def _length(message: Message) -> int:
    total = len(message.reasoning or "") + 100
    if isinstance(message.content, str):
        total += len(message.content)
    elif message.content:
        total += sum(len(part.text) if isinstance(part, TextPart) else len(part.url) for part in message.content)
    for call in message.tool_calls:
        total += len(call.arguments) if isinstance(call.arguments, str) else len(json.dumps(dict(call.arguments)))
    return total


def _text_form(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image_form(part: ImagePart, form: ImageForm) -> dict[str, Any]:
    if form == "image_url":
        return {"type": "image_url", "image_url": {"url": part.url}}
    return {"type": "image", "image": part.url, "url": part.url}


def _call_form(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    head = {} if call.id is None else {"id": call.id}
    return {**head, "type": "function", "function": function}


def _in_place(message: Message, where: Where) -> list[Message]:
    """A short conversation with the message in this place."""
    if where == "later":
        return [_USER, _ASSISTANT, message, _USER]
    return [message, _USER] if where == "alone at the start" else [Message("system", _LEAD), message, _USER]


def _probe_tool() -> Tool:
    parameters = {"type": "object", "properties": {"city": {"type": "string", "description": "a city"}}}
    function = {"name": _TOOL, "description": "a tool", "parameters": parameters}
    return Tool({"type": "function", "function": function})


def _call_probe(calls: Calls) -> list[Given]:
    arguments = {_KEY: _VALUE}
    call = ToolCall(
        _NAME,
        arguments if calls.mapping else json.dumps(arguments),
        "a1b2c3d4e" if calls.short_ids else "call_a1b2c3d4e",
    )
    return [
        Given(role="user", content=_ONE),
        Given(role="assistant", content=None if calls.null_content else "", tool_calls=given([_call_form(call)])),
        Given(role="tool", content=_TWO, tool_call_id=call.id, name=_NAME),
    ]


def _prints_call(text: str, mapping: bool) -> bool:
    """Whether a probe's call is in the text, and a mapping neither as a Python dict nor as JSON inside a string."""
    if not all(word in text for word in (_NAME, _KEY, _VALUE)):
        return False
    return not mapping or not (f"'{_KEY}':" in text or f'\\"{_KEY}\\"' in text)


def _printed_as_data(text: str, word: str) -> bool:
    return any(f"{quote}{word}" in text for quote in ("'text': '", '"text": "', '"text":"'))


# The adaptations, one after the other.


class _Draft:
    def __init__(self, placed: list[Placed]) -> None:
        self.placed = placed
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def adapt(reader: Reader, request: Request) -> Adapted:
    """The request's messages in the form that the template reads.

    Raises NO_PLACE_FOR_SYSTEM and IMAGES_NOT_SUPPORTED with the index of the message.
    """
    draft = _Draft([Placed(message, index) for index, message in enumerate(request.messages)])
    _developer_as_system(reader, draft)
    _join_leading_systems(draft)
    _move_systems(reader, draft)
    draft.placed = [Placed(_content(reader, item, draft), item.index) for item in draft.placed]
    if any(item.message.tool_calls or item.message.role == "tool" for item in draft.placed):
        _adapt_calls(reader, draft)
    return Adapted(tuple(draft.placed), tuple(draft.notes))


def _developer_as_system(reader: Reader, draft: _Draft) -> None:
    roles = [item.message.role for item in draft.placed]
    lead = next((at for at, role in enumerate(roles) if role not in ("system", "developer")), len(roles))
    start: Where = "alone at the start" if lead == 1 else "beside others at the start"
    for position, item in enumerate(draft.placed):
        if item.message.role == "developer" and not reader.developer(start if position < lead else "later"):
            draft.placed[position] = Placed(item.message._replace(role="system"), item.index)
            draft.note(f"messages[{item.index}]: the developer message is passed as a system message")


def _join_leading_systems(draft: _Draft) -> None:
    count = 0
    while count < len(draft.placed) and draft.placed[count].message.role == "system":
        count += 1
    if count < 2:
        return
    first, *others = draft.placed[:count]
    message = first.message
    for other in others:
        message = message._replace(content=_joined(message.content, other.message.content))
    draft.placed[:count] = [Placed(message, first.index)]
    draft.note(f"messages[{first.index}] to [{others[-1].index}]: the system messages are joined")


def _move_systems(reader: Reader, draft: _Draft) -> None:
    """A system message that the template refuses or drops goes before the next user message, in its order."""
    kept: list[Placed] = []
    waiting: list[Placed] = []
    for position, item in enumerate(draft.placed):
        role = item.message.role
        if role == "system" and not _system_stays(
            reader, position, led=bool(kept) and kept[0].message.role == "system"
        ):
            waiting.append(item)
            draft.note(f"messages[{item.index}]: the template has no place for this system message here; "
                       "it is put before the next user message")  # fmt: skip
        elif role == "user" and waiting:
            content = item.message.content
            for system in reversed(waiting):
                content = _joined(system.message.content, content)
            kept.append(Placed(item.message._replace(content=content), item.index))
            waiting.clear()
        else:
            kept.append(item)
    if waiting:
        where = f"messages[{waiting[0].index}]"
        raise StrataError(
            errors.NO_PLACE_FOR_SYSTEM,
            f"{where}: the template has no place for this system message, and no user message follows it",
            hint=errors.NO_PLACE_FOR_SYSTEM.remedy,
            param=where,
        )
    draft.placed = kept


def _system_stays(reader: Reader, position: int, *, led: bool) -> bool:
    return reader.leading_system() if position == 0 else reader.later_system(led=led)


def _joined(first: str | tuple[Part, ...] | None, second: str | tuple[Part, ...] | None) -> str | tuple[Part, ...]:
    """Two contents with a blank line between them."""
    if isinstance(first or "", str) and isinstance(second or "", str):
        return f"{first or ''}\n\n{second or ''}"
    before, after, seam = _parts(first), _parts(second), "\n\n"
    if before and isinstance(before[-1], TextPart):
        before, seam = before[:-1], before[-1].text + seam
    if after and isinstance(after[0], TextPart):
        after, seam = after[1:], seam + after[0].text
    return (*before, TextPart(seam), *after)


def _parts(content: str | tuple[Part, ...] | None) -> tuple[Part, ...]:
    if content is None:
        return ()
    return (TextPart(content),) if isinstance(content, str) else content


def _content(reader: Reader, item: Placed, draft: _Draft) -> Message:
    """Content as text where it is text only; as parts with a place for each where it holds images."""
    message, where = item.message, f"messages[{item.index}]"
    if message.content is None:
        return message._replace(content="")
    if isinstance(message.content, str):
        if reader.only_parts(message.role):
            draft.note("the template reads content in parts only; text is passed as one part")
        return message
    if all(isinstance(part, TextPart) for part in message.content):
        if reader.only_parts(message.role):
            return message
        draft.note(f"{where}: the parts of the text are joined")
        return message._replace(content="".join(part.text for part in message.content if isinstance(part, TextPart)))
    form = reader.image_form(message.role)
    if form is None:
        raise StrataError(
            errors.IMAGES_NOT_SUPPORTED,
            f"{where}: the template has no place for an image in a message of the role {message.role!r}",
            hint="remove the image, or use a model that reads images",
            param=f"{where}.content",
        )
    if form == "image":
        draft.note(f"{where}: images are passed in the form that the template reads ('image')")
    return message


def _adapt_calls(reader: Reader, draft: _Draft) -> None:
    calls = reader.calls()
    draft.placed = [Placed(_message_with_calls(item.message, calls, draft), item.index) for item in draft.placed]


def _message_with_calls(message: Message, calls: Calls, draft: _Draft) -> Message:
    if message.tool_call_id is not None or (message.role == "tool" and calls.short_ids):
        message = message._replace(tool_call_id=_id(message.tool_call_id, calls, draft))
    if not message.tool_calls:
        return message
    tool_calls = tuple(
        call._replace(arguments=_arguments(call.arguments, calls, draft), id=_id(call.id, calls, draft))
        for call in message.tool_calls
    )
    message = message._replace(tool_calls=tool_calls)
    if calls.null_content and message.content == "":
        draft.note("empty content beside tool calls is passed as null")
        message = message._replace(content=None)
    return message


def _arguments(arguments: str | JsonObject, calls: Calls, draft: _Draft) -> str | JsonObject:
    if calls.mapping and isinstance(arguments, str):
        try:
            parsed = json.loads(arguments) if arguments.strip() else {}
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            draft.note("tool-call arguments that are no JSON object are passed as text")
            return arguments
        draft.note("tool-call arguments are passed as a mapping")
        return parsed
    if not calls.mapping and not isinstance(arguments, str):
        draft.note("tool-call arguments are passed as JSON text")
        return json.dumps(dict(arguments), ensure_ascii=False)
    return arguments


_NOT_ALPHANUMERIC = re.compile(r"[^0-9A-Za-z]")


def _id(identity: str | None, calls: Calls, draft: _Draft) -> str | None:
    """An id of nine letters and digits where the template demands that."""
    if not calls.short_ids or (identity is not None and re.fullmatch(r"[0-9A-Za-z]{9}", identity)):
        return identity
    draft.note("tool-call ids are shortened to nine letters and digits, as the template demands")
    return _NOT_ALPHANUMERIC.sub("", identity or "")[-9:].rjust(9, "0")
