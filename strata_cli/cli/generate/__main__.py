"""Writes the generated files into the repository."""

from __future__ import annotations

from pathlib import Path

from strata_cli.cli.generate import files


def write(root: Path) -> None:
    """Write every generated file, and remove the manual pages of commands that are no more."""
    texts = files()
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    for page in root.glob("man/*.1"):
        if f"man/{page.name}" not in texts:
            page.unlink()


if __name__ == "__main__":
    write(Path(__file__).parents[3])
