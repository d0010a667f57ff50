"""Evaluated prompts on disk: what comes back is what was evaluated, and nothing else does."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from strata_cli.engine import ModelOptions, Sampling, Token
from strata_cli.engine.cache import PromptCache, Shelf, identity
from strata_cli.engine.llama import LlamaEngine, open_model, timeline
from strata_cli.environment import Interrupt
from tests import tiny
from tests.shell import strata

KEY, OTHER = identity(["model"]), identity(["another"])
TOKENS = list(range(500))


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "strata" / "prompts"


@pytest.fixture
def cache(folder: Path, notes: list[str]) -> PromptCache:
    return PromptCache(folder, notes.append)


@pytest.fixture
def all_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "SLOW", 0.0)


def only(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


class TestFolder:
    def test_what_was_kept_comes_back(self, cache: PromptCache) -> None:
        cache.keep(KEY, TOKENS, b"state" * 100)
        found = cache.find(KEY, TOKENS)
        assert found is not None and found.tokens == TOKENS and found.common == len(TOKENS)
        assert cache.load(found) == b"state" * 100

    def test_the_longest_common_beginning_is_found(self, cache: PromptCache) -> None:
        cache.keep(KEY, [*TOKENS[:200], 9], b"short")
        cache.keep(KEY, [*TOKENS[:300], 9, 9], b"long")
        found = cache.find(KEY, TOKENS)
        assert found is not None and found.common == 300 and cache.load(found) == b"long"
        assert cache.find(KEY, TOKENS, more_than=300) is None

    def test_a_whole_text_is_found_where_no_part_is_of_use(self, cache: PromptCache) -> None:
        cache.keep(KEY, TOKENS[:200], b"whole")
        cache.keep(KEY, [*TOKENS[:300], 9], b"part")
        found = cache.find(KEY, TOKENS, whole=True)
        assert found is not None and cache.load(found) == b"whole"

    def test_another_models_states_are_foreign(self, cache: PromptCache) -> None:
        cache.keep(OTHER, TOKENS, b"state")
        assert cache.find(KEY, TOKENS) is None

    def test_only_the_user_may_read_it(self, cache: PromptCache, folder: Path) -> None:
        cache.keep(KEY, TOKENS, b"state")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(only(folder).stat().st_mode) == 0o600

    def test_the_first_file_is_announced_once(self, cache: PromptCache, folder: Path, notes: list[str]) -> None:
        cache.keep(KEY, TOKENS, b"state")
        cache.keep(KEY, TOKENS[:9], b"state")
        (note,) = notes
        assert str(folder) in note and "strata cache clear" in note and "--no-cache" in note

    @pytest.mark.parametrize("place", range(0, 2130, 10))
    def test_a_damaged_byte_is_noticed(self, cache: PromptCache, folder: Path, notes: list[str], place: int) -> None:
        cache.keep(KEY, TOKENS, b"state" * 6)
        path, found = only(folder), cache.find(KEY, TOKENS)
        assert found is not None
        data = bytearray(path.read_bytes())
        data[place % len(data)] ^= 0x10
        path.write_bytes(data)
        assert cache.load(found) is None
        assert "damaged" in notes[-1] and not path.exists()

    def test_lengths_that_were_moved_are_noticed(self, cache: PromptCache, folder: Path) -> None:
        cache.keep(KEY, TOKENS, b"state" * 6)
        path, found = only(folder), cache.find(KEY, TOKENS)
        data = bytearray(path.read_bytes())
        data[48:64] = (len(TOKENS) + 1).to_bytes(8, "little") + (26).to_bytes(8, "little")
        path.write_bytes(data)
        assert found is not None and cache.load(found) is None

    def test_a_file_of_another_kind_is_removed(self, cache: PromptCache, folder: Path, notes: list[str]) -> None:
        cache.keep(KEY, TOKENS, b"state")
        path = only(folder)
        path.write_bytes(b"strata prompt 0\n" + path.read_bytes()[16:])
        assert cache.find(KEY, TOKENS) is None
        assert not path.exists() and "damaged" in notes[-1]

    @pytest.mark.parametrize("length", [0, 1, 50, 95, 96, 97, 1000, 2095, 2096, 2125])
    def test_a_file_that_was_cut_is_noticed(self, cache: PromptCache, folder: Path, length: int) -> None:
        cache.keep(KEY, TOKENS, b"state" * 6)
        found, path = cache.find(KEY, TOKENS), only(folder)
        assert found is not None
        assert length < path.stat().st_size == 2126
        os.truncate(path, length)
        cache.find(KEY, TOKENS)
        assert cache.load(found) is None and not path.exists()
        assert cache.find(KEY, TOKENS) is None

    def test_one_that_grew_is_noticed(self, cache: PromptCache, folder: Path) -> None:
        cache.keep(KEY, TOKENS, b"state")
        found = cache.find(KEY, TOKENS)
        with only(folder).open("ab") as file:
            file.write(b"x")
        assert found is not None and cache.load(found) is None

    def test_what_was_not_used_for_longest_goes_first(self, folder: Path, notes: list[str]) -> None:
        cache = PromptCache(folder, notes.append, limit=3_500)
        for number, age in ((1, 300), (2, 200), (3, 100)):
            cache.keep(KEY, [number], b"x" * 1000)
            found = cache.find(KEY, [number])
            assert found is not None
            os.utime(found.path, (time.time() - age,) * 2)
        used = cache.find(KEY, [1])
        assert used is not None and cache.load(used) is not None
        cache.keep(KEY, [4], b"x" * 1000)
        assert [number for number in (1, 2, 3, 4) if cache.find(KEY, [number])] == [1, 3, 4]

    def test_more_than_the_limit_is_not_kept(self, folder: Path, notes: list[str]) -> None:
        PromptCache(folder, notes.append, limit=100).keep(KEY, [1], b"x" * 101)
        assert not folder.exists()

    def test_an_unwritable_folder_is_a_note(self, notes: list[str]) -> None:
        PromptCache(Path("/dev/null/strata"), notes.append).keep(KEY, TOKENS, b"state")
        (note,) = notes
        assert "/dev/null/strata" in note and "Not a directory" in note

    def test_a_full_disk_leaves_nothing(self, folder: Path) -> None:
        code = (
            "import resource, signal, sys; from pathlib import Path; from strata_cli.engine.cache import PromptCache\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
            "PromptCache(Path(sys.argv[1]), print).keep(b'k' * 32, [1, 2], b'x' * 9000)"
        )
        done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
        assert "File too large" in done.stdout
        assert list(folder.iterdir()) == []

    def test_a_killed_writer_leaves_no_file_that_counts(self, cache: PromptCache, folder: Path) -> None:
        code = (
            "import sys; from pathlib import Path; from strata_cli.engine.cache import PromptCache\n"
            "cache = PromptCache(Path(sys.argv[1]), lambda note: None); print(flush=True)\n"
            "while True: cache.keep(b'k' * 32, [1, 2], b'x' * 30_000_000)"
        )
        for pause in (0.01, 0.02, 0.03, 0.05, 0.08):
            writer = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE)
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(pause)
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
            found = cache.find(b"k" * 32, [1, 2])
            assert found is None or cache.load(found) == b"x" * 30_000_000
        for left in folder.glob(".strata.*"):
            os.utime(left, (1, 1))
        cache.keep(KEY, TOKENS, b"state")
        assert not list(folder.glob(".strata.*"))

    def test_two_writers_and_a_reader(self, cache: PromptCache, folder: Path) -> None:
        code = (
            "import sys; from pathlib import Path; from strata_cli.engine.cache import PromptCache\n"
            "cache = PromptCache(Path(sys.argv[1]), print)\n"
            "for n in range(60): cache.keep(b'k' * 32, [1, 2], sys.argv[2].encode() * 100_000)"
        )
        writers = [subprocess.Popen([sys.executable, "-c", code, str(folder), letter]) for letter in "ab"]
        while any(writer.poll() is None for writer in writers):
            found = cache.find(b"k" * 32, [1, 2])
            if found is not None:
                assert cache.load(found) in (b"a" * 100_000, b"b" * 100_000)
        assert [writer.returncode for writer in writers] == [0, 0]


# What an engine makes of it


def opened(path: Path, cache: PromptCache | None, **options: object) -> LlamaEngine:
    chosen = {"context": 400, "ubatch": 32, "threads": 1} | options
    return open_model(ModelOptions(str(path), **chosen), interrupt=Interrupt(), cache=cache)  # type: ignore[arg-type]


def answered(engine: LlamaEngine, tokens: list[int], count: int = 8) -> tuple[int, list[Token]]:
    """How many tokens were reused, and an answer with its probabilities."""
    line = engine.timeline()
    reused = line.prefill(tokens).reused
    produced = line.decode(Sampling(temperature=0), logprobs=5)
    answer = [next(produced) for _ in range(count)]
    produced.close()  # type: ignore[attr-defined]
    line.close()
    return reused, answer


def alike(one: list[Token], other: list[Token]) -> bool:
    return [token.id for token in one] == [token.id for token in other] and all(
        abs((a.logprob or 0) - (b.logprob or 0)) < 1e-3 for a, b in zip(one, other, strict=True)
    )


PROMPT = [32 + number * 7 % 90 for number in range(200)]


@pytest.fixture(params=["llama", "gemma3", "mamba"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tiny.write(tmp_path / f"{request.param}.gguf", architecture=request.param, window=64, endless=True)


@pytest.mark.usefixtures("all_is_slow")
class TestEngine:
    def test_a_longer_prompt_goes_on_from_it(self, model: Path, cache: PromptCache) -> None:
        first = opened(model, cache)
        line = first.timeline()
        line.prefill(PROMPT)
        line.close()
        first.close()
        longer = [*PROMPT, 40, 41, 42]
        second, fresh = opened(model, cache), opened(model, None)
        reused, answer = answered(second, longer)
        assert reused == (len(PROMPT) if model.stem == "llama" else len(PROMPT) - 64)
        assert alike(answer, answered(fresh, longer)[1])
        second.close()
        fresh.close()

    @pytest.mark.parametrize("common", [70, 150, 199])
    def test_another_end_is_answered_as_if_nothing_was_kept(self, model: Path, cache: PromptCache, common: int) -> None:
        """Of a sliding window or a recurrent state nothing can be cut off, so one is kept a little before the end."""
        first = opened(model, cache)
        answered(first, PROMPT)
        other = [*PROMPT[:common], *[50] * 30]
        second, fresh = opened(model, cache), opened(model, None)
        reused, answer = answered(second, other)
        kept = len(PROMPT) - 64
        assert reused == (common if model.stem == "llama" else kept if common >= kept else 0)
        assert alike(answer, answered(fresh, other)[1])
        for engine in (first, second, fresh):
            engine.close()

    def test_prompts_that_part_early_share_their_beginning_from_the_third_on(
        self, model: Path, cache: PromptCache
    ) -> None:
        expected = [0, 100, 100] if model.stem == "llama" else [0, 0, 100]
        fresh = opened(model, None)
        for number, reused in enumerate(expected):
            prompt = [*PROMPT[:100], *[50 + number] * 150]
            engine = opened(model, cache)
            found, answer = answered(engine, prompt)
            assert found == reused
            assert alike(answer, answered(fresh, prompt)[1])
            engine.close()
        fresh.close()

    def test_the_same_prompt_again(self, model: Path, cache: PromptCache) -> None:
        first = opened(model, cache)
        before = answered(first, PROMPT)[1]
        first.close()
        second = opened(model, cache)
        assert alike(before, answered(second, PROMPT)[1])
        second.close()

    def test_a_smaller_context_takes_what_fits_or_nothing(self, cache: PromptCache, tiny_model: Path) -> None:
        first = opened(tiny_model, cache, context=2000)
        line = first.timeline()
        line.prefill([32 + number * 7 % 90 for number in range(1500)])
        line.close()
        first.close()
        second, fresh = opened(tiny_model, cache, context=300), opened(tiny_model, None, context=300)
        assert alike(answered(second, PROMPT)[1], answered(fresh, PROMPT)[1])
        second.close()
        fresh.close()

    @pytest.mark.parametrize(
        "change",
        [
            lambda path: {"cache_type_k": "f32"},
            lambda path: os.utime(path, (1, 1)) or {},
        ],
        ids=["another cache type", "another file"],
    )
    def test_what_does_not_fit_is_foreign(
        self, tmp_path: Path, cache: PromptCache, change: Callable[[Path], dict[str, object]]
    ) -> None:
        path = tiny.write(tmp_path / "tiny.gguf")
        first = opened(path, cache)
        answered(first, PROMPT, 1)
        first.close()
        second = opened(path, cache, **change(path))
        assert answered(second, PROMPT, 1)[0] == 0
        second.close()

    def test_a_state_that_llama_refuses_is_evaluated_again(
        self, tiny_model: Path, cache: PromptCache, notes: list[str]
    ) -> None:
        """As if the checksum were right, and the state no state."""
        first = opened(tiny_model, cache)
        fresh = answered(first, PROMPT)[1]
        shelf = first._shelf
        assert isinstance(shelf, Shelf)
        shelf.keep([*PROMPT, 7], memoryview(b"\0" * 64))
        first.close()
        second = opened(tiny_model, cache)
        reused, answer = answered(second, [*PROMPT, 7, 7])
        assert reused == 0 and any("damaged" in note for note in notes)
        assert len(answer) == len(fresh)
        second.close()


# From the command line


@pytest.mark.usefixtures("all_is_slow")
class TestShell:
    def chat(self, model: Path, home: Path, *args: str) -> tuple[int, str]:
        options = ("-t", "1", "-m", str(model), "--temp", "0", "-n", "4", "--format", "json", *args)
        done = strata("chat", *options, "A question of more than sixty-four letters " * 2, XDG_CACHE_HOME=str(home))
        assert done.status == 0, done.err
        return done.json["usage"]["prompt_tokens_details"]["cached_tokens"], done.err

    def test_the_second_call_reuses_the_first(self, tiny_model: Path, tmp_path: Path) -> None:
        first, said = self.chat(tiny_model, tmp_path)
        assert first == 0 and "strata cache clear" in said
        second, said = self.chat(tiny_model, tmp_path)
        assert second > 60 and "cache" not in said

    def test_no_cache_reads_and_writes_nothing(self, tiny_model: Path, tmp_path: Path) -> None:
        self.chat(tiny_model, tmp_path, "--no-cache")
        assert list(tmp_path.iterdir()) == []
        self.chat(tiny_model, tmp_path)
        assert self.chat(tiny_model, tmp_path, "--no-cache")[0] == 0

    def test_quiet_says_nothing_of_it(self, tiny_model: Path, tmp_path: Path) -> None:
        assert self.chat(tiny_model, tmp_path, "-q")[1] == ""

    def test_info_and_clear(self, tiny_model: Path, tmp_path: Path) -> None:
        home = str(tmp_path)
        empty = strata("cache", "info", XDG_CACHE_HOME=home)
        assert empty.status == 0 and "prompts  0" in empty.text and home in empty.text
        self.chat(tiny_model, tmp_path)
        value = json.loads(strata("cache", "info", "--format", "json", XDG_CACHE_HOME=home).text)
        assert value["prompts"] == 1 and value["bytes"] > 1000 and value["limit"] == 2_000_000_000
        assert strata("cache", "clear", XDG_CACHE_HOME=home).text.startswith("removed 1 prompt,")
        assert json.loads(strata("cache", "info", "--format", "json", XDG_CACHE_HOME=home).text)["prompts"] == 0
