"""What a model can do, whoever runs it.

The caller always gives the whole prompt as tokens; a timeline finds out for itself which beginning of it the KV cache
already holds, evaluates the rest, and then decodes. It is an object, because an engine may one day hold several.
A token is sampled first and evaluated only when the next one is asked for: closing the iterator stops at once, and a
stopped answer that is continued evaluates that one token and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (done, total): tokens in prefill, thousandths of the file in a load."""


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How a model is opened, with llama.cpp's names for its parameters.

    `context` None is the training context, lowered to what fits in memory. `gpu_layers` "auto" is what fits on the
    devices. `cpu_moe` is the number of layers whose experts stay in main memory. `threads` None is one per physical
    core. `batch` None is `ubatch`, and that None is 512, or less for large models on a CPU. With `vocab_only` no
    weights are read: the model can tokenise and describe itself, and no more.
    """

    path: str
    context: int | None = None
    gpu_layers: int | Literal["auto", "all"] = "auto"
    cpu_moe: int = 0
    threads: int | None = None
    batch: int | None = None
    ubatch: int | None = None
    flash_attention: Literal["auto", "on", "off"] = "auto"
    cache_type_k: str = "f16"
    cache_type_v: str = "f16"
    devices: tuple[str, ...] = ()
    loras: tuple[str, ...] = ()
    vocab_only: bool = False


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of a model once it is open.

    `templates` maps names to chat templates, the main one is "default"; `context` is the number of tokens that prompt
    and answer may use together; `sampling` holds the file's own recommendations under llama.cpp's names.
    """

    name: str
    path: str
    templates: Mapping[str, str]
    bos: str
    eos: str
    context: int
    training_context: int
    device: str
    gpu_layers: int = 0
    load_seconds: float = 0.0
    sampling: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Threads:
    """How many threads evaluate now, how many may, and how many cores other programs keep busy."""

    working: int
    most: int
    others: float = 0.0


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen, with llama.cpp's names, defaults and order; temperature 0 is greedy."""

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    seed: int = 0
    repeat_penalty: float = 1.0
    repeat_last_n: int = 64
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0


@dataclass(frozen=True, slots=True)
class Choice:
    """A token that could have been taken: its bytes and its natural-log probability."""

    id: int
    data: bytes
    logprob: float


@dataclass(frozen=True, slots=True)
class Token:
    """One sampled token: the bytes that it adds to the text, and whether it ends the generation.

    A token that ends has no bytes. A control token that does not end has its text (`[THINK]`, `<|channel|>`) and is
    marked `control`: some reasoning tags are such tokens, so it is for the reader to show or to hide them.
    """

    id: int
    data: bytes
    end: bool = False
    logprob: float | None = None
    top: tuple[Choice, ...] = ()
    control: bool = False


@dataclass(frozen=True, slots=True)
class Grammar:
    """What a document looks like: a JSON schema as JSON text, or a grammar in one of three notations.

    "calls" is a grammar of tool calls in Lark's notation, with schemas in it. Special tokens that occur in `markers`
    are text that the document may hold.
    """

    kind: Literal["json_schema", "gbnf", "lark", "regex", "calls"]
    text: str
    markers: str = ""


@dataclass(frozen=True, slots=True)
class Breach:
    """Where a text breaks a grammar: the character's index, and the bytes that may stand there.

    `forced` is what has to stand there where that is only one text; `complete` says that the document may end there.
    """

    at: int
    allowed: bytes
    forced: bytes
    complete: bool


@dataclass(frozen=True, slots=True)
class Aside:
    """Text before a document in which everything may stand, from `open` to `close`; `begun` where it is open already.

    One that has not begun is the model's to begin, or to leave out.
    """

    open: str
    close: str
    begun: bool


@dataclass(frozen=True, slots=True)
class Prefill:
    """What a prefill did: `total` tokens in the prompt, of which `reused` were in the KV cache already."""

    total: int
    reused: int
    seconds: float


class Constraint(Protocol):
    """A grammar over one vocabulary, for one document; `notes` say what of it is not kept to the letter."""

    @property
    def notes(self) -> tuple[str, ...]: ...

    def check(self, text: str) -> Breach | None:
        """How a text breaks the grammar, None where a document can begin with it."""
        ...

    def complete(self, text: str) -> bool:
        """Whether a text is a whole document."""
        ...

    def start(self, given: str = "", aside: Aside | None = None) -> None:
        """Take the place after `given`: a beginning of the document, or of an aside that has begun.

        Raises INVALID_REQUEST where the vocabulary cannot spell a document's beginning.
        """
        ...


class Timeline(Protocol):
    """One conversation's place in the KV cache."""

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens evaluated so far, from position 0."""
        ...

    def prefill(self, tokens: Sequence[int], progress: Progress | None = None) -> Prefill:
        """Make the cache hold exactly `tokens`; raises CONTEXT_LENGTH_EXCEEDED, MODEL_RUN_FAILED or Interrupted."""
        ...

    def decode(self, sampling: Sampling, *, logprobs: int = 0, constraint: Constraint | None = None) -> Iterator[Token]:
        """Sample from where the prefill ended; ends after a token that ends, or when the context is full.

        A `constraint` that has started leaves only the tokens that its grammar allows; it is used up by one call.
        Where only one text can follow, its tokens are not sampled, unless `logprobs` are asked for.

        `logprobs` N > 0 fills `logprob` and the N likeliest choices in `top`, from the model's own distribution before
        constraint, penalties and temperature. Raises Interrupted, MODEL_RUN_FAILED, or STRUCTURED_OUTPUT_FAILED where
        a grammar leaves nothing; the timeline stays usable after all of them.
        """
        ...

    def close(self) -> None:
        """Free the KV cache; closing twice is harmless."""
        ...


class Engine(Protocol):
    """An open model."""

    @property
    def info(self) -> ModelInfo: ...

    @property
    def threads(self) -> Threads:
        """The threads of the last timeline."""
        ...

    def tokenize(self, text: str) -> list[int]:
        """The whole prompt's tokens: special tokens parsed, BOS added where it is wanted and not there."""
        ...

    def token_bytes(self, token: int) -> bytes:
        """The bytes of a token, special tokens as their text."""
        ...

    def timeline(self) -> Timeline:
        """A new timeline, with a KV cache of its own."""
        ...

    def constraint(self, grammar: Grammar) -> Constraint:
        """A grammar over this vocabulary; raises NOT_IN_THIS_BUILD with the keyword that it cannot express."""
        ...

    def close(self) -> None:
        """Free the model and its timelines; closing twice is harmless, using any of them afterwards a RuntimeError."""
        ...
