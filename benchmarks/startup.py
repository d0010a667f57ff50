"""Start-up beside its floor: `strata --help` beside `import typer`, and so on; medians of alternating runs.

python benchmarks/startup.py [--runs 15]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

MINIMAL = """
import typer
app = typer.Typer(add_completion=False, rich_markup_mode=None)
@app.command()
def chat(prompt: str = ""):
    "Chat."
app(["--help"], standalone_mode=False)
"""
PAIRS = [
    ("strata --help", ["--help"], "import typer"),
    ("strata chat --help", ["chat", "--help"], MINIMAL),
    ("strata render --template", ["render", "-q", "--template", "TEMPLATE", "Hi"], MINIMAL + "\nimport jinja2.sandbox"),
]
# An installed program has its bytecode on disk.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
STRATA = "import sys; sys.argv[0] = 'strata'; from strata_cli.cli import main; main()"


def seconds(program: str, args: list[str]) -> float:
    began = perf_counter()
    subprocess.run([sys.executable, "-c", program, *args], stdout=subprocess.DEVNULL, env=ENVIRONMENT, check=True)
    return perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder) / "template.jinja"
        template.write_text("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: ")
        for name, args, floor in PAIRS:
            given = [str(template) if arg == "TEMPLATE" else arg for arg in args]
            ours, theirs = [], []
            seconds(STRATA, given)
            for _ in range(runs):
                ours.append(seconds(STRATA, given))
                theirs.append(seconds(floor, []))
            ratio = median(ours) / median(theirs)
            print(f"{name:28} {1000 * median(ours):6.0f} ms, floor {1000 * median(theirs):6.0f} ms, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
