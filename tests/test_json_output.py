"""JSON in and out of the command line: the official clients talk to it as they talk to a server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic, BadRequestError
from openai import BadRequestError as OpenAIBadRequestError
from openai import OpenAI

from strata_cli.conversation import dialects
from strata_cli.conversation.anthropic import parsing as anthropic_parsing
from strata_cli.conversation.openai import parsing as openai_parsing
from tests.shell import Done, strata

USER = {"role": "user", "content": "Hello."}
# Timings differ from run to run, and so do what was reused and when an answer was made.
VARYING = ("id", "created", "timings")


@pytest.fixture
def ask(endless_model: Path) -> Callable[..., Done]:
    """`strata chat` on a model that writes until it is stopped, greedy and short."""

    def run(*args: str, stdin: object = None, temp: str = "0") -> Done:
        piped = json.dumps(stdin) if isinstance(stdin, (dict, list)) else stdin
        model = ("-t", "1", "-m", str(endless_model), "-c", "400")
        return strata("chat", *model, "--temp", temp, "-n", "12", *args, stdin=piped)

    return run


# The clients


class Server(httpx2.MockTransport):
    """The command line behind HTTP: the request's body is piped, what comes back is the response."""

    def __init__(self, ask: Callable[..., Done], dialect: str) -> None:
        super().__init__(self._answer)
        self._ask = ask
        self._dialect = dialect
        self.asked: dict[str, Any] = {}
        self.done: Done | None = None

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked = json.loads(request.content)
        args = [] if self.asked.get("stream") else ["--format", "json"]
        self.done = self._ask("--seed", "5", "--dialect", self._dialect, *args, stdin=request.content.decode())
        if self.done.status:
            return httpx2.Response(400, content=self.done.out)
        if not self.asked.get("stream"):
            return httpx2.Response(200, content=self.done.out)
        return httpx2.Response(200, content=b"".join(self._events()), headers={"content-type": "text/event-stream"})

    def _events(self) -> Iterator[bytes]:
        assert self.done is not None
        for line in self.done.out.splitlines():
            kind = json.loads(line).get("type")
            yield (b"event: " + kind.encode() + b"\n" if kind else b"") + b"data: " + line + b"\n\n"
        if self._dialect == "openai":
            yield b"data: [DONE]\n\n"


@pytest.fixture
def openai(ask: Callable[..., Done]) -> Iterator[tuple[OpenAI, Server]]:
    server = Server(ask, "openai")
    with httpx2.Client(transport=server) as http, OpenAI(api_key="-", http_client=http, max_retries=0) as client:
        yield client, server


@pytest.fixture
def anthropic(ask: Callable[..., Done]) -> Iterator[tuple[Anthropic, Server]]:
    server = Server(ask, "anthropic")
    with httpx2.Client(transport=server) as http, Anthropic(api_key="-", http_client=http, max_retries=0) as client:
        yield client, server


TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
OPENAI: dict[str, dict[str, Any]] = {
    "plain": {},
    "two answers": {"n": 2, "seed": 5},
    "logprobs": {"logprobs": True, "top_logprobs": 2},
    "bounds": {"max_completion_tokens": 5, "stop": ["zzz"], "temperature": 0, "top_p": 0.9, "metadata": {"a": "b"}},
    "tools": {"tools": [TOOL], "tool_choice": "auto"},
    "a prefix": {"extra_body": {"assistant_prefix": "Well, "}},
    "a history": {
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "Be terse."}]},
            USER,
            {"role": "assistant", "content": "Hi"},
            USER,
        ]
    },
}


@pytest.mark.parametrize("fields", OPENAI.values(), ids=OPENAI)
@pytest.mark.parametrize("usage", [{}, {"stream_options": {"include_usage": True}}], ids=["", "usage"])
def test_the_openai_client(openai: tuple[OpenAI, Server], fields: dict[str, Any], usage: dict[str, Any]) -> None:
    client, _ = openai
    request: dict[str, Any] = {"model": "m", "messages": [USER], **fields}
    whole = client.chat.completions.create(**request)
    with client.chat.completions.create(stream=True, **usage, **request) as stream:
        chunks = list(stream)
    from openai.lib.streaming.chat import ChatCompletionStreamState

    state = ChatCompletionStreamState()
    for chunk in chunks:
        list(state.handle_chunk(chunk))
    streamed = state.current_completion_snapshot
    assert len(whole.choices) == len(streamed.choices) == fields.get("n", 1)
    for one, other in zip(whole.choices, streamed.choices, strict=True):
        assert one.message.content and one.message.content == other.message.content
        assert one.finish_reason == other.finish_reason == "length"
        assert one.logprobs == other.logprobs
    assert whole.usage == streamed.usage
    assert whole.model_extra["strata"] == chunks[-1].model_extra["strata"]
    assert whole.usage.prompt_tokens == whole.model_extra["strata"]["prefill"]["start_position"]


