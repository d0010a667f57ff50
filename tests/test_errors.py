"""Every kind of error there is, raised by a command line as a user would."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from strata_cli import errors
from strata_cli.cli import answer
from strata_cli.engine.llama import library
from strata_cli.errors import KINDS, StrataError
from tests import tiny
from tests.shell import Done, strata

HI = {"role": "user", "content": "Hi"}
ANSWER = {"role": "assistant", "content": "Hello"}
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:,"}}


@dataclass
class Folder:
    """A folder of inputs, and the tiny model."""

    path: Path
    model: Path
    monkeypatch: pytest.MonkeyPatch
    template: str | None = None
    stdin: str | bytes | None = None
    variables: dict[str, str] = field(default_factory=dict)

    def file(self, name: str, content: str | bytes) -> str:
        path = self.path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    def chat(self, *args: str) -> Done:
        template = ["--template", self.file("t.jinja", self.template)] if self.template is not None else []
        command = ["chat", "-t", "1", "-n", "2", "--format", "json", "-m", str(self.model), *template, *args]
        return strata(*command, stdin=self.stdin, **self.variables)

    def ask(self, *messages: dict, template: str | None = None, **fields: object) -> Done:
        self.template = template
        self.stdin = json.dumps({"messages": messages, **fields})
        return self.chat()


CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)


def with_template(text: str) -> Callable[[Folder], Done]:
    return lambda folder: folder.ask(HI, template=text)


def model_incomplete(folder: Folder) -> Done:
    folder.model = Path(folder.file("cut.gguf", folder.model.read_bytes()[:-500]))
    return folder.chat("Hi")


def model_load_failed(folder: Folder) -> Done:
    return folder.chat("--lora", folder.file("lora.gguf", folder.model.read_bytes()), "Hi")


def model_run_failed(folder: Folder) -> Done:
    folder.monkeypatch.setattr(library.load(), "llama_decode", lambda *_: -3)
    return folder.chat("Hi")


def no_chat_template(folder: Folder) -> Done:
    folder.model = tiny.write(folder.path / "raw.gguf", None)
    return folder.chat("Hi")


def internal_error(folder: Folder) -> Done:
    def fault(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    folder.monkeypatch.setattr(answer.Conversation, "compose", fault)
    return folder.chat("Hi")


def no_system(folder: Folder) -> Done:
    template = CHATML.replace(
        "<|im_start|>{{", "{{ raise_exception('no system') if m.role == 'system' }}<|im_start|>{{", 1
    )
    return folder.ask(HI, ANSWER, {"role": "system", "content": "Be terse."}, template=template)


def invalid_text(folder: Folder) -> Done:
    folder.stdin = b"caf\xe9"
    return folder.chat()


def invalid_json(folder: Folder) -> Done:
    folder.stdin = "{"
    return folder.chat("--input", "json")


def session_invalid(folder: Folder) -> Done:
    return folder.chat("--session", folder.file("s.json", '{"messages": 1}'), "Hi")


RAISED: dict[str, Callable[[Folder], Done]] = {
    "model_not_found": lambda f: strata("chat", "--format", "json", "-m", str(f.path / "none.gguf"), "Hi"),
    "model_not_gguf": lambda f: strata("chat", "--format", "json", "-m", f.file("x.gguf", "no model"), "Hi"),
    "model_incomplete": model_incomplete,
    "model_load_failed": model_load_failed,
    "model_run_failed": model_run_failed,
    "no_chat_template": no_chat_template,
    "template_invalid": with_template("{% if %}"),
    "template_raised": with_template("{{ raise_exception('roles must sing') }}"),
    "template_unsafe": with_template("{{ messages.__class__.__mro__ }}"),
    "template_exhausted": with_template("{% for i in range(10**9) %}{{ i }}{% endfor %}"),
    "template_rewrites_message": lambda f: f.ask(
        HI, ANSWER, continue_final_message=True, template=CHATML.replace("m.content", "m.content | upper")
    ),
    "images_not_supported": lambda f: f.ask({"role": "user", "content": [IMAGE]}),
    "no_place_for_reasoning": lambda f: f.ask(
        HI, {"role": "assistant", "content": "", "reasoning_content": "so"}, continue_final_message=True
    ),
    "no_place_for_system": no_system,
    "prefix_after_assistant": lambda f: f.ask(HI, ANSWER, assistant_prefix="x"),
    "nothing_to_continue": lambda f: f.ask(HI, continue_final_message=True),
    "continue_tool_calls": lambda f: f.ask(HI, {**ANSWER, "tool_calls": [CALL]}, continue_final_message=True),
    "continue_two_assistants": lambda f: f.ask(HI, ANSWER, ANSWER, continue_final_message=True),
    "conflicting_options": lambda f: f.chat("--prefix", "a", "--prefix-file", f.file("p", "b"), "Hi"),
    "invalid_request": lambda f: f.ask(HI, assistant_prefix=7),
    "invalid_json": invalid_json,
    "invalid_text": invalid_text,
    "invalid_usage": lambda f: f.chat("--prefx", "Hi"),
    "file_not_readable": lambda f: f.chat("--file", str(f.path / "none")),
    "output_failed": lambda f: f.chat("-o", str(f.path / "none" / "answer"), "Hi"),
    "not_supported": lambda f: f.ask(HI, logit_bias={"1": 1}),
    "context_length_exceeded": lambda f: f.chat("-c", "4", "Hi"),
    "internal_error": internal_error,
    "session_invalid": session_invalid,
    "structured_output_failed": lambda f: f.chat("--schema", '{"type": "array", "minItems": 9}', "Hi"),
}


@pytest.mark.parametrize("code", KINDS)
def test_each_error_is_one_json_object_with_its_status(
    code: str, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = RAISED[code](Folder(tmp_path, tiny_model, monkeypatch))
    assert done.json["error"]["code"] == code, done
    assert done.status == KINDS[code].status
    assert done.out.count(b"\n") == 1
    assert done.json["error"]["message"]
    assert "Traceback" not in done.err


def test_errors_are_one_line_of_text(tiny_model: Path) -> None:
    done = strata("chat", "-t", "1", "-m", str(tiny_model), "-c", "4", "Hi")
    assert (done.status, done.out) == (3, b"")
    assert done.err.startswith("strata: the prompt has ") and done.err.count("\n") == 1


def test_a_sentence_says_what_happened_and_what_to_do() -> None:
    error = StrataError(errors.MODEL_NOT_GGUF, "GGUF is broken.", hint="Download it\nagain.")
    assert error.sentence == "GGUF is broken; download it again"
    assert StrataError(errors.INVALID_JSON, "A word is missing").sentence.startswith("a word is missing; correct it")
