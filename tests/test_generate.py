"""What is written from the command definitions, and what real shells do with it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from strata_cli.cli.generate import completion, files, man_page
from strata_cli.cli.generate.definition import Argument, Command, Option, Value, program
from strata_cli.cli.generate.man import page
from strata_cli.errors import KINDS, ExitStatus
from tests.shell import strata

ROOT = Path(__file__).parents[1]
PAGES = sorted(name for name in files() if name.startswith("man/"))

NAMES = ["plain-model", "my model", "it's", 'say "x"', "a:b-c", "co$t", "ünïcode"]
# In place of the real program: names for the scripts, its arguments for the tests.
STAND_IN = 'strata() { if [ "$*" = "models list --names" ]; then cat names; else printf "<%s>" "$@"; echo; fi; }'


@pytest.mark.parametrize("name", files())
def test_committed_files_are_what_the_definitions_say(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == files()[name], "run `make gen`"


def test_generating_twice_gives_the_same(tmp_path: Path) -> None:
    """Nothing depends on the order of a set."""
    program = "from strata_cli.cli.generate import files; print(files())"
    texts = {
        subprocess.check_output([sys.executable, "-c", program], cwd=ROOT, env={"PYTHONHASHSEED": seed})
        for seed in ("1", "2", "3")
    }
    assert len(texts) == 1


def test_nothing_else_is_committed() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("man/*"), *ROOT.glob("completions/*")]}
    assert found == {name for name in files() if not name.startswith("docs/")}


def test_the_wheel_installs_what_is_generated() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    for name in files():
        if not name.startswith("docs/"):
            assert f'"{name}" = "share/' in text or f'"{name.split("/")[0]}" = "share/' in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_script(shell: str) -> None:
    assert strata("completion", shell).text == completion(shell)


@pytest.mark.parametrize(("name", "path"), [("", "man/strata.1"), ("chat", "man/strata-chat.1")])
def test_man_prints_the_page(name: str, path: str) -> None:
    done = strata("man", *filter(None, [name]))
    assert done.text == (ROOT / path).read_text()
    assert man_page(f"strata-{name}" if name else "strata") == done.text


@pytest.mark.parametrize(("name", "hint"), [("chatt", "did you mean chat?"), ("zzz", "one of chat, ")])
def test_man_of_nothing_is_a_usage_error(name: str, hint: str) -> None:
    done = strata("man", name)
    assert (done.status, done.out) == (ExitStatus.USAGE, b"")
    assert done.err.startswith(f"strata: there is no command {name}; ") and hint in done.err
    assert done.err.count("\n") == 1


def test_a_shell_without_a_script_is_a_usage_error() -> None:
    done = strata("completion", "tcsh")
    assert done.status == ExitStatus.USAGE and done.err.count("\n") == 1


def test_every_error_is_in_the_table() -> None:
    rows = files()["docs/errors.md"].split("|---|\n")[-1].splitlines()
    assert len(rows) == len(KINDS)
    for row in rows:
        code, status, http, cause, remedy = (cell.strip() for cell in row.strip("|").split(" | "))
        kind = KINDS[code.strip("`")]
        assert (int(status), int(http), cause, remedy) == (kind.status, kind.http, kind.cause, kind.remedy)


# Manual pages


@pytest.mark.parametrize("name", PAGES)
def test_pages_have_every_option_and_every_section(name: str) -> None:
    text = files()[name]
    headings = [
        "NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "ENVIRONMENT", "FILES", "EXIT STATUS", "EXAMPLES",
        "SEE ALSO",
    ]  # fmt: skip
    found = re.findall(r"^\.SH (.*)$", text, re.MULTILINE)
    assert found == [heading for heading in headings if heading in found]
    assert {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"} <= set(found)
    commands = {f"man/{'-'.join(c.words)}.1": c for c in (program(), *program().commands)}
    below = commands[name].all() if name != "man/strata.1" else [commands[name]]
    for option in (option for command in below for option in command.options):
        for word in option.all_names:
            assert rf"\fB{word}".replace("-", r"\-") + r"\fR" in text
    generates = name == "man/strata.1" or any(one.value.name == "PROMPT" for one in commands[name].arguments)
    for status in ExitStatus:
        if not generates and status in (ExitStatus.CONTEXT, ExitStatus.STRUCTURED_OUTPUT):
            continue
        assert f".TP\n\\fB{status.value}\\fR\n" in text


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_ascii_without_a_date(name: str) -> None:
    text = files()[name]
    assert text.isascii() and text.splitlines()[0].split(" ", 3)[3].startswith('"" "strata ')


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
@pytest.mark.parametrize("name", PAGES)
def test_mandoc_finds_nothing_but_the_missing_date(name: str) -> None:
    done = subprocess.run(["mandoc", "-T", "lint"], input=files()[name], capture_output=True, text=True)
    complaints = [line for line in done.stdout.splitlines() if "missing date" not in line]
    assert not complaints


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
@pytest.mark.parametrize("name", PAGES)
def test_groff_has_no_warnings(name: str) -> None:
    done = subprocess.run(["groff", "-ww", "-man", "-Tutf8"], input=files()[name], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_what_is_typed_survives_roff() -> None:
    """Hyphens that can be copied, backslashes, quotes and lines that would be requests."""
    odd = r""".dots 'quotes' \back ^caret ~tilde `tick` -m é"""
    command = Command(
        words=("strata", "odd"),
        summary="Odd things.",
        paragraphs=(".start", "'start", r"A \n and `strata --x-y` and --long-option, half-written."),
        examples=(odd, "'single", ".dot"),
        arguments=(Argument(Value("TEXT", "nothing", ()), "Text.", True, False),),
        options=(Option(("-x", "--ex"), ("--no-ex",), None, ".hidden", "Odd", False, "", None, None),),
        commands=(),
    )
    text = page(command, command)
    done = subprocess.run(
        ["groff", "-ww", "-man", "-Tutf8", "-P-cbou"], input=text, capture_output=True, encoding="utf-8"
    )
    assert done.stderr == ""
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert {odd, "'single", ".dot", ".start", "'start", ".hidden", "-x, --ex / --no-ex"} <= set(lines)
    assert r"A \n and strata --x-y and --long-option, half-written." in " ".join(done.stdout.split()).replace("‐", "-")
    assert r"\fB\-\-long\-option\fR, half-written." in text


# bash


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("shells")
    (tmp_path / "names").write_text("".join(f"{name}\n" for name in NAMES))
    (tmp_path / "with space.txt").touch()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "big one.gguf").touch()
    for name, shell in {"strata.bash": "bash", "_strata": "zsh", "strata.fish": "fish"}.items():
        (tmp_path / name).write_text(completion(shell))
    return tmp_path


def bash(folder: Path, line: str, *, breaks: str = "=:") -> list[str]:
    """What bash is offered for a line, cut into words as readline cuts it."""
    pieces = [
        piece for word in line.split(" ") for piece in ([p for p in re.split(f"([{breaks}])", word) if p] or [""])
    ]
    program = f"""
        source ./strata.bash; {STAND_IN}
        COMP_WORDS=({shlex.join(pieces)}) COMP_CWORD={len(pieces) - 1}
        COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)}
        _strata strata || echo failed
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return [reply for reply in done.stdout.split("\n") if reply]