ANTHROPIC: dict[str, dict[str, Any]] = {
    "plain": {},
    "bounds": {"stop_sequences": ["zzz"], "metadata": {"user_id": "u"}},
    "a system message": {"system": [{"type": "text", "text": "Be terse.", "cache_control": {"type": "ephemeral"}}]},
    "thinking": {"thinking": {"type": "disabled"}},
    "tools": {"tools": [{"name": "look", "input_schema": {"type": "object"}}], "tool_choice": {"type": "auto"}},
    "a prefill that ends in a space": {"messages": [USER, {"role": "assistant", "content": "Well, "}]},
}


@pytest.mark.parametrize("fields", ANTHROPIC.values(), ids=ANTHROPIC)
def test_the_anthropic_client(anthropic: tuple[Anthropic, Server], fields: dict[str, Any]) -> None:
    client, server = anthropic
    request: dict[str, Any] = {"model": "m", "max_tokens": 12, "messages": [USER], **fields}
    whole = client.messages.create(**request)
    with client.messages.stream(**request) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert [block.text for block in whole.content] == [block.text for block in final.content] == [text]
    assert text and whole.stop_reason == final.stop_reason == "max_tokens"
    assert whole.usage.to_dict() == final.usage.to_dict()
    last = next(line for line in server.done.lines if line["type"] == "message_delta")
    assert last["strata"] == whole.model_extra["strata"]


def test_the_clients_raise_their_own_errors(openai: tuple[OpenAI, Server], anthropic: tuple[Anthropic, Server]) -> None:
    with pytest.raises(OpenAIBadRequestError) as refused:
        openai[0].chat.completions.create(model="m", messages=[USER], logit_bias={"5": 1})
    assert (refused.value.code, refused.value.param) == ("not_supported", "logit_bias")
    with pytest.raises(BadRequestError) as invalid:
        anthropic[0].messages.create(model="m", max_tokens=0, messages=[USER])
    assert invalid.value.body["error"]["param"] == "max_tokens"


def test_the_clients_stop_at_a_stop_string(openai: tuple[OpenAI, Server], anthropic: tuple[Anthropic, Server]) -> None:
    request: dict[str, Any] = {"model": "m", "max_tokens": 12, "messages": [USER]}
    whole = anthropic[0].messages.create(**request).content[0].text
    stop = whole[4:6]
    message = anthropic[0].messages.create(**request, stop_sequences=[stop])
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", stop)
    assert message.content[0].text == whole[: whole.index(stop)]
    choice = openai[0].chat.completions.create(**request, stop=stop).choices[0]
    assert (choice.finish_reason, choice.message.content) == ("stop", message.content[0].text)


# The stream and the whole


def folded(lines: list[dict[str, Any]]) -> str:
    """The text of a stream in either dialect."""
    deltas = [choice["delta"] for line in lines for choice in line.get("choices", ())]
    deltas += [line["delta"] for line in lines if line.get("type") == "content_block_delta"]
    return "".join(delta.get("content") or delta.get("text") or "" for delta in deltas)


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
@pytest.mark.parametrize("args", [(), ("--prefix", "Wel"), ("--stop", "e"), ("-n", "0"), ("-n", "400")], ids=" ".join)
def test_text_object_and_stream_are_one(ask: Callable[..., Done], dialect: str, args: tuple[str, ...]) -> None:
    text = ask(*args, "Hello.").text
    stats = ask(*args, "--stats", "--debug", "Hello.").err
    whole = ask(*args, "--format", "json", "--dialect", dialect, "Hello.").json
    lines = ask(*args, "--format", "jsonl", "--dialect", dialect, "Hello.").lines
    content = whole["choices"][0]["message"]["content"] if dialect == "openai" else "".join(
        block["text"] for block in whole["content"]
    )  # fmt: skip
    assert folded(lines) == content
    assert text == (content if content.endswith("\n") or not content else content + "\n")
    last = next(line for line in reversed(lines) if "strata" in line)
    whole["strata"].pop("seed"), last["strata"].pop("seed")
    assert last["strata"] == whole["strata"] and last["usage"] == whole["usage"]
    prefill = whole["strata"]["prefill"]
    x, n, z = (prefill[key] for key in ("prompt_tokens", "prefix_tokens", "start_position"))
    assert f"assistant prefill: {n} tokens (prompt {x} -> {z}, generation starts at position {z})" in stats
    assert f"{prefill['context_left']} tokens of context left" in stats
    assert f"decode: {whole['timings']['predicted_n']} tokens" in stats


def test_the_whole_is_the_same_at_every_run(ask: Callable[..., Done]) -> None:
    first, second = (ask("--format", "json", "--seed", "1", "Hello.").json for _ in range(2))
    assert all(first.pop(key) and second.pop(key) for key in VARYING)
    assert first == second


