"""What a token costs in Strata's own work, early and late in a long answer; the model costs nothing here.

    python benchmarks/growth.py [--tokens 4000] [--runs 5]

Tokens become text, are searched for stop strings, and are drawn as on a terminal of 100 columns. Microseconds a token:
means of 400 tokens after the 40th and of the last 400, each the median of the runs, which take turns.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from time import perf_counter

from strata_cli.engine import Prefill, Sampling, Token
from strata_cli.generation.generate import Delta, Plan, generate
from strata_cli.output.terminal.markdown import Markdown

TEXTS = {
    "paragraphs": "It was a **dark** night.\n\n- an item with `code`\n- another\n\n",
    "one paragraph": "It was a **dark** and `stormy` night, and the rain fell. ",
    "one line of letters": "word",
    "code block": "value = call(argument)\n",
    "one list": "- an item of *many*\n",
    "one table": "| a cell | another |\n",
}
FIRST_LINES = {"code block": "```python\n", "one table": "| a | b |\n|---|---|\n"}
WINDOW, LETTERS = 400, 4


class Scripted:
    """A timeline that says what it is told to."""

    tokens: Sequence[int] = ()

    def __init__(self, text: str) -> None:
        self._pieces = [text[at : at + LETTERS].encode() for at in range(0, len(text), LETTERS)]

    def prefill(self, tokens: Sequence[int], progress: object = None) -> Prefill:
        return Prefill(len(tokens), 0, 0.0)

    def decode(self, sampling: Sampling, **_: object) -> Iterator[Token]:
        for number, data in enumerate(self._pieces):
            yield Token(number, data)

    def close(self) -> None:
        pass


def measure(kind: str, tokens: int, draw: bool) -> tuple[float, float]:
    sample = TEXTS[kind]
    text = FIRST_LINES.get(kind, "") + sample * (tokens * LETTERS // len(sample) + 1)
    plan = Plan(Sampling(temperature=0), stop=("\nUser:", "<|im_end|>"))
    sent: list[str] = []
    markdown = Markdown(sent.append, lambda: 100)
    write: Callable[[str], object] = markdown.write if draw else sent.append
    marks = [perf_counter()]
    for event in generate(Scripted(text[: tokens * LETTERS]), [1], plan, perf_counter):
        if isinstance(event, Delta):
            write(event.text)
            marks.append(perf_counter())
    # The beginning, where modules are imported, is left out.
    early, late = marks[40 : 40 + WINDOW], marks[-WINDOW:]
    return tuple(1e6 * (part[-1] - part[0]) / (len(part) - 1) for part in (early, late))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=4000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    cases = [(kind, draw) for draw in (False, True) for kind in TEXTS]
    found: dict[tuple[str, bool], list[tuple[float, float]]] = {case: [] for case in cases}
    for turn in range(options.runs + 1):
        for case in cases:
            result = measure(case[0], options.tokens, case[1])
            if turn:  # the first is a warm-up
                found[case].append(result)
    print(f"microseconds a token, early and at the end of {options.tokens:,}; median of {options.runs}")
    for (kind, draw), runs in found.items():
        early, late = (median(column) for column in zip(*runs, strict=True))
        print(f"{'drawn' if draw else 'plain':6} {kind:20} {early:8.1f} {late:8.1f}  {late / early:5.2f}x")


if __name__ == "__main__":
    main()
