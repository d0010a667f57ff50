"""`strata chat -n 1` as a whole process, beside a script that imports llama_cpp, loads, evaluates and decodes a token.

    python benchmarks/one_token.py MODEL.gguf [--threads 1] [--runs 5]

Both evaluate the same prompt; runs take turns. Milliseconds: median, lowest and highest, and the difference.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from statistics import median
from time import perf_counter

QUESTION = "Name three rivers, and say in a sentence for each of them where it begins and which sea it reaches."
BARE = """
import sys
from llama_cpp import Llama
path, prompt, threads = sys.argv[1], sys.stdin.read(), int(sys.argv[3])
model = Llama(path, n_ctx=2048, n_threads=threads, n_threads_batch=threads, verbose=False)
tokens = model.tokenize(prompt.encode(), add_bos=False, special=True)
model.eval(tokens)
token = model.sample(temp=0)
print(model.detokenize([token]).decode())
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    strata = [sys.executable, "-m", "strata_cli"]
    shown = [*strata, "render", "-q", "-m", options.model, QUESTION]
    prompt = subprocess.run(shown, capture_output=True, check=True, stdin=subprocess.DEVNULL).stdout
    threads = str(options.threads)
    chat = ["chat", "-m", options.model, "-t", threads, "-c", "2048", "-n", "1", "--temp", "0", "--no-cache"]
    known = subprocess.run([*strata, "chat", "--help"], capture_output=True, check=True).stdout
    if b"--no-cache" not in known:
        chat.remove("--no-cache")
    commands = {
        "strata chat -n 1": ([*strata, *chat], QUESTION.encode()),
        "bare script": ([sys.executable, "-c", BARE, options.model, "", threads], prompt),
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(options.runs + 1):
        for name, (command, given) in commands.items():
            began = perf_counter()
            subprocess.run(command, input=given, capture_output=True, check=True)
            if turn:  # the first reads the model from the disk
                times[name].append(1000 * (perf_counter() - began))
    for name, runs in times.items():
        print(f"{name:20} {median(runs):7.0f} ms ({min(runs):.0f} to {max(runs):.0f})")
    first, second = (median(runs) for runs in times.values())
    print(f"{'difference':20} {first - second:+7.0f} ms")


if __name__ == "__main__":
    main()
