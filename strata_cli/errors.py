"""Everything that can go wrong, as one table: code, exit status, HTTP status, cause, remedy.

A wrong request raises a StrataError low down; only the edge shows it. `docs/errors.md` is printed from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Literal, NamedTuple


class ExitStatus(IntEnum):
    """What the process tells the shell."""

    OK = 0
    MODEL = 1
    USAGE = 2
    CONTEXT = 3
    STRUCTURED_OUTPUT = 4


class Kind(NamedTuple):
    """One kind of error: a stable code, what it means to a shell and to HTTP, and what to do about it."""

    code: str
    status: ExitStatus
    http: int
    cause: str
    remedy: str


KINDS: dict[str, Kind] = {}


def _kind(code: str, status: ExitStatus, http: int, cause: str, remedy: str) -> Kind:
    KINDS[code] = Kind(code, status, http, cause, remedy)
    return KINDS[code]


class StrataError(Exception):
    """A failure that a user can understand and act on.

    `message` says what happened and where, in one line; `hint` says what to do; `param` names the request's field;
    `details` are what only a program reads, beside the message.
    `dialect` is set where the answer was to be JSON: the shape in which the error is shown instead.
    """

    dialect: Literal["openai", "anthropic"] | None = None

    def __init__(
        self,
        kind: Kind,
        message: str,
        *,
        hint: str = "",
        param: str | None = None,
        details: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint
        self.param = param
        self.details = dict(details or {})

    @property
    def sentence(self) -> str:
        """What happened and what to do, in one line."""
        parts = (self.message, self.hint or self.kind.remedy)
        return "; ".join(_uncapitalised(part.rstrip(".")) for part in parts).replace("\n", " ")


def _uncapitalised(text: str) -> str:
    """The text as it stands in the middle of a line; a name in capitals stays one."""
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


class Interrupted(Exception):
    """The user asked to stop; whatever was evaluated is kept."""


_MODEL, _USAGE, _CONTEXT = ExitStatus.MODEL, ExitStatus.USAGE, ExitStatus.CONTEXT

MODEL_NOT_FOUND = _kind(
    "model_not_found",
    _MODEL,
    404,
    "No model was named and none is installed, or the named file does not exist.",
    "Give a GGUF file with -m, or install the demo model.",
)
MODEL_NOT_GGUF = _kind(
    "model_not_gguf",
    _MODEL,
    400,
    "The file is not a GGUF file, or its header is damaged.",
    "Download it again, or convert the model with llama.cpp's convert_hf_to_gguf.py.",
)
MODEL_LOAD_FAILED = _kind(
    "model_load_failed",
    _MODEL,
    500,
    "llama.cpp could not load the model; its last words are quoted.",
    "Follow what llama.cpp says; --debug shows its whole log.",
)
MODEL_RUN_FAILED = _kind(
    "model_run_failed",
    _MODEL,
    500,
    "llama.cpp failed while it was evaluating.",
    "Use a smaller context (-c) or batch (-b), or fewer GPU layers (-ngl).",
)
NO_CHAT_TEMPLATE = _kind(
    "no_chat_template",
    _USAGE,
    400,
    "The model file holds no chat template.",
    "Give one with --template FILE, or use `strata complete`.",
)
TEMPLATE_INVALID = _kind(
    "template_invalid",
    _USAGE,
    400,
    "The chat template is not valid Jinja.",
    "Correct the template at the line that the message names.",
)
TEMPLATE_RAISED = _kind(
    "template_raised",
    _USAGE,
    400,
    "The chat template refuses this conversation; its own words are quoted.",
    "Change the conversation as the template demands.",
)
TEMPLATE_UNSAFE = _kind(
    "template_unsafe",
    _USAGE,
    400,
    "The chat template reached for something that a template has no business with.",
    "Do not use this template.",
)
TEMPLATE_EXHAUSTED = _kind(
    "template_exhausted",
    _USAGE,
    400,
    "The chat template loops or grows beyond its budget.",
    "Do not use this template, or shorten the conversation.",
)
TEMPLATE_REWRITES_MESSAGE = _kind(
    "template_rewrites_message",
    _USAGE,
    400,
    "The template drops, repeats or rewrites the message that is to be continued.",
    "Use --prefix for the beginning of the answer instead.",
)
IMAGES_NOT_SUPPORTED = _kind(
    "images_not_supported",
    _USAGE,
    400,
    "The template has no place for images, or the engine evaluates text only.",
    "Remove the image.",
)
NO_PLACE_FOR_REASONING = _kind(
    "no_place_for_reasoning",
    _USAGE,
    400,
    "The reasoning of the final message is to be continued, and this template has no place for reasoning.",
    "Move the reasoning into the content.",
)
NO_PLACE_FOR_SYSTEM = _kind(
    "no_place_for_system",
    _USAGE,
    400,
    "The template drops or refuses this system message and no user message follows to carry it.",
    "Put its text into a user message.",
)
PREFIX_AFTER_ASSISTANT = _kind(
    "prefix_after_assistant",
    _USAGE,
    400,
    "A prefix was given for an answer that the conversation already holds.",
    "Continue it with --continue (continue_final_message).",
)
NOTHING_TO_CONTINUE = _kind(
    "nothing_to_continue",
    _USAGE,
    400,
    "There is no final assistant message to continue.",
    "End the conversation with the assistant message to continue, or use --prefix.",
)
CONTINUE_TOOL_CALLS = _kind(
    "continue_tool_calls",
    _USAGE,
    400,
    "The final assistant message has tool calls, so nothing can follow its text.",
    "Remove the tool calls, or answer them.",
)
CONTINUE_TWO_ASSISTANTS = _kind(
    "continue_two_assistants",
    _USAGE,
    400,
    "Another assistant message stands right before the one to continue.",
    "Join the two messages.",
)
CONFLICTING_OPTIONS = _kind(
    "conflicting_options",
    _USAGE,
    400,
    "Two options or fields exclude each other.",
    "Remove one of the two.",
)
INVALID_REQUEST = _kind(
    "invalid_request",
    _USAGE,
    400,
    "A field of the request has the wrong type or a value out of range.",
    "Correct the field that the message names.",
)
INVALID_JSON = _kind(
    "invalid_json",
    _USAGE,
    400,
    "The input is not valid JSON.",
    "Correct it at the place that the message names.",
)
INVALID_TEXT = _kind(
    "invalid_text",
    _USAGE,
    400,
    "The input is not valid UTF-8 (or UTF-16 with a byte order mark).",
    "Convert the input to UTF-8; the message names the first wrong byte.",
)
INVALID_USAGE = _kind(
    "invalid_usage",
    _USAGE,
    400,
    "The command line is wrong.",
    "See --help.",
)
FILE_NOT_READABLE = _kind(
    "file_not_readable",
    _USAGE,
    400,
    "A file named on the command line cannot be read.",
    "Check its name and its permissions.",
)
OUTPUT_FAILED = _kind(
    "output_failed",
    _MODEL,
    500,
    "The answer could not be written.",
    "Check the disk or the file; what was written before is complete.",
)
NOT_IN_THIS_BUILD = _kind(
    "not_supported",
    _USAGE,
    400,
    "The request needs something that this version cannot do.",
    "Remove the field or option that the message names.",
)
CONTEXT_LENGTH_EXCEEDED = _kind(
    "context_length_exceeded",
    _CONTEXT,
    400,
    "The prompt has more tokens than the context.",
    "Use a larger context (-c) or a shorter prompt.",
)
MODEL_INCOMPLETE = _kind(
    "model_incomplete",
    _MODEL,
    400,
    "The model file ends before its tensors do, or a part of a split model is missing.",
    "Download it again, all its parts into one folder.",
)
INTERNAL_ERROR = _kind(
    "internal_error",
    _MODEL,
    500,
    "Strata itself is at fault.",
    "Run it again with STRATA_DEBUG=1 and report what it prints.",
)
SESSION_INVALID = _kind(
    "session_invalid",
    _USAGE,
    400,
    "The session file is not a JSON list of messages.",
    "Name another file, or correct this one; it was left as it is.",
)
STRUCTURED_OUTPUT_FAILED = _kind(
    "structured_output_failed",
    ExitStatus.STRUCTURED_OUTPUT,
    500,
    "The answer is not the complete, valid document that a schema or grammar asked for; its text is in the error.",
    "Allow more tokens (-n), simplify the schema, or ask again with another seed.",
)
