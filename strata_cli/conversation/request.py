"""What is asked for: a conversation, how its answer begins, and how it is sampled."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from strata_cli.conversation.messages import NOTHING, JsonObject, Message, Tool

if TYPE_CHECKING:
    from strata_cli.conversation.structure import Structure


class SamplingOptions(NamedTuple):
    """What the request says of sampling; None where it says nothing. Names and units are llama.cpp's."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    seed: int | None = None
    repeat_penalty: float | None = None
    repeat_last_n: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    stop: tuple[str, ...] = ()


class Delivery(NamedTuple):
    """How the answer is handed over.

    `stream` and `usage` (in a stream) are None where the request says nothing of them; `choices` counts the answers;
    `logprobs` is None, or how many of the likeliest tokens are named beside each token, 0 and up; `metadata` comes back
    as it is.
    """

    stream: bool | None = None
    usage: bool | None = None
    choices: int = 1
    logprobs: int | None = None
    metadata: JsonObject = NOTHING


class ToolChoice(NamedTuple):
    """A demand for a call of one of these tools, of any where none is named; `several` where more calls may follow."""

    names: tuple[str, ...] = ()
    several: bool = True


class Request(NamedTuple):
    """One request. The four fields that begin the answer follow PREFILL's words:

    `assistant_prefix` follows the assistant's header; `response_prefix` follows the generation prompt (or the
    continued text); `continue_final` leaves the final assistant message open; `add_generation_prompt` false ends the
    prompt with the history. `structure` is the document that the answer has to be, `choice` the call.
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    assistant_prefix: str = ""
    response_prefix: str = ""
    continue_final: bool = False
    add_generation_prompt: bool = True
    template_kwargs: JsonObject = NOTHING
    sampling: SamplingOptions = SamplingOptions()
    delivery: Delivery = Delivery()
    structure: Structure | None = None
    choice: ToolChoice | None = None
    notes: tuple[str, ...] = ()