def test_complete_has_the_same_shapes(endless_model: Path) -> None:
    args = ("complete", "-t", "1", "-m", str(endless_model), "--temp", "0", "-n", "6", "Hello")
    text = strata(*args).text.removesuffix("\n")
    assert folded(strata(*args, "--format", "jsonl").lines) == text
    assert folded(strata(*args, "--format", "jsonl", "--dialect", "anthropic").lines) == text
    message = strata(*args, "--format", "json", "--dialect", "anthropic", "--logprobs", "1").json
    assert message["content"] == [{"type": "text", "text": text}] and len(message["strata"]["logprobs"]) == 6


# Logprobs


def test_logprobs_name_each_token(ask: Callable[..., Done]) -> None:
    choice = ask("--format", "json", "--logprobs", "3", "Hello.").json["choices"][0]
    items = choice["logprobs"]["content"]
    assert len(items) == 12
    assert (
        bytes(byte for item in items for byte in item["bytes"]).decode("utf-8", "replace")
        == (choice["message"]["content"])
    )
    for item in items:
        assert len(item["top_logprobs"]) == 3
        # Greedy: the token is the likeliest.
        assert item["top_logprobs"][0]["logprob"] == item["logprob"]
    assert (
        ask("--format", "json", "--logprobs", "0", "Hello.").json["choices"][0]["logprobs"]["content"][0][
            "top_logprobs"
        ]
        == []
    )
    assert ask("--format", "json", "Hello.").json["choices"][0]["logprobs"] is None


def test_logprobs_end_where_the_text_ends(ask: Callable[..., Done]) -> None:
    whole = ask("--format", "json", "--logprobs", "0", "Hello.").json["choices"][0]
    stop = whole["message"]["content"][5:7]
    cut = ask("--format", "json", "--logprobs", "0", "--stop", stop, "Hello.").json["choices"][0]
    items = cut["logprobs"]["content"]
    assert 0 < len(items) < 12 and items == whole["logprobs"]["content"][: len(items)]
    text = bytes(byte for item in items for byte in item["bytes"]).decode("utf-8", "replace")
    assert text.startswith(cut["message"]["content"])


def test_logprobs_have_no_place_in_text(ask: Callable[..., Done]) -> None:
    assert ask("--logprobs", "1", "Hello.").status == 2
    done = ask(stdin={"messages": [USER], "logprobs": True})
    assert done.status == 0 and "--format json" in done.err


# What goes before what


def test_the_request_says_how_it_is_answered(ask: Callable[..., Done]) -> None:
    request = {"messages": [USER], "stream": True}
    assert "choices" in ask(stdin=request).lines[0]
    assert ask(stdin={**request, "system": "a"}).lines[0]["type"] == "message_start"
    for format in ("json", "text"):
        done = ask("--format", format, stdin=request)
        notes = done.json["strata"]["notes"] if format == "json" else [done.err]
        assert any(f"--format {format} replaces the request's stream" in note for note in notes)
    done = ask("--format", "jsonl", stdin={"messages": [USER], "stream": False})
    assert any("stream: false" in note for note in done.lines[-1]["strata"]["notes"])
    assert ask("-q", stdin={"messages": [USER], "stream": False}).text == ask("-q", "Hello.").text


def test_errors_have_the_requests_dialect(ask: Callable[..., Done]) -> None:
    request = {"messages": [USER], "stream": True, "max_tokens": "many"}
    assert ask(stdin=request).json["error"]["param"] == "max_tokens"
    done = ask(stdin={**request, "system": "a"})
    assert (done.status, done.json["type"], done.json["error"]["param"]) == (2, "error", "max_tokens")
    assert ask(stdin={**request, "stream": False}).out == b""
    done = ask("-c", "4", "--format", "json", stdin={"messages": [USER], "system": "a"})
    assert (done.status, done.json["type"], done.json["error"]["code"]) == (3, "error", "context_length_exceeded")
    assert ask("--format", "jsonl", "--dialect", "anthropic", "--temp", "hot").json["type"] == "error"
    assert "type" not in ask("--format", "json", "--temp", "hot").json


def test_the_dialect_may_be_named(ask: Callable[..., Done]) -> None:
    request = {"messages": [USER, {"role": "assistant", "content": "Well"}], "max_tokens": 3}
    assert ask("--format", "json", stdin=request).json["object"] == "chat.completion"
    message = ask("--format", "json", "--dialect", "anthropic", stdin=request).json
    assert message["type"] == "message" and message["strata"]["prefill"]["prefix_tokens"] > 0
    more = ask("--format", "json", "--dialect", "anthropic", "--input", "json", "More", stdin=request).json
    assert more["strata"]["prefill"]["prefix_tokens"] == 0


