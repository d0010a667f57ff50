"""The first token after a long document: evaluated, and taken from the cache on disk.

    python benchmarks/prompt_cache.py [--words 3900] [--runs 3]

Each run is two processes with a fresh cache and another question each; seconds to the first byte, medians.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

WORDS = (
    "the fox ran over a green hill and saw seven old boats near some quiet river while rain fell on every stone house"
)


def first_byte(document: Path, question: str, cache: str) -> float:
    command = [
        sys.executable,
        "-m",
        "strata_cli",
        "chat",
        "-q",
        "-n",
        "1",
        "--temp",
        "0",
        "-f",
        str(document),
        question,
    ]
    began = perf_counter()
    environment = os.environ | {"XDG_CACHE_HOME": cache}
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        return perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=3900)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    evaluated, cached = [], []
    with tempfile.TemporaryDirectory() as folder:
        for run in range(options.runs):
            document, cache = Path(folder) / f"{run}.txt", str(Path(folder) / str(run))
            chosen = random.Random(run).choices(WORDS.split(), k=options.words)
            document.write_text(" ".join(chosen))
            evaluated.append(first_byte(document, "What ran?", cache))
            cached.append(first_byte(document, "What fell on the house?", cache))
    share = median(cached) / median(evaluated)
    print(f"evaluated {median(evaluated):.2f} s, from the cache {median(cached):.2f} s, {share:.3f} of it")


if __name__ == "__main__":
    main()
