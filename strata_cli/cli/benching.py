"""Speed of prefill and decode at chosen depths, of the engine and of a bare loop beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, cast

from strata_cli.cli.opening import open_engine
from strata_cli.cli.options import BenchOptions, DeviceOptions, ModelOptions
from strata_cli.engine import Sampling, Timeline
from strata_cli.environment import Environment
from strata_cli.errors import INVALID_USAGE, StrataError
from strata_cli.output.terminal.messages import Messages
from strata_cli.output.terminal.progress import Bar

if TYPE_CHECKING:
    from strata_cli.engine.llama import LlamaEngine
    from strata_cli.engine.llama.bare import BareLoop

_GREEDY = Sampling(temperature=0)
_ALL_SAMPLERS = Sampling(repeat_penalty=1.1, presence_penalty=0.1, frequency_penalty=0.1)


@dataclass(frozen=True, slots=True)
class Row:
    """Tokens per second of one runner at one depth, a figure a run; no prefill where it was not measured."""

    depth: int
    name: str
    prefill: tuple[float, ...]
    decode: tuple[float, ...]


class Runner(Protocol):
    """What is measured; both give tokens per second."""

    name: str

    def prefill(self, depth: Sequence[int], tokens: Sequence[int]) -> float | None: ...

    def decode(self, depth: Sequence[int], count: int) -> float: ...


class EngineRunner:
    """The engine; several may share a timeline, so that a depth is evaluated once."""

    def __init__(self, name: str, timeline: Timeline, sampling: Sampling, *, prefills: bool = True) -> None:
        self.name, self._timeline, self._sampling, self._prefills = name, timeline, sampling, prefills

    def prefill(self, depth: Sequence[int], tokens: Sequence[int]) -> float | None:
        if not self._prefills:
            return None
        # A token that differs from the first one empties the cache.
        self._timeline.prefill(depth or [tokens[0] ^ 1])
        started = perf_counter()
        self._timeline.prefill([*depth, *tokens])
        # A device may still be at work; a sample waits for it.
        next(self._timeline.decode(_GREEDY))
        return len(tokens) / (perf_counter() - started)

    def decode(self, depth: Sequence[int], count: int) -> float:
        """A generation that ends is begun again from its last token."""
        ids = list(depth or _tokens(1))
        self._timeline.prefill(ids)
        produced = self._timeline.decode(self._sampling)
        token = next(produced)
        started = perf_counter()
        for _ in range(count):
            ids.append(token.id)
            if token.end:
                self._timeline.prefill(ids)
                produced = self._timeline.decode(self._sampling)
            token = next(produced)
        return count / (perf_counter() - started)


class BareRunner:
    """The bare loop."""

    name = "bare, greedy"

    def __init__(self, loop: BareLoop) -> None:
        self._loop = loop

    def prefill(self, depth: Sequence[int], tokens: Sequence[int]) -> float | None:
        self._loop.stand_at(depth)
        started = perf_counter()
        self._loop.evaluate(tokens)
        self._loop.likeliest()
        return len(tokens) / (perf_counter() - started)

    def decode(self, depth: Sequence[int], count: int) -> float:
        self._loop.stand_at(depth or _tokens(1))
        started = perf_counter()
        self._loop.decode(_tokens(1)[0], count)
        return count / (perf_counter() - started)


def bench(environment: Environment, options: BenchOptions, model: ModelOptions, device: DeviceOptions) -> int:
    """Measure, and write a table or JSON on standard output."""
    depths = _depths(options.depth)
    wanted = max(depths) + max(options.prompt_tokens, options.tokens + 1) + 1
    device = device.but(ctx_size=device.ctx_size or wanted)
    if device.ctx_size < wanted:
        raise StrataError(INVALID_USAGE, f"-c {device.ctx_size} is too small", hint=f"this needs -c {wanted}")
    messages = Messages(environment, quiet=options.quiet, debug=options.debug or environment.debug)
    opened = open_engine(environment, messages, model, device, quiet=options.quiet)
    engine = cast("LlamaEngine", opened)
    loop = engine.bare() if options.against else None
    try:
        rows = list(_measured(environment, _runners(engine, loop), depths, options))
        report = _report(engine, options, rows)
    finally:
        if loop is not None:
            loop.close()
        engine.close()
    text = json.dumps(report, ensure_ascii=False) if options.format == "json" else _table(report)
    environment.stdout.text(text + "\n")
    return 0


def _runners(engine: LlamaEngine, loop: BareLoop | None) -> list[Runner]:
    timeline = engine.timeline()
    greedy = EngineRunner("engine, greedy", timeline, _GREEDY)
    every = EngineRunner("engine, all samplers", timeline, _ALL_SAMPLERS, prefills=False)
    return [greedy, every] if loop is None else [greedy, BareRunner(loop), every]


def _measured(
    environment: Environment, runners: Sequence[Runner], depths: Sequence[int], options: BenchOptions
) -> Iterator[Row]:
    """The runners take turns, so that a busy machine slows all; the first turn warms up and is not counted.

    The order changes from turn to turn: who comes second may find a warmer machine.
    """
    bar = Bar(environment, "measuring", shown=not options.quiet)
    steps, done = len(depths) * (options.runs + 1) * len(runners), 0
    try:
        for depth in depths:
            held, speeds = _tokens(depth), [([], []) for _ in runners]
            for turn in range(options.runs + 1):
                pairs = list(zip(runners, speeds, strict=True))
                for runner, (prefills, decodes) in pairs if turn % 2 else reversed(pairs):
                    bar(done, steps)
                    prefill = runner.prefill(held, _tokens(options.prompt_tokens))
                    decode = runner.decode(held, options.tokens)
                    done += 1
                    if turn:
                        prefills += [] if prefill is None else [prefill]
                        decodes.append(decode)
            for runner, (prefills, decodes) in zip(runners, speeds, strict=True):
                yield Row(depth, runner.name, tuple(prefills), tuple(decodes))
    finally:
        bar.close()


def _depths(said: list[str] | None) -> list[int]:
    parts = [part.strip() for text in said or ["0,512"] for part in text.split(",")]
    for part in parts:
        if not part.isdecimal() or len(part) > 8:
            raise StrataError(INVALID_USAGE, f"--depth {part} is no number of tokens", hint="--depth 0,512,4096")
    return [int(part) for part in parts]


def _tokens(count: int) -> list[int]:
    """Numbers of ordinary tokens, the same each time."""
    return [65 + index * 7 % 200 for index in range(count)]


def _report(engine: LlamaEngine, options: BenchOptions, rows: Sequence[Row]) -> dict[str, Any]:
    info = engine.info
    base = {row.depth: row for row in rows if row.name == BareRunner.name}
    return {
        "model": info.name,
        "path": info.path,
        "device": info.device,
        "gpu_layers": info.gpu_layers,
        "threads": engine.threads.working or engine.threads.most,
        **engine.build(),
        "context": info.context,
        "prompt_tokens": options.prompt_tokens,
        "tokens": options.tokens,
        "runs": options.runs,
        "against": "raw" if base else None,
        "results": [result(row, base.get(row.depth)) for row in rows],
    }


def result(row: Row, base: Row | None) -> dict[str, Any]:
    found: dict[str, Any] = {"depth": row.depth, "name": row.name}
    for phase in ("prefill", "decode"):
        figures = getattr(row, phase)
        if figures:
            found[phase] = {"median": median(figures), "min": min(figures), "max": max(figures), "runs": [*figures]}
            if base is not None and base is not row:
                # Neighbours in time are compared: a machine drifts between turns.
                turns = zip(figures, getattr(base, phase), strict=True)
                found[phase]["against_bare"] = median(ours / bare for ours, bare in turns)
    return found


def _table(report: dict[str, Any]) -> str:
    head = [
        f"{report['model']} ({report['path']})",
        f"{report['device']}, {_counted(report['gpu_layers'], 'layer')} on it, "
        f"{_counted(report['threads'], 'thread')}, "
        f"batch {report['batch']}, micro-batch {report['ubatch']}",
        f"llama-cpp-python {report['llama_cpp_python']}; {report['system_info']}",
        f"tokens per second: median of {_counted(report['runs'], 'run')} (lowest to highest); "
        f"prefill of {_counted(report['prompt_tokens'], 'token')}, decode of {report['tokens']}",
        *["x: each run beside the bare one of its turn, the median of these ratios"] * (report["against"] is not None),
        "",
        f"{'depth':>6}  {'':21} {'prefill':>30}  {'decode':>30}".rstrip(),
    ]
    rows = [
        f"{found['depth']:6}  {found['name']:21} {_cell(found.get('prefill')):>30}  {_cell(found['decode']):>30}"
        for found in report["results"]
    ]
    return "\n".join([*head, *rows])


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _cell(figures: dict[str, Any] | None) -> str:
    if figures is None:
        return ""
    ratio = f" {figures['against_bare']:.3f}x" if "against_bare" in figures else ""
    return f"{figures['median']:.1f} ({figures['min']:.1f} to {figures['max']:.1f}){ratio}"