COMMANDS = [command.name for command in program().commands]


@pytest.mark.parametrize(
    ("line", "replies"),
    [
        ("strata ", COMMANDS),
        ("strata ch", ["chat"]),
        ("strata --version ch", ["chat"]),
        ("strata chat ch", []),
        ("strata models ", ["list", "path"]),
        ("strata models list ", []),
        ("strata models l", ["list"]),
        ("strata --v", ["--version"]),
        ("strata chat --inp", ["--input"]),
        ("strata chat --no-th", ["--no-think"]),
        ("strata chat -ng", ["-ngl"]),
        ("strata chat --input js", ["json", "jsonl"]),
        ("strata chat --input=js", ["json", "jsonl"]),
        ("strata chat --input=", ["auto", "text", "json", "jsonl", "none"]),
        ("strata chat --echo=", []),
        ("strata chat --prefix ", []),
        ("strata chat --prefix -", []),
        ("strata chat --prefix --in --inp", ["--input"]),
        ("strata chat -n ", []),
        ("strata chat -ngl a", ["auto", "all"]),
        ("strata chat -ngl 3 --inp", ["--input"]),
        ("strata chat -qm plain", ["plain-model"]),
        ("strata chat -qn 3 --inp", ["--input"]),
        ("strata chat -n3 --inp", ["--input"]),
        ("strata chat some words --inp", ["--input"]),
        ("strata chat -- --inp", []),
        ("strata chat --prefix -- --inp", ["--input"]),
        ("strata render --bo", ["--bos"]),
        ("strata complete --prefix-f", []),
        ("strata completion ", ["bash", "zsh", "fish"]),
        ("strata completion fish ", []),
        ("strata man -- ch", ["chat"]),
        ("strata models path plain", ["plain-model"]),
        ("strata chat -m my", ["my\\ model"]),
        ("strata chat -m my\\", ["my\\ model"]),
        ("strata chat -m 'my", ["my model"]),
        ('strata chat -m "my', ["my model"]),
        ("strata chat -m co", ["co\\$t"]),
        ("strata chat -m it", ["it\\'s"]),
        ("strata chat -m a", ["a:b-c"]),
        ("strata chat -m a:", ["b-c"]),
        ("strata chat -m a:b", ["b-c"]),
        ("strata chat --model=a:b", ["b-c"]),
        ("strata chat --model=plain", ["plain-model"]),
        ("strata nothing ch", []),
    ],
)
def test_bash_offers(folder: Path, line: str, replies: list[str]) -> None:
    assert bash(folder, line) == replies


