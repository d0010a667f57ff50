"""An engine that says what it is told to: one token a byte, so that every marker is cut everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from strata_cli.engine import ModelInfo, ModelOptions, Prefill, Progress, Sampling, Threads, Token

END = 256


class ScriptedTimeline:
    """Holds what it was given, and answers with the script, then with the token that ends."""

    def __init__(self, script: bytes) -> None:
        self._script = script
        self.tokens: Sequence[int] = ()

    def prefill(self, tokens: Sequence[int], progress: Progress | None = None) -> Prefill:
        self.tokens = tuple(tokens)
        return Prefill(len(tokens), 0, 0.001)

    def decode(self, sampling: Sampling, *, logprobs: int = 0, constraint: object = None) -> Iterator[Token]:
        score = -0.5 if logprobs else None
        for byte in self._script[self._said() :]:
            yield Token(byte, bytes([byte]), logprob=score)
        yield Token(END, b"", end=True, logprob=score)

    def _said(self) -> int:
        """How much of the script the prompt ends with: a stopped answer goes on from there."""
        held = bytes(token for token in self.tokens if token != END)
        return next(n for n in range(len(self._script), -1, -1) if held.endswith(self._script[:n]))

    def close(self) -> None:
        pass


class ScriptedEngine:
    """A model with one template, whose tokens are bytes."""

    def __init__(self, template: str, script: str) -> None:
        self.info = ModelInfo("scripted", "scripted.gguf", {"default": template}, "", "", 100_000, 100_000, "CPU")
        self.threads = Threads(1, 1)
        self._script = script.encode()

    def tokenize(self, text: str) -> list[int]:
        return list(text.encode())

    def token_bytes(self, token: int) -> bytes:
        return bytes([token]) if token != END else b""

    def timeline(self) -> ScriptedTimeline:
        return ScriptedTimeline(self._script)

    def close(self) -> None:
        pass


def opening(template: str, script: str):
    """What takes the place of `open_model`."""

    def open_model(options: ModelOptions, **_: object) -> ScriptedEngine:
        return ScriptedEngine(template, script)

    return open_model
