"""What fits where: a pure estimate of memory from a model file's header, in bytes.

Estimates err on the large side: too few layers on a GPU cost speed, too many cost the load.
llama.cpp puts the last layers on the GPU first, the output counted as one more layer, and keeps the input embedding in
main memory. A KV cache layer lives where its layer lives.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from strata_cli.engine import ModelOptions
from strata_cli.store.gguf import BLOCKS, GgufFile

# The layer types that llama.cpp's `type_k` and `type_v` take.
CACHE_TYPES = {
    "f32": 0,
    "f16": 1,
    "bf16": 30,
    "q8_0": 8,
    "q4_0": 2,
    "q4_1": 3,
    "iq4_nl": 20,
    "q5_0": 6,
    "q5_1": 7,
}
# llama.cpp rounds every cache up to this many positions.
_CELLS = 256
# For the driver's own data and for what the estimate does not see.
_DEVICE_RESERVE = 768 << 20
_LEAST_CONTEXT = 4096
_UBATCH, _LEAST_UBATCH = 512, 64
# Multiplications in one matrix product over a batch: about 0.1 s on a small machine.
_OPERATIONS = 2_500_000_000
# One layer in so many sees the whole context, where llama.cpp knows this by architecture (`load_swa_pattern`).
_DENSE_EVERY = {
    "afmoe": 4,
    "cohere2": 4,
    "cohere2moe": 4,
    "exaone-moe": 4,
    "exaone4": 4,
    "gemma2": 2,
    "gemma3": 6,
    "gemma3n": 5,
    "gpt-oss": 2,
    "llama4": 4,
    "olmo2": 4,
    "plamo3": 8,
    "smallthinker": 4,
}


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a model: weights of each layer, of the experts in it and outside of layers, KV cache per position.

    `width` is the number of intermediate values per token, `matrix` the elements of the largest matrix in a layer.
    """

    layers: tuple[int, ...]
    experts: tuple[int, ...]
    input: int
    output: int
    cache: tuple[int, ...]
    windows: tuple[int, ...]
    training_context: int
    width: int
    matrix: int
    heads: int

    @property
    def weights(self) -> int:
        return sum(self.layers) + self.input + self.output


def shape(files: Sequence[GgufFile], cache_type_k: str, cache_type_v: str) -> Shape:
    """What the headers of a model's files say about its sizes."""
    first = files[0]
    architecture = first.text("general.architecture")

    def number(key: str) -> int:
        return first.number(f"{architecture}.{key}") or 0

    count = number("block_count")
    layers, experts, outside = [0] * count, [0] * count, {"token_embd": 0, "output": 0}
    for file in files:
        for tensor in file.tensors:
            match = re.match(r"blk\.(\d+)\.(.*)", tensor.name)
            if match and int(match[1]) < count:
                layers[int(match[1])] += tensor.size or 0
                experts[int(match[1])] += (tensor.size or 0) * bool(re.search(r"_(ch)?exps", match[2]))
            else:
                outside["token_embd" if tensor.name.startswith("token_embd") else "output"] += tensor.size or 0
    embedding = outside["token_embd"]
    forward = max(_per_layer(first, f"{architecture}.feed_forward_length", 1, 0)[0], number("embedding_length"))
    tied = not any(tensor.name == "output.weight" for file in files for tensor in file.tensors)
    return Shape(
        layers=tuple(layers),
        experts=tuple(experts),
        input=embedding,
        output=outside["output"] + (embedding if tied else 0),
        cache=_cache_per_position(first, architecture, count, cache_type_k, cache_type_v),
        windows=_windows(first, architecture, count),
        training_context=number("context_length"),
        width=4 * number("embedding_length") + 2 * forward,
        matrix=number("embedding_length") * forward,
        heads=_per_layer(first, f"{architecture}.attention.head_count", 1, 1)[0],
    )


def _per_layer(file: GgufFile, key: str, count: int, default: int) -> list[int]:
    """A value that a file gives once or for each layer."""
    value = file.metadata.get(key)
    if isinstance(value, tuple):
        numbers = [int(item) for item in value if isinstance(item, int | float)]
        return (numbers + [default] * count)[:count]
    return [value if isinstance(value, int) else default] * count


def _cache_per_position(file: GgufFile, architecture: str, count: int, type_k: str, type_v: str) -> tuple[int, ...]:
    heads = _per_layer(file, f"{architecture}.attention.head_count", count, 0)
    key_heads = _per_layer(file, f"{architecture}.attention.head_count_kv", count, max(heads, default=0))
    width = (file.number(f"{architecture}.embedding_length") or 0) // max(1, *heads) if heads else 0
    key = file.number(f"{architecture}.attention.key_length") or width
    value = file.number(f"{architecture}.attention.value_length") or width
    sizes = [each * (_bytes(key, type_k) + _bytes(value, type_v)) for each in key_heads]
    # Hybrid models: the other layers have a state of fixed size instead.
    if interval := file.number(f"{architecture}.full_attention_interval"):
        sizes = [size if (layer + 1) % interval == 0 else 0 for layer, size in enumerate(sizes)]
    return tuple(sizes)


