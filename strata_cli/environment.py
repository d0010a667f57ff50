"""The process as seen by the program: a flag for signals. Nothing here is read at import."""

from __future__ import annotations


class Interrupt:
    """A flag that a signal handler sets and that compiled code can read while Python waits for it.

    `memory` is two bytes, the second always zero: read as a C string it is empty until the flag is set.
    `signal` is the number of the signal that set it, or 0.
    """

    __slots__ = ("memory", "signal")

    def __init__(self) -> None:
        self.memory = bytearray(2)
        self.signal = 0

    def set(self, signal: int = 2) -> None:
        self.signal = signal
        self.memory[0] = 1

    def clear(self) -> None:
        self.signal = 0
        self.memory[0] = 0

    def __bool__(self) -> bool:
        return self.memory[0] != 0
