"""Decode speed with a schema beside decode speed without, on the same model.

    python benchmarks/constrained.py MODEL.gguf [--tokens 96] [--runs 7] [--threads 1] [--cpu-time]

Runs alternate; medians are printed. "strings" is a long list of free texts, in which next to nothing is forced and a
mask is made for each token; "records" is a list of objects, whose keys are taken without sampling.
"""

from __future__ import annotations

import argparse
import json
from itertools import islice
from statistics import median
from time import perf_counter, process_time

from strata_cli.engine import Engine, Grammar, ModelOptions, Sampling, Timeline
from strata_cli.engine.llama import machine, open_model
from strata_cli.environment import Interrupt

PROMPT = "<|im_start|>user\nTell me of ten people, at length.<|im_end|>\n<|im_start|>assistant\n"
STRINGS = {"type": "array", "items": {"type": "string"}, "minItems": 100}
RECORDS = {
    "type": "array",
    "minItems": 100,
    "items": {
        "type": "object",
        "properties": {
            "given name": {"type": "string", "maxLength": 12},
            "family name": {"type": "string", "maxLength": 12},
            "year of birth": {"type": "integer", "minimum": 1900, "maximum": 2020},
        },
        "required": ["given name", "family name", "year of birth"],
        "additionalProperties": False,
    },
}


def speed(engine: Engine, timeline: Timeline, schema: object, count: int, clock: object, seed: int) -> float:
    """Tokens per second of one answer, from the first to the last; the mask's preparation is not counted."""
    constraint = None
    if schema is not None:
        constraint = engine.constraint(Grammar("json_schema", json.dumps(schema)))
        constraint.start()
    timeline.prefill(engine.tokenize(PROMPT))
    decoded = timeline.decode(Sampling(seed=seed), constraint=constraint)
    next(decoded)
    began = clock()  # type: ignore[operator]
    taken = sum(1 for _ in islice(decoded, count))
    return taken / (clock() - began)  # type: ignore[operator]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=machine.physical_cores())
    parser.add_argument("--cpu-time", action="store_true")
    options = parser.parse_args()
    clock = process_time if options.cpu_time else perf_counter
    engine = open_model(ModelOptions(options.model, context=1024, threads=options.threads), interrupt=Interrupt())
    timeline = engine.timeline()
    schemas = {"none": None, "strings": STRINGS, "records": RECORDS}
    speeds: dict[str, list[float]] = {name: [] for name in schemas}
    for turn in range(options.runs + 1):
        for name, schema in schemas.items():
            result = speed(engine, timeline, schema, options.tokens, clock, turn)
            if turn:  # the first is a warm-up
                speeds[name].append(result)
    free = median(speeds["none"])
    for name, values in speeds.items():
        print(f"{name:8} {median(values):8.1f} tokens per second ({median(values) / free:.3f})")


if __name__ == "__main__":
    main()
