"""What this machine has: memory, processor cores, devices."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strata_cli.engine.llama.library import symbol

_GPU, _INTEGRATED_GPU = 1, 2
_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU that llama.cpp can use; `free` in bytes."""

    name: str
    description: str
    free: int
    handle: int


def devices() -> tuple[Device, ...]:
    """The GPUs that llama.cpp sees; integrated ones only where there is no other, as llama.cpp itself chooses."""
    found: dict[int, list[Device]] = {_GPU: [], _INTEGRATED_GPU: []}
    for index in range(symbol("ggml_backend_dev_count", ctypes.c_size_t)()):
        handle = symbol("ggml_backend_dev_get", ctypes.c_void_p, ctypes.c_size_t)(index)
        kind = symbol("ggml_backend_dev_type", ctypes.c_int, ctypes.c_void_p)(handle)
        if kind in found:
            found[kind].append(_device(handle))
    return tuple(found[_GPU] or found[_INTEGRATED_GPU])


def _device(handle: int) -> Device:
    def text(name: str) -> str:
        return symbol(name, ctypes.c_char_p, ctypes.c_void_p)(handle).decode("utf-8", "replace")

    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    size = ctypes.POINTER(ctypes.c_size_t)
    symbol("ggml_backend_dev_memory", None, ctypes.c_void_p, size, size)(handle, free, total)
    return Device(text("ggml_backend_dev_name"), text("ggml_backend_dev_description"), free.value, handle)


def has_nvidia() -> bool:
    """Whether an NVIDIA driver is here, whatever llama.cpp was built for."""
    if sys.platform == "win32":
        return Path(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32", "nvcuda.dll").exists()
    return Path("/proc/driver/nvidia/version").exists() or Path("/dev/nvidiactl").exists()


def free_memory() -> int | None:
    """Bytes of main memory that can be used without pushing others out, cgroup limits heeded; None when unknown."""
    known = [amount for amount in (_available(), _cgroup_left()) if amount is not None]
    return min(known, default=None)


def _available() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        # No count of what is free: half of what there is.
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return None


def _cgroup_left() -> int | None:
    """What the cgroup (version 2, else 1) still allows; its page cache can be given up and counts as free."""
    for limit, used, cache in (
        (_CGROUP / "memory.max", _CGROUP / "memory.current", "inactive_file"),
        (
            _CGROUP / "memory/memory.limit_in_bytes",
            _CGROUP / "memory/memory.usage_in_bytes",
            "total_inactive_file",
        ),
    ):
        try:
            statistics = (limit.parent / "memory.stat").read_text().splitlines()
            reclaimable = next((int(line.split()[1]) for line in statistics if line.split()[0] == cache), 0)
            return max(0, int(limit.read_text()) - int(used.read_text()) + reclaimable)
        except (OSError, ValueError, IndexError):
            # ValueError: "max", no limit.
            continue
    return None


def physical_cores() -> int:
    """Cores that this process may use, two threads of one core counted once: llama.cpp is fastest with these."""
    try:
        allowed: Iterable[int] = os.sched_getaffinity(0)
    except AttributeError:
        return max(1, os.cpu_count() or 1)
    cores = {_siblings(number) for number in allowed}
    return max(1, min(len(cores), _cgroup_cores() or len(cores)))


def _siblings(number: int) -> Any:
    try:
        return Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list").read_text()
    except OSError:
        return number


def _cgroup_cores() -> int | None:
    try:
        quota, period = (_CGROUP / "cpu.max").read_text().split()
        return max(1, int(quota) // int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return None
