"""Nothing that a model or a file says may steer the terminal: what would is made visible instead."""

from __future__ import annotations

_BIDI = (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)

# Control pictures for C0 and DEL; a code in brackets for what has no picture.
_VISIBLE = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
_VISIBLE[0x7F] = "\u2421"
_VISIBLE |= {code: f"<U+{code:04X}>" for code in (*range(0x80, 0xA0), *_BIDI, 0x2028, 0x2029)}


def visible(text: str) -> str:
    """The text with every control character but newline and tab shown as a picture or a code.

    Each character is replaced by itself, so a sequence that is cut anywhere is as harmless as a whole one.
    """
    return text.translate(_VISIBLE)


def visible_line(text: str) -> str:
    """The same for text that has to stay on one line."""
    return visible(text).replace("\n", "\u240a").replace("\t", " ")
