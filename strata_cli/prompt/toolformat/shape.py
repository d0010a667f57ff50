"""What an assistant's turn and its tool calls look like in one template, as data that a parser follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from strata_cli.prompt.tags import Family

Path: TypeAlias = tuple[str, ...]
Slot: TypeAlias = Literal["name", "id", "index"]


@dataclass(frozen=True, slots=True)
class Envelope:
    """Messages within one turn: `start`, a header that says whom the message is for, `message`, text, one of `ends`."""

    start: str
    message: str
    ends: tuple[str, ...]


# A new envelope is a row.
ENVELOPES: tuple[Envelope, ...] = (
    Envelope("<|start|>", "<|message|>", ("<|end|>", "<|call|>", "<|return|>", "<|eom|>", "<|eot|>")),
)


@dataclass(frozen=True, slots=True)
class Turn:
    """The markers of an assistant's turn that are not tool calls.

    `opens` and `closes` are the texts that begin and end reasoning, with every amount of the blanks that the template
    writes around them; `leads` are those that a turn without reasoning may begin with; `content` are those around the
    content; `start` is the beginning of a marker with which the generation prompt ends, empty where it ends between
    markers.
    """

    family: Family | None = None
    opens: tuple[str, ...] = ()
    closes: tuple[str, ...] = ()
    leads: tuple[str, ...] = ()
    content: tuple[str, ...] = ()
    start: str = ""
    envelope: Envelope | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """A place in the text before the arguments that differs from call to call."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments are a JSON object after the call's name."""


@dataclass(frozen=True, slots=True)
class Record:
    """The whole call is a JSON object; each path says under which keys a value stands."""

    name: Path
    arguments: Path
    id: Path | None = None


@dataclass(frozen=True, slots=True)
class Keyed:
    """The whole call is a JSON object whose only key is the name and whose value is the arguments."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """Each argument stands between tags: `open`, key, `middle`, value, `close`, in which KEY is the key once more.

    `typed` holds what stands between the key and `middle` for a string and the text before and after that word, None
    where nothing tells a string from other values. `blanks` are the newlines around a value that belong to the tags;
    `wrap` is what may surround a string with characters of markup.
    """

    open: str
    middle: str
    close: str
    typed: tuple[str, str, str] | None = None
    blanks: tuple[str, str] = ("", "")
    wrap: tuple[str, str] | None = None


KEY = "\0"
"""Stands for an argument's key in `Parameters.close`."""


@dataclass(frozen=True, slots=True)
class Literals:
    """Arguments as in a programming language: key, `assign`, value, commas between them, `close`.

    Strings are in `quote`; `raw` where no character in them is escaped. Keys and strings in nested values may be too.
    """

    assign: str
    quote: str
    close: str
    raw: bool


Body: TypeAlias = Arguments | Record | Keyed | Parameters | Literals

Kind: TypeAlias = Literal[
    "bare JSON", "JSON in tags", "JSON list", "name as key", "name and JSON", "parameters", "literals", "recipient"
]


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """How this template writes tool calls.

    `section` surrounds all calls, `call` each one, `lead` are the blanks between text and the first. `header` is what
    stands after the call's opening up to its arguments, empty for bodies that hold the name. `many` where the calls
    are the items of a JSON list. `recipient` is what stands before the name in an envelope's header, None elsewhere.
    `tags` are special tokens of which one may stand before a bare call. Everything but the bodies is optional for a
    parser: models leave closings out.
    """

    body: Body
    section: tuple[str, str] = ("", "")
    call: tuple[str, str] = ("", "")
    separator: str = ""
    lead: str = ""
    header: tuple[Field | str, ...] = ()
    many: bool = False
    recipient: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def bare(self) -> bool:
        """Whether nothing marks the beginning of a call but its own notation."""
        return not self.section[0].strip("[") and not self.call[0] and self.recipient is None

    @property
    def kind(self) -> Kind:
        """The name of this kind of format."""
        if self.recipient is not None:
            return "recipient"
        match self.body:
            case Record():
                return "bare JSON" if self.bare else "JSON list" if self.many else "JSON in tags"
            case Keyed():
                return "name as key"
            case Arguments():
                return "name and JSON"
            case Parameters():
                return "parameters"
            case Literals():
                return "literals"
