"""A computation that stops when the interrupt is set, without a call into Python for every node of its graph.

llama.cpp asks a C function `bool f(void *data)` before each node. libc's `strlen` is such a function: over the
interrupt's two bytes, of which the second is always zero, it gives 0 before the flag is set and 1 after. A bool is
returned in the lowest byte of the same register as a size_t (x86-64: al of rax, in the System V and the Windows
convention; AArch64: w0 of x0), and both values fit in it. A Python callback would take the interpreter's lock
thousands of times per token.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from typing import Any

from strata_cli.environment import Interrupt

_CHECKED_MACHINES = {"x86_64", "amd64", "aarch64", "arm64"}


class Abort:
    """The callback and its data for one context; it must live as long as the context."""

    def __init__(self, api: Any, interrupt: Interrupt) -> None:
        self._view = (ctypes.c_char * len(interrupt.memory)).from_buffer(interrupt.memory)
        self.data = ctypes.addressof(self._view)
        compiled = _strlen()
        if compiled is None:
            self.callback = api.ggml_abort_callback(lambda _: bool(interrupt))
        else:
            self._library = compiled
            self.callback = ctypes.cast(compiled, api.ggml_abort_callback)


def _strlen() -> Any:
    """libc's function, or None where it cannot be had or has not been checked to fit."""
    if platform.machine().lower() not in _CHECKED_MACHINES:
        return None
    try:
        libc = ctypes.CDLL("msvcrt" if sys.platform == "win32" else None)
        return libc.strlen
    except (OSError, AttributeError):
        return None
