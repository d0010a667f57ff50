"""llama.cpp's shared library: loaded once, on first use, and silent unless somebody listens to its log."""

from __future__ import annotations

import ctypes
import os
import sys
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from strata_cli.engine.llama.crew import set_waiting
from strata_cli.errors import MODEL_LOAD_FAILED, StrataError

Sink = Callable[[str], None]

INSTALLED_VERSION = "0.3.36"
_DEBUG, _ERROR, _CONTINUED = 1, 4, 5


class Log:
    """llama.cpp's log, one for the whole process as the library has it; the last error lines are kept for messages."""

    def __init__(self) -> None:
        self.sink: Sink | None = None
        self._errors: deque[str] = deque(maxlen=8)
        self._line = ""
        self._level = 0

    def write(self, level: int, text: bytes, _: object) -> None:
        """Called by compiled code, in any thread: it must not raise."""
        if level != _CONTINUED:
            self._level = level
        if self._level == _DEBUG:
            return
        self._line += text.decode("utf-8", "replace")
        while "\n" in self._line:
            line, _, self._line = self._line.partition("\n")
            self._take(line.rstrip())

    def _take(self, line: str) -> None:
        if self._level == _ERROR and line:
            self._errors.append(line)
        if self.sink is not None and line:
            try:
                self.sink(line)
            except Exception:
                self.sink = None

    def forget(self) -> None:
        self._errors.clear()

    def tail(self) -> str:
        """The last error lines in one, without the names of C functions before them."""
        said = dict.fromkeys(line.partition(": ")[2] or line for line in self._errors)
        return "; ".join(line for line in said if line != "failed to load model")


LOG = Log()


@lru_cache(maxsize=1)
def load() -> Any:
    """The module of llama.cpp's C functions, its log silenced; raises MODEL_LOAD_FAILED without a usable library."""
    # A failed assertion would otherwise start a debugger to print a backtrace.
    os.environ.setdefault("GGML_NO_BACKTRACE", "1")
    set_waiting(os.environ)
    try:
        api = _import_bindings()
    except (ImportError, OSError, RuntimeError) as error:
        raise StrataError(
            MODEL_LOAD_FAILED,
            f"The llama.cpp library cannot be loaded: {error}",
            hint=f"Install it again: pip install --force-reinstall llama-cpp-python=={INSTALLED_VERSION}",
        ) from None
    # ctypes keeps no reference to a callback that C code holds.
    api.strata_log_callback = api.llama_log_callback(LOG.write)
    api.llama_log_set(api.strata_log_callback, None)
    api.llama_backend_init()
    if symbol("ggml_backend_dev_count", ctypes.c_size_t)() == 0:
        symbol("ggml_backend_load_all", None)()
    return api


def _import_bindings() -> ModuleType:
    """llama_cpp.llama_cpp without its package's __init__.

    That imports numpy, jinja2, diskcache and chat handlers, which are not needed here and take 0.25 s.
    """
    if "llama_cpp" in sys.modules:
        from llama_cpp import llama_cpp as bindings

        return bindings
    spec = find_spec("llama_cpp")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("llama-cpp-python is not installed")
    package = ModuleType("llama_cpp")
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules["llama_cpp"] = package
    try:
        from llama_cpp import llama_cpp as bindings
    finally:
        # Whoever imports the package later gets the real one.
        del sys.modules["llama_cpp"]
    return bindings


def symbol(name: str, result: Any, *arguments: Any) -> Any:
    """A function of ggml, which the bindings do not declare, with its C types."""
    bindings = sys.modules["llama_cpp.llama_cpp"]
    for library in (bindings._lib, *_ggml_libraries()):
        if function := getattr(library, name, None):
            function.restype, function.argtypes = result, list(arguments)
            return function
    raise StrataError(MODEL_LOAD_FAILED, f"The llama.cpp library has no function {name}.")


@lru_cache(maxsize=1)
def _ggml_libraries() -> list[Any]:
    """ggml's own libraries where looking into llama's does not find their functions (Windows)."""
    if sys.platform != "win32":
        return []
    bindings = sys.modules["llama_cpp.llama_cpp"]
    return [bindings.load_shared_library(name, bindings._base_path) for name in ("ggml", "ggml-base")]