def _bytes(elements: int, name: str) -> int:
    block, size = BLOCKS[CACHE_TYPES[name]]
    return -(-elements // block) * size


def _windows(file: GgufFile, architecture: str, count: int) -> tuple[int, ...]:
    """How many positions back each layer sees; 0 for all."""
    window = file.number(f"{architecture}.attention.sliding_window") or 0
    pattern = file.metadata.get(f"{architecture}.attention.sliding_window_pattern")
    if isinstance(pattern, tuple):
        return tuple(window if sliding else 0 for sliding in (*pattern, *[False] * count))[:count]
    period = pattern if isinstance(pattern, int) and pattern > 0 else _DENSE_EVERY.get(architecture, 0)
    if not window or not period:
        return (0,) * count
    return tuple(window if layer % period < period - 1 else 0 for layer in range(count))


def cache_bytes(model: Shape, context: int, ubatch: int, first_layer: int = 0) -> int:
    """The KV cache of the layers from `first_layer` on."""
    total = 0
    for size, window in list(zip(model.cache, model.windows, strict=True))[first_layer:]:
        cells = min(context, window + ubatch) if window else context
        total += size * _round_up(cells)
    return total


def _round_up(cells: int) -> int:
    return -(-cells // _CELLS) * _CELLS


def compute_bytes(model: Shape, context: int, ubatch: int, flash: bool) -> int:
    """Room for the intermediate results of one evaluation; without flash attention every head has its own scores."""
    return 4 * ubatch * (model.width + context * (1 if flash else 1 + model.heads))


@dataclass(frozen=True, slots=True)
class Plan:
    """How a model is to be opened: `layers` on devices, the output counted as one; what the user should know."""

    context: int
    ubatch: int
    layers: int
    notes: tuple[str, ...] = ()


def plan(model: Shape, options: ModelOptions, free: Sequence[int], memory: int | None) -> Plan:
    """Context, batch and layers for this model; `free` is each device's memory, `memory` the machine's."""
    ubatch = options.ubatch or _ubatch(model, bool(free))
    ubatch = min(ubatch, options.batch or ubatch)
    left = sum(free) - _DEVICE_RESERVE * len(free)
    context = options.context or _default_context(model, options, ubatch, left if free else 0, memory)
    notes = []
    if options.context is None and context < model.training_context:
        notes.append(
            f"The context is {context:,} tokens, as memory allows, of the {model.training_context:,} that the model "
            f"was trained for; -c sets it."
        )
    if 0 < model.training_context < context:
        notes.append(
            f"The context is {context:,} tokens, and the model was trained for {model.training_context:,}; what it "
            "writes beyond these may make no sense."
        )
    everything = len(model.layers) + 1
    if options.gpu_layers == "all":
        layers = everything
    elif options.gpu_layers != "auto":
        layers = min(options.gpu_layers, everything)
    else:
        layers = _fitting_layers(model, options, context, ubatch, left)
        if free and layers < everything:
            notes.append(f"{layers} of {everything} layers fit on the GPU; the others run on the CPU.")
    return Plan(context, ubatch, layers if free else 0, tuple(notes))


def with_fewer_layers(plan: Plan) -> Plan:
    """The next plan to try after this one did not fit."""
    layers = plan.layers * 3 // 4
    notes = [note for note in plan.notes if not note.startswith("With ")]
    notes.append(f"With {plan.layers} layers on the GPU the model could not be loaded, so {layers} are there.")
    return replace(plan, layers=layers, notes=tuple(notes))


def _ubatch(model: Shape, on_device: bool) -> int:
    """Tokens evaluated at a time.

    On a CPU an evaluation stops only between two operations, and one multiplication over 512 tokens takes a second in
    a model of 7 billion weights: larger models are given smaller pieces, which also moves the progress bar.
    """
    if on_device:
        return _UBATCH
    size = _UBATCH
    while size > _LEAST_UBATCH and size * model.matrix > _OPERATIONS:
        size //= 2
    return size


def _default_context(model: Shape, options: ModelOptions, ubatch: int, left: int, memory: int | None) -> int:
    """The training context, or what fits; at least 4,096, so that a model too large for the memory runs from disk.

    On a CPU half of what the weights leave is used, because a KV cache is filled when it is made and the rest of the
    machine wants to live. On devices all of it, if all layers fit beside it.
    """
    wanted = model.training_context or _LEAST_CONTEXT
    least = min(_LEAST_CONTEXT, wanted)
    flash = options.flash_attention != "off"

    def fits_device(context: int) -> bool:
        return _on_device(model, options, context, ubatch) + compute_bytes(model, context, ubatch, flash) <= left

    def fits_memory(context: int) -> bool:
        return memory is None or cache_bytes(model, context, ubatch) <= (memory - model.weights) // 2

    fits = fits_device if left and options.gpu_layers in ("auto", "all") and fits_device(least) else fits_memory
    if fits(wanted):
        return wanted
    most = wanted
    while most - least > _CELLS:
        middle = (least + most) // 2
        least, most = (middle, most) if fits(middle) else (least, middle)
    return max(least // _CELLS * _CELLS, min(_LEAST_CONTEXT, wanted))


def _on_device(model: Shape, options: ModelOptions, context: int, ubatch: int, first: int = 0) -> int:
    """Weights and KV cache of the layers from `first` on, and of the output."""
    experts = sum(model.experts[first : options.cpu_moe])
    return sum(model.layers[first:]) - experts + model.output + cache_bytes(model, context, ubatch, first)


def _fitting_layers(model: Shape, options: ModelOptions, context: int, ubatch: int, left: int) -> int:
    count = len(model.layers)
    left -= compute_bytes(model, context, ubatch, options.flash_attention != "off")
    for first in range(count + 1):
        if _on_device(model, options, context, ubatch, first) <= left:
            return count + 1 - first
    return 0
