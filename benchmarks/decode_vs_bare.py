"""Prefill and decode of the engine beside a bare loop over llama_decode, on the same model.

    python benchmarks/decode_vs_bare.py MODEL.gguf [--depth 0 512 4096] [--tokens 64] [--runs 5]

Runs alternate, so that a busy machine slows both; medians are printed, and the ratio engine / bare. Run it on an
otherwise idle machine: llama.cpp's threads wait for each other by spinning. On a busy one, `--threads 1 --cpu-time`
counts the processor's time of this process, which others disturb less.
"""

from __future__ import annotations

import argparse
import ctypes
from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time

from strata_cli.engine import ModelOptions, Sampling
from strata_cli.engine.llama import library, machine, open_model
from strata_cli.environment import Interrupt

Speeds = tuple[float, float]
clock = perf_counter
ALL_SAMPLERS = Sampling(repeat_penalty=1.1, presence_penalty=0.1, frequency_penalty=0.1)


def bare(path: str, context: int, threads: int) -> Callable[[list[int], int], Speeds]:
    """What a script of a few lines does: returns a function (prompt, tokens) -> tokens per second in both phases."""
    api = library.load()

    model = api.llama_model_load_from_file(path.encode(), api.llama_model_default_params())
    parameters = api.llama_context_default_params()
    parameters.n_ctx, parameters.n_batch, parameters.n_ubatch = context, 2048, 512
    parameters.n_threads = parameters.n_threads_batch = threads
    parameters.swa_full = False
    handle = api.llama_init_from_model(model, parameters)
    greedy = api.llama_sampler_init_greedy()

    def run(prompt: list[int], tokens: int) -> Speeds:
        api.llama_memory_clear(api.llama_get_memory(handle), False)
        started = clock()
        for start in range(0, len(prompt), 2048):
            piece = prompt[start : start + 2048]
            buffer = (ctypes.c_int32 * len(piece))(*piece)
            api.llama_decode(handle, api.llama_batch_get_one(buffer, len(piece)))
        token = (ctypes.c_int32 * 1)(api.llama_sampler_sample(greedy, handle, -1))
        between = clock()
        for _ in range(tokens):
            api.llama_decode(handle, api.llama_batch_get_one(token, 1))
            token[0] = api.llama_sampler_sample(greedy, handle, -1)
        return len(prompt) / (between - started), tokens / (clock() - between)

    return run


def engine(path: str, context: int, threads: int, sampling: Sampling) -> Callable[[list[int], int], Speeds]:
    """The same through the engine; a generation that ends is begun again from its last token."""
    model = open_model(ModelOptions(path, context=context, threads=threads), interrupt=Interrupt())
    timeline = model.timeline()

    def run(prompt: list[int], tokens: int) -> Speeds:
        timeline.prefill([prompt[0] ^ 1])
        started = clock()
        timeline.prefill(prompt)
        produced = timeline.decode(sampling)
        token = next(produced)
        between = clock()
        ids = [*prompt, token.id]
        for _ in range(tokens):
            if token.end:
                timeline.prefill(ids)
                produced = timeline.decode(sampling)
            token = next(produced)
            ids.append(token.id)
        return len(prompt) / (between - started), tokens / (clock() - between)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--depth", type=int, nargs="+", default=[0, 512, 4096])
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=machine.physical_cores())
    parser.add_argument("--cpu-time", action="store_true")
    options = parser.parse_args()
    if options.cpu_time:
        global clock
        clock = process_time
    context = max(options.depth) + options.tokens + 64
    runners = {
        "engine, greedy": engine(options.model, context, options.threads, Sampling(temperature=0)),
        "bare, greedy": bare(options.model, context, options.threads),
        "engine, all samplers": engine(options.model, context, options.threads, ALL_SAMPLERS),
    }
    print(f"{options.threads} threads, {options.tokens} tokens, median of {options.runs}; tokens per second")
    for depth in options.depth:
        # Ids of ordinary tokens, the same for all; 40 stand for an empty conversation.
        prompt = [65 + index * 7 % 200 for index in range(max(depth, 40))]
        speeds: dict[str, list[Speeds]] = {name: [] for name in runners}
        for turn in range(options.runs + 1):
            for name, run in runners.items():
                result = run(prompt, options.tokens)
                if turn:  # the first is a warm-up
                    speeds[name].append(result)
        report(depth, speeds)


def report(depth: int, speeds: dict[str, list[Speeds]]) -> None:
    medians = {name: tuple(median(column) for column in zip(*runs, strict=True)) for name, runs in speeds.items()}
    base = medians["bare, greedy"]
    for name, (prefill, decode) in medians.items():
        print(
            f"depth {depth:5}  {name:21} prefill {prefill:8.1f} ({prefill / base[0]:.3f})"
            f"  decode {decode:8.1f} ({decode / base[1]:.3f})"
        )


if __name__ == "__main__":
    main()