def test_bash_without_breaks_replaces_the_whole_word(folder: Path) -> None:
    assert bash(folder, "strata chat -m a:b", breaks="@") == ["a:b-c"]
    assert bash(folder, "strata chat --input=js", breaks="@") == ["--input=json", "--input=jsonl"]


def test_bash_offers_every_option_of_every_command(folder: Path) -> None:
    for command in program().all():
        names = {name for option in command.options for name in option.all_names}
        assert set(bash(folder, f"{command.line} -")) == names


def test_bash_completes_up_to_the_cursor(folder: Path) -> None:
    program = f"""
        source ./strata.bash; {STAND_IN}
        COMP_WORDS=(strata chat --input jsonl more) COMP_CWORD=3
        COMP_LINE='strata chat --input jsonl more' COMP_POINT=22
        _strata strata; printf '%s ' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout == "json jsonl "


class Typed:
    """An interactive shell that completes for real; lines are typed with tabs in them."""

    def __init__(self, command: str, args: list[str], folder: Path, setup: str) -> None:
        environment = {"PATH": os.environ["PATH"], "TERM": "xterm", "HOME": str(folder), "LANG": "C.UTF-8", "PS1": ""}
        self.child = pexpect.spawn(
            command, args, cwd=folder, env=environment, dimensions=(50, 200), encoding="utf-8", timeout=20
        )
        self.child.sendline(f"{setup}; echo rea''dy")
        self.child.expect("ready")

    def enter(self, line: str) -> str:
        """Type a line; the arguments that the command then gets."""
        self.child.send(line)
        self.child.sendline("")
        self.child.sendline("echo do''ne")
        self.child.expect("done\r\n")
        shown = re.sub(r"\x1b(\[[0-9;?]*[A-Za-z~]|[=>]|\(B)", "", self.child.before)
        found = re.findall(r"(?:^|[\r\n])\s*((?:<[^<>\r\n]*>)+)\s*\r", shown)
        return found[-1] if found else shown

    def close(self) -> None:
        self.child.close(force=True)


@pytest.fixture(scope="module")
def typed_bash(folder: Path) -> Iterator[Typed]:
    shell = Typed("bash", ["--norc", "--noprofile"], folder, f"source ./strata.bash; {STAND_IN}")
    yield shell
    shell.close()


@pytest.mark.parametrize(
    ("typed", "arguments"),
    [
        ("strata compl\te\t hello", "<complete><hello>"),
        ("strata chat --inp\tno\t", "<chat><--input><none>"),
        ("strata chat --input=no\tx", "<chat><--input=none><x>"),
        ("strata chat -m my\tx", "<chat><-m><my model><x>"),
        ("strata chat -m 'my\tx", "<chat><-m><my model><x>"),
        ('strata chat -m "my\tx', "<chat><-m><my model><x>"),
        ("strata chat -m it\tx", "<chat><-m><it's><x>"),
        ("strata chat -m co\tx", "<chat><-m><co$t><x>"),
        ("strata chat -m a:\tx", "<chat><-m><a:b-c><x>"),
        ("strata chat --model=a:\tx", "<chat><--model=a:b-c><x>"),
        ("strata chat -m models/b\tx", "<chat><-m><models/big one.gguf><x>"),
        ("strata chat -f wi\tx", "<chat><-f><with space.txt><x>"),
        ("strata chat --file=wi\tx", "<chat><--file=with space.txt><x>"),
        ("strata chat --prefix wi\tx", "<chat><--prefix><wix>"),
        ("strata chat -- -f wi\tx", "<chat><--><-f><wix>"),
    ],
)
def test_bash_completes(typed_bash: Typed, typed: str, arguments: str) -> None:
    assert typed_bash.enter(typed) == arguments


def test_bash_parses_the_script_in_posix_mode_too(folder: Path) -> None:
    subprocess.run(["bash", "-n", "strata.bash"], cwd=folder, check=True)


# zsh


@pytest.fixture(scope="module")
def typed_zsh(folder: Path) -> Iterator[Typed]:
    if not shutil.which("zsh"):
        pytest.skip("zsh is not installed")
    setup = (
        "PS1= RPS1= PROMPT_EOL_MARK= LISTMAX=9999; unset zle_bracketed_paste; unsetopt prompt_sp; "
        f"fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D; {STAND_IN}"
    )
    shell = Typed("zsh", ["-f"], folder, setup)
    yield shell
    shell.close()


@pytest.mark.parametrize(
    ("typed", "arguments"),
    [
        ("strata complete\t hello", "<complete><hello>"),
        ("strata chat --inp\tno\t", "<chat><--input=none>"),
        ("strata chat --input no\tx", "<chat><--input><none><x>"),
        ("strata chat -ngl al\tx", "<chat><-ngl><all><x>"),
        ("strata chat -m my\tx", "<chat><-m><my model><x>"),
        ("strata chat -m it\tx", "<chat><-m><it's><x>"),
        ("strata chat -m co\tx", "<chat><-m><co$t><x>"),
        ("strata chat --model=a:\tx", "<chat><--model=a:b-c><x>"),
        ("strata chat -m models/b\tx", "<chat><-m><models/big one.gguf><x>"),
        ("strata chat -f wi\tx", "<chat><-f><with space.txt><x>"),
        ("strata chat --prefix wi\tx", "<chat><--prefix><wix>"),
        ("strata chat some words --inp\tno\t", "<chat><some><words><--input=none>"),
        ("strata chat -- --inp\tx", "<chat><--><--inpx>"),
        ("strata completion fi\t", "<completion><fish>"),
        ("strata models pa\tpla\t", "<models><path><plain-model>"),
    ],
)
def test_zsh_completes(typed_zsh: Typed, typed: str, arguments: str) -> None:
    assert typed_zsh.enter(typed) == arguments


def test_zsh_shows_descriptions(typed_zsh: Typed) -> None:
    typed_zsh.child.send("strata chat --\t")
    typed_zsh.child.expect("Temperature; 0 takes the likeliest token. \\[0.8\\]")
    typed_zsh.child.send("\x15strata \t")
    typed_zsh.child.expect("Continue raw text, without a chat template")
    typed_zsh.child.send("\x15")


def test_zsh_takes_the_sourced_script(folder: Path) -> None:
    if not shutil.which("zsh"):
        pytest.skip("zsh is not installed")
    setup = f"PS1=; unset zle_bracketed_paste; autoload -Uz compinit; compinit -u -D; source ./_strata; {STAND_IN}"
    shell = Typed("zsh", ["-f"], folder, setup)
    assert shell.enter("strata complete\t hello") == "<complete><hello>"
    shell.close()


# fish


def fish(folder: Path, line: str) -> dict[str, str]:
    """What fish offers for a line, with its descriptions."""
    if not shutil.which("fish"):
        pytest.skip("fish is not installed")
    stand_in = "function strata; cat names; end"
    program = f"{stand_in}; source strata.fish; complete -C {shlex.quote(line)}"
    done = subprocess.run(
        ["fish", "--no-config", "-c", program],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return dict(line.partition("\t")[::2] for line in done.stdout.splitlines())


@pytest.mark.parametrize(
    ("line", "replies"),
    [
        ("strata ", set(COMMANDS)),
        ("strata ch", {"chat"}),
        ("strata models ", {"list", "path"}),
        ("strata chat mod", set()),
        ("strata chat --prefix models ", set()),
        ("strata chat --inp", {"--input"}),
        ("strata chat --no-th", {"--no-think"}),
        ("strata chat --input js", {"json", "jsonl"}),
        ("strata chat --input=js", {"--input=json", "--input=jsonl"}),
        ("strata chat -ngl a", {"all", "auto"}),
        ("strata chat -ngl 3 --inp", {"--input"}),
        ("strata chat --prefix ", set()),
        ("strata chat some words --inp", {"--input"}),
        ("strata chat '- item' --inp", {"--input"}),
        ("strata chat -- --inp", set()),
        ("strata chat -f wi", {"with space.txt"}),
        ("strata chat -m my", {"my model"}),
        ("strata chat -m models/b", {"models/big one.gguf"}),
        ("strata chat --model=pla", {"--model=plain-model"}),
        ("strata chat -qm pla", {"plain-model"}),
        ("strata completion ", {"bash", "zsh", "fish"}),
        ("strata completion fish ", set()),
        ("strata models path pla", {"plain-model"}),
        ("strata models list --n", {"--names"}),
    ],
)
def test_fish_offers(folder: Path, line: str, replies: set[str]) -> None:
    assert set(fish(folder, line)) == replies


def test_fish_shows_descriptions(folder: Path) -> None:
    assert fish(folder, "strata chat --tem")["--temp"] == "Temperature; 0 takes the likeliest token. [0.8]"
    assert fish(folder, "strata ")["complete"] == "Continue raw text, without a chat template"


def test_generating_writes_files_and_removes_old_pages(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / "strata_cli", copy / "strata_cli")
    (copy / "man").mkdir()
    (copy / "man" / "strata-old.1").touch()
    subprocess.run([sys.executable, "-m", "strata_cli.cli.generate"], cwd=copy, check=True)
    written = {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()}
    assert {name for name in written if not name.startswith("strata_cli/")} == set(files())
    assert all((copy / name).read_bytes() == text.encode() for name, text in files().items())
