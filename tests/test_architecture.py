"""The walls of the house, read from the imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "strata_cli"
MODULES = sorted(PACKAGE.rglob("*.py"))

# A room may import itself and the rooms below it.
ROOMS = {
    "__init__": set(),
    "errors": {"__init__"},
    "environment": {"errors"},
    "settings": {"errors"},
    "conversation": {"errors"},
    "prompt": {"errors", "conversation"},
    "engine": {"errors", "environment", "store"},
    "store": {"errors"},
    "generation": {"errors", "conversation", "prompt", "engine"},
    "output": {"errors", "environment", "conversation", "prompt", "engine", "generation", "store"},
}

# Where a vendor's package may be imported.
VENDORS = {
    "llama_cpp": "engine/llama/",
    "llguidance": "engine/llama/",
    "typer": "cli/",
    "prompt_toolkit": "output/terminal/",
    "rich": "output/terminal/",
    "pygments": "output/terminal/",
    "jinja2": "prompt/template.py",
}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room_of(name: str) -> str:
    return name.removesuffix(".py").split("/")[0].split(".")[0]


def imports(path: Path) -> list[str]:
    """Every module that a file imports, those inside functions too; `from a import b` is a.b where that is a module."""
    found = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [name if module_named(name) else node.module or "" for name in names]
    return found


def ours(path: Path) -> set[str]:
    return {name for name in imports(path) if name.split(".")[0] == "strata_cli"}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_one_way(path: Path) -> None:
    room = room_of(name_of(path))
    if room in ("cli", "__init__", "__main__"):
        return
    allowed = ROOMS[room] | {room}
    for name in ours(path):
        other = name.split(".")[1] if "." in name else "__init__"
        if other in ROOMS or (PACKAGE / other).exists() or (PACKAGE / f"{other}.py").exists():
            assert other in allowed, f"{name_of(path)} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_each_vendor_stays_in_its_folder(path: Path) -> None:
    for name in imports(path):
        home = VENDORS.get(name.split(".")[0])
        assert home is None or name_of(path).startswith(home), f"{name_of(path)} imports {name}"


def test_no_cycles() -> None:
    graph = {module_of(path): {target for name in ours(path) if (target := module_named(name))} for path in MODULES}
    done: set[str] = set()

    def visit(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, " -> ".join([*above, module])
        if module in done:
            return
        for target in graph.get(module, ()):
            if target != module:
                visit(target, (*above, module))
        done.add(module)

    for module in graph:
        visit(module, ())


def module_of(path: Path) -> str:
    return "strata_cli." + name_of(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def module_named(name: str) -> str | None:
    """The module file behind an imported name, or None where the name is a value in one."""
    parts = name.split(".")[1:]
    path = PACKAGE.joinpath(*parts) if parts else PACKAGE
    if path.with_suffix(".py").is_file() and parts:
        return name
    return name if (path / "__init__.py").is_file() and parts and (path / "__init__.py").stat().st_size else None


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_functions_read_in_one_breath(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= 80, f"{name_of(path)}: {node.name} has {length} lines"


FORBIDDEN_NAMES = {"utils", "helpers", "common", "manager", "base", "misc"}


def test_no_module_is_called_after_nothing() -> None:
    for path in MODULES:
        assert not FORBIDDEN_NAMES & set(name_of(path).removesuffix(".py").split("/"))


HEAVY = ("llama_cpp", "numpy", "jinja2", "prompt_toolkit", "rich")


@pytest.mark.parametrize(
    "args",
    [["--help"], ["--version"], ["chat", "--help"], ["render", "-h"], ["models", "list", "--names"]],
    ids=" ".join,
)
def test_start_is_light(args: list[str]) -> None:
    program = (
        "import sys\n"
        "from strata_cli.cli import run\n"
        "from strata_cli.environment import of_this_process\n"
        f"assert run({args!r}, of_this_process()) == 0\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
