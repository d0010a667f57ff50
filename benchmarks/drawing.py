"""The time that drawing takes: 1,500 tokens of markdown, in pieces of a token, beside what is sent unchanged.

    python benchmarks/drawing.py [--runs 5]

Each run is a fresh process, so that what drawing imports is counted.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from statistics import median

TOKENS, LETTERS = 1500, 4
SAMPLE = """\
## Reading a file

To read a file *safely*, open it with a **context manager**, which closes it `even if` something fails; see the
[documentation](https://docs.python.org/3/library/functions.html#open) for all of its modes and their meaning.

1. Open the file with `open(path, encoding="utf-8")`.
2. Read it **line by line**, because a large file may not fit in memory.
   - Strip the newline.
   - Skip what is empty.

```python
def lines(path: str) -> Iterator[str]:
    \"\"\"The lines of a file that are not empty.\"\"\"
    with open(path, encoding="utf-8") as file:
        for line in file:  # one at a time
            if stripped := line.strip():
                yield stripped
```

| Mode | Meaning      | Creates |
|:-----|:-------------|--------:|
| `r`  | read         |      no |
| `w`  | **overwrite**|     yes |
| `a`  | append       |     yes |

> A file that is opened for writing is emptied at once. 文字は二つの列を取ります。

"""


def measure() -> None:
    from time import perf_counter, process_time

    from strata_cli.output.terminal.markdown import Markdown

    text = (SAMPLE * 10)[: TOKENS * LETTERS]
    sent: list[str] = []
    began, busy = perf_counter(), process_time()
    markdown = Markdown(sent.append, lambda: 100)
    for at in range(0, len(text), LETTERS):
        markdown.write(text[at : at + LETTERS])
    markdown.finish()
    print(1000 * (perf_counter() - began), 1000 * (process_time() - busy), sum(map(len, sent)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    results = []
    for _ in range(runs):
        done = subprocess.run([sys.executable, __file__, "--once"], capture_output=True, text=True, check=True)
        results.append([float(figure) for figure in done.stdout.split()])
    clock, busy, size = (median(column) for column in zip(*results, strict=True))
    print(f"{TOKENS} tokens of {LETTERS} characters: {clock:.0f} ms, {busy:.0f} ms of it computing, {size:.0f} sent")


if __name__ == "__main__":
    measure() if sys.argv[1:] == ["--once"] else main()
