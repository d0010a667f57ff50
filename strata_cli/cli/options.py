"""Every option of every command, written once: help, man pages and completions are read from here.

`takes` gives a command the fields of groups as its parameters and hands it the filled groups.
None means that nothing was said on the command line, in the environment or in the configuration file.
"""

# Typer reads these annotations as objects, so they must not be strings.
import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer


def option(*names: str, panel: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, help=help, show_default=False, **more)


class Group:
    """Options that belong together: a field each, with its default.

    Not a dataclass, since fifteen of those take a tenth of the time in which a command starts.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        values = dict(zip(self.names(), given, strict=False)) | named
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name} is what the user said")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(cls.__annotations__)

    def but(self, **changes: Any) -> "Group":
        """The same with other values."""
        return type(self)(**{name: getattr(self, name) for name in self.names()} | changes)


MODEL, CONTEXT, PREFILL, SAMPLING = "Model", "Context and device", "Prefill", "Sampling"
INPUT, TEMPLATE, OUTPUT, STRUCTURE = "Input", "Template", "Output", "Structured output"
MEASURE = "Measurement"

Switch = Literal["auto", "on", "off"]
DialectChoice = Annotated[
    Literal["auto", "openai", "anthropic"] | None,
    option("--dialect", panel=INPUT, help="Whose JSON comes and goes; auto sees it from the request. [auto]"),
]
DebugFlag = Annotated[
    bool, option("--debug", panel=OUTPUT, help="Prefill accounting and llama.cpp's log, on standard error.")
]
QuietFlag = Annotated[bool, option("-q", "--quiet", panel=OUTPUT, help="No notes and no progress.")]
ColorChoice = Annotated[
    Literal["auto", "always", "never"] | None, option("--color", panel=OUTPUT, help="When to use colour. [auto]")
]
CacheType = Literal["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"]


class ModelOptions(Group):
    """Which model."""

    model: Annotated[
        str | None,
        option("-m", "--model", panel=MODEL, metavar="MODEL", help="A GGUF file or a model's name. [STRATA_MODEL]"),
    ] = None


class DeviceOptions(Group):
    """How the model is loaded."""

    ctx_size: Annotated[
        int | None,
        option(
            "-c",
            "--ctx-size",
            panel=CONTEXT,
            metavar="N",
            min=1,
            help="Tokens of prompt and answer together. [the model's]",
        ),
    ] = None
    gpu_layers: Annotated[
        str | None,
        option("-ngl", "--gpu-layers", panel=CONTEXT, metavar="auto|all|N", help="Layers on the GPU. [auto]"),
    ] = None
    n_cpu_moe: Annotated[
        int | None,
        option("--n-cpu-moe", panel=CONTEXT, metavar="N", min=0, help="Layers whose experts stay on the CPU."),
    ] = None
    threads: Annotated[
        int | None, option("-t", "--threads", panel=CONTEXT, metavar="N", min=1, help="Threads. [one a core]")
    ] = None
    batch_size: Annotated[
        int | None,
        option(
            "-b", "--batch-size", panel=CONTEXT, metavar="N", min=1, help="Tokens evaluated at once. [as --ubatch-size]"
        ),
    ] = None
    ubatch_size: Annotated[
        int | None,
        option(
            "--ubatch-size",
            panel=CONTEXT,
            metavar="N",
            min=1,
            help="Tokens that the device takes at once. [512, or less]",
        ),
    ] = None
    flash_attn: Annotated[Switch | None, option("--flash-attn", panel=CONTEXT, help="Flash attention. [auto]")] = None
    cache_type_k: Annotated[
        CacheType | None,
        option("--cache-type-k", panel=CONTEXT, metavar="TYPE", help="KV cache type of the keys. [f16]"),
    ] = None
    cache_type_v: Annotated[
        CacheType | None,
        option("--cache-type-v", panel=CONTEXT, metavar="TYPE", help="KV cache type of the values. [f16]"),
    ] = None
    device: Annotated[
        list[str] | None,
        option("--device", panel=CONTEXT, metavar="NAME", help="Use this device only (repeatable)."),
    ] = None
    lora: Annotated[
        list[str] | None, option("--lora", panel=CONTEXT, metavar="FILE", help="A LoRA adapter (repeatable).")
    ] = None


class PrefillOptions(Group):
    """How the answer begins."""

    prefix: Annotated[
        str | None,
        option("--prefix", "--prefill", panel=PREFILL, metavar="TEXT", help="The beginning of the answer."),
    ] = None
    prefix_file: Annotated[
        str | None,
        option("--prefix-file", panel=PREFILL, metavar="FILE", help="Read the beginning of the answer from a file."),
    ] = None
    continue_final: Annotated[
        bool,
        option(
            "--continue",
            "--continue-final",
            panel=PREFILL,
            help="Continue the final assistant message of the conversation.",
        ),
    ] = False


class InputOptions(Group):
    """Where the conversation comes from."""

    system: Annotated[str | None, option("-s", "--system", panel=INPUT, metavar="TEXT", help="The system message.")] = (
        None
    )
    file: Annotated[
        str | None, option("-f", "--file", panel=INPUT, metavar="FILE", help="Read the prompt from a file.")
    ] = None
    messages: Annotated[
        str | None,
        option("--messages", panel=INPUT, metavar="FILE", help="Read a JSON conversation from a file."),
    ] = None
    input: Annotated[
        Literal["auto", "text", "json", "jsonl", "none"] | None,
        option("--input", panel=INPUT, help="What standard input holds; none leaves it alone. [auto]"),
    ] = None
    dialect: DialectChoice = None
    tools: Annotated[
        str | None,
        option(
            "--tools", panel=INPUT, metavar="FILE", help="Read tool definitions, as OpenAI or Anthropic write them."
        ),
    ] = None


class SessionOptions(Group):
    """Where the conversation is kept."""

    session: Annotated[
        str | None,
        option("--session", panel=INPUT, metavar="FILE", help="Go on with the conversation in this file, and keep it."),
    ] = None


class RawInputOptions(Group):
    """Where raw text comes from."""

    file: Annotated[
        str | None, option("-f", "--file", panel=INPUT, metavar="FILE", help="Read the text from a file.")
    ] = None
    input: Annotated[
        Literal["auto", "text", "none"] | None,
        option("--input", panel=INPUT, help="What standard input holds; none leaves it alone. [auto]"),
    ] = None
    dialect: DialectChoice = None


class TemplateOptions(Group):
    """How the conversation becomes a prompt."""

    think: Annotated[
        bool | None,
        option("--think/--no-think", panel=TEMPLATE, help="Ask the template for reasoning, or for none."),
    ] = None
    template: Annotated[
        str | None,
        option("--template", panel=TEMPLATE, metavar="FILE", help="A Jinja chat template instead of the model's."),
    ] = None
    template_kwargs: Annotated[
        str | None,
        option("--template-kwargs", panel=TEMPLATE, metavar="JSON", help="More variables for the template."),
    ] = None


class StructureOptions(Group):
    """Which document the answer has to be."""

    schema: Annotated[
        str | None,
        option("--schema", panel=STRUCTURE, metavar="FILE|JSON", help="The answer is a JSON document by this schema."),
    ] = None
    schema_mode: Annotated[
        Literal["constrain", "validate"] | None,
        option(
            "--schema-mode", panel=STRUCTURE, help="Write nothing else, or only check what was written. [constrain]"
        ),
    ] = None
    grammar: Annotated[
        str | None,
        option(
            "--grammar",
            panel=STRUCTURE,
            metavar="FILE",
            help="The answer is a text by this grammar: GBNF, Lark or a regular expression.",
        ),
    ] = None
    no_schema_instruction: Annotated[
        bool,
        option("--no-schema-instruction", panel=STRUCTURE, help="Do not tell the model the schema."),
    ] = False


class TokenTextOptions(Group):
    """What a template prints for special tokens when there is no model to ask."""

    bos: Annotated[
        str | None, option("--bos", panel=TEMPLATE, metavar="TEXT", help="The BOS token, where no model is read.")
    ] = None
    eos: Annotated[
        str | None, option("--eos", panel=TEMPLATE, metavar="TEXT", help="The EOS token, where no model is read.")
    ] = None


class SamplingOptions(Group):
    """How the next token is chosen."""

    max_tokens: Annotated[
        int | None,
        option(
            "-n", "--max-tokens", panel=SAMPLING, metavar="N", min=0, help="Generate at most N tokens. [as many as fit]"
        ),
    ] = None
    temperature: Annotated[
        float | None,
        option("--temp", panel=SAMPLING, metavar="T", min=0, help="Temperature; 0 takes the likeliest token. [0.8]"),
    ] = None
    top_k: Annotated[
        int | None,
        option("--top-k", panel=SAMPLING, metavar="N", min=0, help="Keep the N likeliest tokens; 0 keeps all. [40]"),
    ] = None
    top_p: Annotated[
        float | None,
        option("--top-p", panel=SAMPLING, metavar="P", min=0, max=1, help="Keep a probability mass of P. [0.95]"),
    ] = None
    min_p: Annotated[
        float | None,
        option("--min-p", panel=SAMPLING, metavar="P", min=0, max=1, help="Drop below P of the likeliest. [0.05]"),
    ] = None
    seed: Annotated[
        int | None,
        option(
            "--seed",
            panel=SAMPLING,
            metavar="N",
            min=0,
            max=2**32 - 2,
            help="Make the choices repeatable. [another each time]",
        ),
    ] = None
    repeat_penalty: Annotated[
        float | None,
        option("--repeat-penalty", panel=SAMPLING, metavar="X", min=0, help="Penalise repetition; 1 is off. [1.0]"),
    ] = None
    repeat_last_n: Annotated[
        int | None,
        option("--repeat-last-n", panel=SAMPLING, metavar="N", min=-1, help="Tokens that penalties look back on. [64]"),
    ] = None
    presence_penalty: Annotated[
        float | None,
        option("--presence-penalty", panel=SAMPLING, metavar="X", help="Penalise tokens that occurred. [0.0]"),
    ] = None
    frequency_penalty: Annotated[
        float | None,
        option("--frequency-penalty", panel=SAMPLING, metavar="X", help="Penalise tokens by how often. [0.0]"),
    ] = None
    stop: Annotated[
        list[str] | None,
        option("--stop", panel=SAMPLING, metavar="TEXT", help="End before this text in the answer (repeatable)."),
    ] = None


class OutputOptions(Group):
    """What is shown, and where."""

    output: Annotated[
        str | None, option("-o", "--output", panel=OUTPUT, metavar="FILE", help="Write the answer to a file.")
    ] = None
    format: Annotated[
        Literal["text", "json", "jsonl"] | None,
        option("--format", panel=OUTPUT, help="What is written; jsonl is the answer's stream, an event a line. [text]"),
    ] = None
    logprobs: Annotated[
        int | None,
        option("--logprobs", panel=OUTPUT, metavar="N", min=0, help="In JSON, each token with the N likeliest."),
    ] = None
    echo: Annotated[bool, option("--echo", panel=OUTPUT, help="Write the prefix before its continuation.")] = False
    raw: Annotated[
        bool, option("--raw", panel=OUTPUT, help="On a terminal too, the answer as it is, not as drawn markdown.")
    ] = False
    hide_thinking: Annotated[
        bool, option("--hide-thinking", panel=OUTPUT, help="In text, leave the reasoning out.")
    ] = False
    no_cache: Annotated[
        bool, option("--no-cache", panel=OUTPUT, help="Neither read nor keep evaluated prompts on disk.")
    ] = False
    stats: Annotated[bool, option("--stats", panel=OUTPUT, help="Speeds and counts, on standard error.")] = False
    debug: DebugFlag = False
    quiet: QuietFlag = False
    color: ColorChoice = None


class RenderOutputOptions(Group):
    """What render shows, and where."""

    output: Annotated[
        str | None, option("-o", "--output", panel=OUTPUT, metavar="FILE", help="Write the prompt to a file.")
    ] = None
    format: Annotated[
        Literal["text", "json"] | None, option("--format", panel=OUTPUT, help="What is written. [text]")
    ] = None
    debug: DebugFlag = False
    quiet: QuietFlag = False
    color: ColorChoice = None


class BenchOptions(Group):
    """What is measured, and how it is shown."""

    depth: Annotated[
        list[str] | None,
        option("--depth", panel=MEASURE, metavar="N,...", help="Tokens in the cache before (repeatable). [0,512]"),
    ] = None
    prompt_tokens: Annotated[
        int, option("--prompt-tokens", panel=MEASURE, metavar="N", min=1, help="Tokens to evaluate. [128]")
    ] = 128
    tokens: Annotated[int, option("--tokens", panel=MEASURE, metavar="N", min=1, help="Tokens to decode. [32]")] = 32
    runs: Annotated[int, option("--runs", panel=MEASURE, metavar="N", min=1, help="Runs of each. [5]")] = 5
    against: Annotated[
        Literal["raw"] | None,
        option("--against", panel=MEASURE, help="Beside it, a bare loop over llama.cpp, in turns."),
    ] = None
    format: Annotated[
        Literal["text", "json"] | None, option("--format", panel=OUTPUT, help="What is written. [text]")
    ] = None
    debug: DebugFlag = False
    quiet: QuietFlag = False


def parameters() -> frozenset[str]:
    """The names of all parameters, which a configuration file may set."""
    return frozenset(name for group in Group.__subclasses__() for name in group.names())


def takes(*groups: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the fields of these groups as parameters; it is called with its own and the filled groups."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [
            parameter
            for parameter in inspect.signature(command).parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_POSITIONAL
        ]

        @functools.wraps(command)
        def call(**values: Any) -> None:
            filled = [group(**{name: values.pop(name) for name in group.names()}) for group in groups]
            command(*(values[parameter.name] for parameter in own), *filled)

        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=getattr(group, name), annotation=kind)
            for group in groups
            for name, kind in group.__annotations__.items()
        ]
        call.__signature__ = inspect.Signature([*own, *added])
        call.__annotations__ = {}
        del call.__wrapped__
        return call

    return decorate
