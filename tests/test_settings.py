"""Where a value comes from: flag before environment variable before configuration file before default."""

from __future__ import annotations

from pathlib import Path

import pytest

from strata_cli import settings
from strata_cli.cli.options import parameters
from strata_cli.errors import INVALID_USAGE, ExitStatus, StrataError
from tests.shell import Done, strata

NOTHING_SET = {"chat": {}, "complete": {}, "render": {}, "bench": {}, "models": {"path": {}}}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


@pytest.fixture
def template(tmp_path: Path) -> Path:
    (tmp_path / "template.jinja").write_text("{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}")
    return tmp_path / "template.jinja"


@pytest.fixture(autouse=True)
def no_model_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STRATA_MODEL", raising=False)


def model_named(config: Path, *args: str, variables: dict[str, str] | None = None) -> str:
    """The model that a command line asks for, which does not exist."""
    done = strata("render", *args, "hi", STRATA_CONFIG=str(config), **(variables or {}))
    assert done.status == ExitStatus.MODEL
    return done.err.split("there is no model ")[1].split(";")[0]


def test_flag_before_variable_before_file(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text('model = "from-file"\n')
    assert model_named(config) == "from-file"
    monkeypatch.setenv("STRATA_MODEL", "from-variable")
    variables = {"STRATA_MODEL": "from-variable"}
    assert model_named(config, variables=variables) == "from-variable"
    assert model_named(config, "-m", "from-flag", variables=variables) == "from-flag"


def test_a_command_has_its_own_table(config: Path) -> None:
    config.write_text('model = "for-all"\n[render]\nmodel = "for-render"\n[chat]\nmodel = "for-chat"\n')
    assert model_named(config) == "for-render"
    values = settings.defaults({"STRATA_CONFIG": str(config)}, parameters())
    values |= values.pop("models")
    assert {command: table["model"] for command, table in values.items()} == {
        "chat": "for-chat",
        "complete": "for-all",
        "render": "for-render",
        "bench": "for-all",
        "path": "for-chat",
    }


def test_the_path_of_the_model_that_would_answer(config: Path, tiny_model: Path) -> None:
    config.write_text(f"[chat]\nmodel = '{tiny_model}'\n")
    assert strata("models", "path", STRATA_CONFIG=str(config)).text == f"{tiny_model}\n"


def render(config: Path, template: Path, *args: str) -> Done:
    return strata("render", "--template", str(template), *args, "hi", STRATA_CONFIG=str(config))


def test_options_of_every_kind(config: Path, template: Path) -> None:
    config.write_text('bos = "<s>"\n[render]\nformat = "json"\n')
    assert render(config, template).json["prompt"] == "<s>hi"
    assert render(config, template, "--format", "text", "--bos", "").text == "hi"


def test_names_with_dashes_and_names_that_differ(config: Path) -> None:
    config.write_text('max-tokens = 5\ntemp = 0.5\ntop_k = 3\nstop = ["a", "b"]\nthink = true\n')
    values = settings.defaults({"STRATA_CONFIG": str(config)}, parameters())["chat"]
    assert values == {"max_tokens": 5, "temperature": 0.5, "top_k": 3, "stop": ["a", "b"], "think": True}


def test_the_command_line_checks_the_file_too(config: Path, template: Path) -> None:
    config.write_text('format = "xml"\n')
    done = render(config, template)
    assert done.status == ExitStatus.USAGE and done.err.count("\n") == 1
    assert "--format" in done.err and "xml" in done.err


def test_no_file_is_no_error(config: Path, template: Path) -> None:
    assert settings.defaults({"STRATA_CONFIG": str(config)}, parameters()) == NOTHING_SET
    assert render(config, template).text == "hi"


def test_an_empty_file(config: Path) -> None:
    config.touch()
    assert settings.defaults({"STRATA_CONFIG": str(config)}, parameters()) == NOTHING_SET


@pytest.mark.parametrize(
    ("data", "where"),
    [(b"model = \n", "line 1"), (b'a = 1\nmodel = "x\n', "line 2"), (b"\xff", "0xff"), (b"a = 1\na = 2\n", "line 2")],
    ids=ascii,
)
def test_a_broken_file_is_one_clear_line(config: Path, template: Path, data: bytes, where: str) -> None:
    config.write_bytes(data)
    done = render(config, template)
    assert (done.status, done.out) == (ExitStatus.USAGE, b"")
    assert done.err.startswith(f"strata: {config} is not valid TOML: ")
    assert done.err.count("\n") == 1 and where in done.err


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StrataError) as caught:
        settings.defaults({"STRATA_CONFIG": str(tmp_path)}, parameters())
    assert caught.value.kind is INVALID_USAGE
    assert caught.value.message == f"cannot read {tmp_path}: Is a directory"


@pytest.mark.parametrize(
    ("variables", "path"),
    [
        ({"STRATA_CONFIG": "/c.toml", "XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/c.toml"),
        ({"XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/x/strata/config.toml"),
        ({"STRATA_CONFIG": "", "XDG_CONFIG_HOME": "", "HOME": "/h"}, "/h/.config/strata/config.toml"),
        ({"STRATA_CONFIG": "~no-such-user/c.toml"}, "~no-such-user/c.toml"),
    ],
)
def test_where_the_file_is(variables: dict[str, str], path: str) -> None:
    assert settings.path(variables) == Path(path)


def test_a_table_that_is_no_commands_is_refused(config: Path, template: Path) -> None:
    config.write_text("[rendre]\nbos = '<s>'\n")
    done = render(config, template)
    assert (done.status, done.out) == (ExitStatus.USAGE, b"")
    assert "[rendre]" in done.err and "did you mean render?" in done.err


def test_a_key_that_is_no_option_is_refused(config: Path, template: Path) -> None:
    config.write_text("tmep = 1\n")
    done = render(config, template)
    assert done.status == ExitStatus.USAGE
    assert "tmep" in done.err and "did you mean temp?" in done.err


def test_a_broken_file_does_not_stop_the_help(config: Path) -> None:
    config.write_text("model = ")
    assert strata("render", "--help", STRATA_CONFIG=str(config)).status == ExitStatus.OK
    assert strata("--version", STRATA_CONFIG=str(config)).status == ExitStatus.OK