def test_several_answers(ask: Callable[..., Done]) -> None:
    request = {"messages": [USER], "n": 3, "seed": 4}
    reply = ask("--format", "json", stdin=request, temp="2").json
    texts = [choice["message"]["content"] for choice in reply["choices"]]
    assert len(set(texts)) == 3 and reply["usage"]["completion_tokens"] == 36
    # Each answer is the one that its own seed gives.
    for number, text in enumerate(texts):
        single = ask("--format", "json", stdin={"messages": [USER], "seed": 4 + number}, temp="2").json
        assert single["choices"][0]["message"]["content"] == text
    assert ask(stdin=request).status == 2
    assert ask("--format", "json", "--session", "/nonexistent/x", stdin=request).status != 0


def test_metadata_comes_back(ask: Callable[..., Done]) -> None:
    request = {"messages": [USER], "metadata": {"id": "7"}}
    assert ask("--format", "json", stdin=request).json["strata"]["metadata"] == {"id": "7"}
    assert "metadata" not in ask("--format", "json", "Hello.").json["strata"]


# JSON lines


def test_lines_of_both_dialects_with_a_bad_one_between(ask: Callable[..., Done]) -> None:
    lines = [
        json.dumps({"messages": [USER]}),
        json.dumps({"messages": [USER], "system": "a"}),
        '{"messages": [], "messages": []}',
        json.dumps({"messages": [USER], "system": "a", "max_tokens": []}),
        json.dumps({"messages": [USER], "stop_sequences": ["x"]}),
    ]
    done = ask("--input", "jsonl", stdin="\n".join(lines))
    kinds = [line.get("object") or line.get("type") or line["error"]["code"] for line in done.lines]
    assert kinds == ["chat.completion", "message", "invalid_json", "error", "message"]
    assert done.status == 2 and "line 3" in done.lines[2]["error"]["message"]


def test_lines_that_are_streams(ask: Callable[..., Done]) -> None:
    lines = [json.dumps({"messages": [USER], "metadata": {"n": number}}) for number in range(2)]
    done = ask("--input", "jsonl", "--format", "jsonl", stdin="\n".join(lines))
    ends = [line["strata"]["metadata"]["n"] for line in done.lines if "strata" in line]
    assert ends == [0, 1] and len({line["id"] for line in done.lines}) == 2


def test_half_a_surrogate_pair_is_an_error_of_the_request(ask: Callable[..., Done]) -> None:
    done = ask("--format", "json", stdin='{"messages": [{"role": "user", "content": "\\ud83d"}]}')
    assert (done.status, done.json["error"]["code"]) == (2, "invalid_text")
    done = ask(
        "--format", "json", stdin='{"messages": [{"role": "user", "content": "a"}], "metadata": {"a": "\\ud83d"}}'
    )
    assert done.json["strata"]["metadata"] == {"a": "\ud83d"}


def test_deep_nesting_is_an_error_of_the_request(ask: Callable[..., Done]) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    done = ask("--format", "json", "--input", "json", stdin=f'{{"messages": {deep}}}')
    assert (done.status, done.json["error"]["code"]) == (2, "invalid_json")
    deep = "[" * 97 + "]" * 97
    done = ask(
        "--format", "json", stdin=f'{{"messages": [{json.dumps(USER)}], "chat_template_kwargs": {{"a": {deep}}}}}'
    )
    assert done.status == 0


# The documentation

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "json.md").read_text(encoding="utf-8")


def test_the_documented_objects_have_the_keys_that_are_there(ask: Callable[..., Done]) -> None:
    particulars, openai, anthropic = map(json.loads, re.findall(r"^```json\n(.*?)\n```$", PAGE, re.M | re.S))
    reply = ask("--format", "json", stdin={"messages": [USER], "metadata": {"id": "7"}}).json
    assert shape(particulars) == shape({key: reply[key] for key in particulars})
    assert shape(openai) == shape(ask("--format", "json", stdin={"messages": [USER], "max_tokens": 0}).json)
    wrong = {"messages": [USER], "max_tokens": 0}
    assert shape(anthropic) == shape(ask("--format", "json", "--dialect", "anthropic", stdin=wrong).json)


def shape(value: object) -> object:
    """The keys of an object, those inside too."""
    return {key: shape(item) for key, item in value.items()} if isinstance(value, dict) else None


def test_the_documented_signs_of_a_dialect_are_those_that_are_read() -> None:
    signs = PAGE[PAGE.index("1. A message of the role") : PAGE.index("3. Anything else")]
    assert all(f"`{name}`" in signs for name in dialects._FIELDS | dialects._BLOCKS | dialects._CHOICES)


def test_every_field_is_documented() -> None:
    for known in (openai_parsing._KNOWN, anthropic_parsing._KNOWN):
        missing = {name for name in known.honoured if f"`{name}`" not in PAGE and f"`{name}." not in PAGE}
        assert not missing
