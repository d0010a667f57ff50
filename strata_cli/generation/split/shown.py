"""What a template shows of its turns, believed only where the splitter reads the template's own calls back."""

from __future__ import annotations

import json
from dataclasses import replace

from strata_cli.conversation.messages import JsonObject
from strata_cli.generation.split.answer import Splitter
from strata_cli.generation.split.events import gather
from strata_cli.prompt.adapt import Reader
from strata_cli.prompt.toolformat.learn import NOT_READABLE, Learnt, learn
from strata_cli.prompt.toolformat.pieces import common_start
from strata_cli.prompt.toolformat.probe import (
    CHECKED,
    CONTENT,
    FIRST,
    HARD,
    PLAIN,
    SECOND,
    Prober,
    call_of,
)
from strata_cli.prompt.turn import Opening

SIMPLE_ONLY = "the template writes some arguments in a form that is not unique; calls with such arguments may differ"


def shown(reader: Reader) -> Learnt:
    """The turn and the format of calls that this template shows, each call read back; asked once per template.

    Where simple calls do not come back as they were, there is no format; where others do not, the note says so.
    """
    key = ("tool format, checked", json.dumps(dict(reader.extra), sort_keys=True, default=str))
    kept = reader.template.learnt
    if key not in kept:
        kept[key] = _checked(Prober(reader), learn(reader))
    return kept[key]  # type: ignore[no-any-return]


def _checked(prober: Prober, learnt: Learnt) -> Learnt:
    if learnt.format is None:
        return learnt
    if not _comes_back(prober, learnt, PLAIN):
        return replace(learnt, format=None, note=NOT_READABLE)
    return learnt if _comes_back(prober, learnt, HARD) else replace(learnt, note=SIMPLE_ONLY)


def _comes_back(prober: Prober, learnt: Learnt, arguments: JsonObject) -> bool:
    samples = (FIRST, SECOND)
    turn = prober.turn("", *(call_of(sample, arguments) for sample in samples))
    if turn is None or any(sample.name not in turn for sample in samples):
        samples = (FIRST,)
        turn = prober.turn("", call_of(FIRST, arguments))
    if turn is None:
        return False
    text, begun = _answer(prober, learnt, turn)
    splitter = Splitter(learnt.turn, Opening("content", learnt.turn.family), learnt.format, CHECKED, begun=begun)
    answer = gather((*splitter.push(text), *splitter.finish()))
    read = [(call.name, json.loads(str(call.arguments))) for call in answer.calls]
    return read == [(sample.name, dict(arguments)) for sample in samples] and not answer.failed


def _answer(prober: Prober, learnt: Learnt, turn: str) -> tuple[str, bool]:
    """What of a rendered turn a model would have written, and whether the prompt before it ends within a marker."""
    generation = prober.generation() or ""
    if learnt.turn.start and turn.startswith(generation):
        return turn[len(generation) :], True
    plain = (prober.turn(CONTENT) or "").partition(CONTENT)[0]
    header = max(common_start(turn, generation), common_start(turn, plain), key=len)
    return turn[len(header) :], False
