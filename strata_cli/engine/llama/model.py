"""Open a model: check the file, decide what goes where, load it, and try with less when that fails."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from strata_cli.engine import Constraint, Grammar, ModelInfo, ModelOptions, Progress, Threads, Timeline
from strata_cli.engine.cache import PromptCache, Shelf, identity
from strata_cli.engine.llama import library, machine, offload
from strata_cli.engine.llama.abort import Abort
from strata_cli.engine.llama.crew import Crew, Readings, most_threads
from strata_cli.engine.llama.library import LOG
from strata_cli.engine.llama.timeline import LlamaTimeline
from strata_cli.engine.llama.vocabulary import Vocabulary
from strata_cli.environment import Interrupt
from strata_cli.errors import INVALID_USAGE, MODEL_LOAD_FAILED, MODEL_NOT_FOUND, Interrupted, StrataError
from strata_cli.store.gguf import GgufFile, read_model

if TYPE_CHECKING:
    from strata_cli.engine.llama.bare import BareLoop
    from strata_cli.engine.llama.constraint import Lexicon

_FLASH_ATTENTION = {"auto": -1, "off": 0, "on": 1}
_TEMPLATE = "tokenizer.chat_template"
_SAMPLING = "general.sampling."
# What all of llama.cpp's backends say in one way or another.
_OUT_OF_MEMORY = re.compile("memory|alloc", re.IGNORECASE)
_NO_VOCABULARY = 0
_CPU_ONLY = (
    "There is an NVIDIA GPU here, but llama.cpp was built without CUDA. To use it: "
    'CMAKE_ARGS="-DGGML_CUDA=on" pip install --force-reinstall --no-cache-dir --no-deps '
    f"llama-cpp-python=={library.INSTALLED_VERSION}"
)


class LlamaEngine:
    """A model in llama.cpp."""

    def __init__(self, loaded: Loaded, info: ModelInfo, interrupt: Interrupt, shelf: Shelf | None = None) -> None:
        self._loaded, self._interrupt, self._shelf = loaded, interrupt, shelf
        self._timelines: list[LlamaTimeline] = []
        self._spare = loaded.context
        self._lexicons: dict[str, Lexicon] = {}
        self.info = info

    @property
    def threads(self) -> Threads:
        return self._timelines[-1].crew.threads if self._timelines else Threads(0, self._loaded.threads)

    def tokenize(self, text: str) -> list[int]:
        return self._vocabulary().tokenize(text)

    def token_bytes(self, token: int) -> bytes:
        return self._vocabulary().data(token)

    def timeline(self) -> Timeline:
        """A new timeline with a KV cache of its own; raises MODEL_LOAD_FAILED where there is no memory for one more."""
        vocabulary, loaded = self._vocabulary(), self._loaded
        if loaded.plan is None:
            raise StrataError(MODEL_LOAD_FAILED, f"{self.info.path} was opened without its weights.")
        context, self._spare = self._spare or loaded.new_context(), None
        timeline = LlamaTimeline(
            loaded.api, context.handle, loaded.model, vocabulary, self.info.context, self._interrupt,
            loaded.crew(context), self._shelf, context,
        )  # fmt: skip
        self._timelines.append(timeline)
        return timeline

    def constraint(self, grammar: Grammar) -> Constraint:
        """A grammar over this vocabulary; raises NOT_IN_THIS_BUILD with the keyword that it cannot express."""
        # llguidance costs 0.1 s to import, and only this needs it.
        from strata_cli.engine.llama.constraint import LlamaConstraint

        self._vocabulary()
        return LlamaConstraint(grammar, self._prepared)

    def bare(self) -> BareLoop:
        """A bare loop over the same model, with a context of the same parameters, to measure against."""
        from strata_cli.engine.llama.bare import BareLoop

        context = self._loaded.new_context()
        return BareLoop(self._loaded.api, context.handle, self._interrupt, context)

    def build(self) -> dict[str, str | int]:
        """What was built and how it runs: versions, llama.cpp's own words, batch sizes in tokens."""
        loaded = self._loaded
        assert loaded.plan is not None
        return {
            "llama_cpp_python": library.INSTALLED_VERSION,
            "system_info": loaded.api.llama_print_system_info().decode(errors="replace").strip(),
            "batch": loaded.batch,
            "ubatch": loaded.plan.ubatch,
        }

    def _prepared(self, markers: str) -> Lexicon:
        """The vocabulary as constraints with these markers read it, which takes a while to make."""
        from strata_cli.engine.llama.constraint import Lexicon

        vocabulary = self._vocabulary()
        if markers not in self._lexicons:
            self._lexicons[markers] = Lexicon(self._loaded.api, vocabulary, markers)
        return self._lexicons[markers]

    def close(self) -> None:
        """Free everything; closing twice is harmless, using anything of it afterwards is an error."""
        for timeline in self._timelines:
            timeline.close()
        self._timelines.clear()
        self._loaded.close(self._spare)
        self._spare = None

    def _vocabulary(self) -> Vocabulary:
        if not self._loaded.model:
            raise RuntimeError("the engine is closed")
        return self._loaded.vocabulary


@dataclass(frozen=True, slots=True)
class Context:
    """A llama.cpp context and the callback that it holds."""

    handle: int
    abort: Abort


class Loaded:
    """A model in memory, and how contexts over it are made."""

    def __init__(
        self,
        api: Any,
        model: int,
        options: ModelOptions,
        plan: offload.Plan | None,
        abort: Abort,
        readings: Readings,
    ) -> None:
        self.api, self.model, self.plan = api, model, plan
        self._options, self._abort, self._readings = options, abort, readings
        self.batch = options.batch or (plan.ubatch if plan else 0)
        self.threads = options.threads or most_threads(machine.physical_cores(), os.environ)
        self._adapters: list[int] = []
        self.context: Context | None = None
        self.vocabulary = Vocabulary(api, model)
        if plan is not None:
            self._adapters = [self._adapter(path) for path in options.loras]
            self.context = self.new_context()

    def new_context(self) -> Context:
        assert self.plan is not None
        api, options = self.api, self._options
        parameters = api.llama_context_default_params()
        parameters.n_ctx = self.plan.context
        parameters.n_ubatch = self.plan.ubatch
        parameters.n_batch = self.batch
        # Only the last token of an evaluation is asked for: this saves a buffer of vocabulary times batch.
        parameters.n_outputs_max = 1
        parameters.n_threads = parameters.n_threads_batch = self.threads
        parameters.flash_attn_type = _FLASH_ATTENTION[options.flash_attention]
        parameters.type_k = offload.CACHE_TYPES[options.cache_type_k]
        parameters.type_v = offload.CACHE_TYPES[options.cache_type_v]
        # A full cache for sliding windows would need many times the memory.
        parameters.swa_full = False
        parameters.no_perf = True
        handle = api.llama_init_from_model(self.model, parameters)
        if not handle:
            raise _failed(options.path, f"no context of {self.plan.context:,} tokens could be made")
        if not api.llama_get_memory(handle):
            api.llama_free(handle)
            raise _failed(options.path, "it does not continue text (it has no memory of it)")
        api.llama_set_abort_callback(handle, self._abort.callback, self._abort.data)
        if self._adapters:
            self._adapt(handle)
        return Context(handle, self._abort)

    def crew(self, context: Context) -> Crew:
        """What chooses the threads of a context, unless the user has."""
        fixed = self._options.threads is not None
        return Crew(self.api, context.handle, self.threads, self._readings, fixed=fixed)

    def _adapter(self, path: str) -> int:
        adapter = self.api.llama_adapter_lora_init(self.model, os.fsencode(path))
        if not adapter:
            raise _failed(path, "it is no LoRA adapter for this model")
        return adapter

    def _adapt(self, context: int) -> None:
        count = len(self._adapters)
        adapters = (ctypes.c_void_p * count)(*self._adapters)
        scales = (ctypes.c_float * count)(*[1.0] * count)
        self.api.llama_set_adapters_lora(context, adapters, count, scales)

    def close(self, context: Context | None) -> None:
        if context is not None:
            self.api.llama_free(context.handle)
        if self.model:
            self.api.llama_model_free(self.model)
            self.model = 0


def open_model(
    options: ModelOptions,
    *,
    interrupt: Interrupt,
    progress: Progress | None = None,
    log: Callable[[str], None] | None = None,
    cache: PromptCache | None = None,
) -> LlamaEngine:
    """Open the model of a GGUF file; what it evaluates is taken from the cache, and kept there.

    `progress` is called with thousandths of the file. `log` gets llama.cpp's lines; the log is the process's, so that
    the last opened model's listener gets all. Raises MODEL_NOT_FOUND, MODEL_NOT_GGUF, MODEL_INCOMPLETE,
    MODEL_LOAD_FAILED, INVALID_USAGE or Interrupted.
    """
    started, readings = perf_counter(), Readings()
    _check(options)
    files = read_model(options.path)
    if interrupt:
        raise Interrupted
    LOG.sink = log
    api = library.load()
    devices = () if options.vocab_only else _chosen_devices(options)
    plan = None if options.vocab_only else _plan(files, options, devices)
    loaded, plan = _load(api, options, plan, devices, interrupt, progress, readings)
    info = _info(files, options, loaded.vocabulary, plan, devices)
    shelf = None if cache is None or plan is None else Shelf(cache, _identity(files, options, plan))
    return LlamaEngine(loaded, replace(info, load_seconds=perf_counter() - started), interrupt, shelf)


def _identity(files: Sequence[GgufFile], options: ModelOptions, plan: offload.Plan) -> bytes:
    """What the states of this model depend on: its files, llama.cpp, and how a state is laid out."""
    paths = [os.path.realpath(path) for path in (*(file.path for file in files), *options.loras)]
    found = [(path, (status := os.stat(path)).st_size, status.st_mtime_ns) for path in paths]
    layout = (options.cache_type_k, options.cache_type_v, options.flash_attention, plan.layers)
    return identity((library.INSTALLED_VERSION, *found, *layout))


def _check(options: ModelOptions) -> None:
    """Numbers and names that no model can be opened with."""
    numbers = {
        "context size": options.context,
        "threads": options.threads,
        "batch size": options.batch,
        "micro-batch size": options.ubatch,
    }
    for name, value in numbers.items():
        if value is not None and not 0 < value < 2**31:
            raise StrataError(INVALID_USAGE, f"The {name} must be at least 1, not {value}.")
    if isinstance(options.gpu_layers, int) and not 0 <= options.gpu_layers < 2**31:
        raise StrataError(
            INVALID_USAGE, f"The GPU layers must be auto, all or a number from 0, not {options.gpu_layers}."
        )
    for name in (options.cache_type_k, options.cache_type_v):
        if name not in offload.CACHE_TYPES:
            known = ", ".join(offload.CACHE_TYPES)
            raise StrataError(INVALID_USAGE, f"There is no KV cache type {name!r}; there are {known}.")
    for path in options.loras:
        if not os.path.isfile(path):
            raise StrataError(MODEL_NOT_FOUND, f"There is no LoRA adapter {path}.")


def _chosen_devices(options: ModelOptions) -> tuple[machine.Device, ...]:
    if options.gpu_layers == 0:
        return ()
    found = machine.devices()
    if not options.devices:
        return found
    if options.devices == ("none",):
        return ()
    known = {device.name.lower(): device for device in found}
    missing = [name for name in options.devices if name.lower() not in known]
    if missing:
        names = ", ".join(device.name for device in found) or "none"
        raise StrataError(INVALID_USAGE, f"There is no device {missing[0]!r}; llama.cpp sees: {names}.")
    return tuple(known[name.lower()] for name in options.devices)


def _plan(files: Sequence[GgufFile], options: ModelOptions, devices: Sequence[machine.Device]) -> offload.Plan:
    shape = offload.shape(files, options.cache_type_k, options.cache_type_v)
    return offload.plan(shape, options, [device.free for device in devices], machine.free_memory())


def _load(
    api: Any,
    options: ModelOptions,
    plan: offload.Plan | None,
    devices: Sequence[machine.Device],
    interrupt: Interrupt,
    progress: Progress | None,
    readings: Readings,
) -> tuple[Loaded, offload.Plan | None]:
    """Load as planned, with fewer layers on the devices each time that fails and the number was left to us."""
    while True:
        LOG.forget()
        try:
            return _load_once(api, options, plan, devices, interrupt, progress, readings), plan
        except StrataError as error:
            ours = plan is not None and plan.layers and options.gpu_layers == "auto"
            if plan is None or not ours or not _OUT_OF_MEMORY.search(error.message):
                raise
            plan = offload.with_fewer_layers(plan)


def _load_once(
    api: Any,
    options: ModelOptions,
    plan: offload.Plan | None,
    devices: Sequence[machine.Device],
    interrupt: Interrupt,
    progress: Progress | None,
    readings: Readings,
) -> Loaded:
    watch = _Watch(interrupt, progress)
    parameters, keep = _model_parameters(api, options, plan, devices)
    parameters.progress_callback = callback = api.llama_progress_callback(watch.report)
    model = api.llama_model_load_from_file(os.fsencode(options.path), parameters)
    del callback, keep
    if not model:
        watch.reraise()
        raise _failed(options.path, "llama.cpp cannot load it")
    try:
        watch.reraise()
        _check_kind(api, model, options)
        return Loaded(api, model, options, plan, Abort(api, interrupt), readings)
    except BaseException:
        api.llama_model_free(model)
        raise


def _check_kind(api: Any, model: int, options: ModelOptions) -> None:
    """Refuse what would end the process later: models that do not continue a text, and those without a vocabulary."""
    if api.llama_vocab_type(api.llama_model_get_vocab(model)) == _NO_VOCABULARY:
        raise _failed(options.path, "it has no vocabulary")
    continues = api.llama_model_has_decoder(model) and not api.llama_model_has_encoder(model)
    if not continues or api.llama_model_is_diffusion(model):
        raise _failed(options.path, "it does not continue text (it encodes, embeds or denoises)")


class _Watch:
    """The load's progress callback. Compiled code calls it, so it returns a flag and keeps what was raised."""

    def __init__(self, interrupt: Interrupt, progress: Progress | None) -> None:
        self._interrupt, self._progress = interrupt, progress
        self._raised: BaseException | None = None
        self._last = -1

    def report(self, fraction: float, _: object) -> bool:
        try:
            thousandths = int(fraction * 1000)
            if self._progress is not None and thousandths != self._last:
                self._last = thousandths
                self._progress(thousandths, 1000)
        except BaseException as error:
            self._raised = error
        return not self._interrupt and self._raised is None

    def reraise(self) -> None:
        if self._raised is not None:
            raise self._raised
        if self._interrupt:
            raise Interrupted


class _Placement(ctypes.Structure):
    """llama_model_tensor_buft_override: tensors whose names match go into this kind of memory."""

    _fields_ = (("pattern", ctypes.c_char_p), ("buffer_type", ctypes.c_void_p))


def _model_parameters(
    api: Any, options: ModelOptions, plan: offload.Plan | None, devices: Sequence[machine.Device]
) -> tuple[Any, list[object]]:
    """llama.cpp's parameters, and what must live until they have been used."""
    parameters = api.llama_model_default_params()
    parameters.vocab_only = options.vocab_only
    parameters.n_gpu_layers = plan.layers if plan else 0
    keep: list[object] = []
    # An empty list keeps a device from being used for single operations while no layer is on it.
    handles = (ctypes.c_void_p * (len(devices) + 1))(*(device.handle for device in devices))
    keep.append(handles)
    parameters.devices = ctypes.addressof(handles)
    if plan and plan.layers and options.cpu_moe:
        cpu = library.symbol("ggml_backend_cpu_buffer_type", ctypes.c_void_p)()
        patterns = [rf"blk\.{layer}\.ffn_(up|down|gate|gate_up)_(ch|)exps".encode() for layer in range(options.cpu_moe)]
        placements = (_Placement * (len(patterns) + 1))(*((pattern, cpu) for pattern in patterns))
        keep += [patterns, placements]
        parameters.tensor_buft_overrides = ctypes.addressof(placements)
    return parameters, keep


def _failed(path: str, reason: str) -> StrataError:
    said = LOG.tail()
    return StrataError(MODEL_LOAD_FAILED, f"{path}: {reason}{f' ({said})' if said else ''}.")


def _info(
    files: Sequence[GgufFile],
    options: ModelOptions,
    vocabulary: Vocabulary,
    plan: offload.Plan | None,
    devices: Sequence[machine.Device],
) -> ModelInfo:
    first = files[0]
    training = first.number(f"{first.text('general.architecture')}.context_length") or 0
    notes = list(plan.notes if plan else ())
    if plan and not devices and options.gpu_layers != 0 and machine.has_nvidia():
        notes.append(_CPU_ONLY)
    layers = plan.layers if plan and devices else 0
    return ModelInfo(
        name=first.text("general.name") or first.path.stem,
        path=options.path,
        templates=_templates(first),
        bos=vocabulary.bos,
        eos=vocabulary.eos,
        context=plan.context if plan else (options.context or training),
        training_context=training,
        device=", ".join(device.description for device in devices) if layers else "CPU",
        gpu_layers=layers,
        sampling=_sampling(first),
        notes=tuple(notes),
    )


def _templates(file: GgufFile) -> Mapping[str, str]:
    named = {
        key.removeprefix(_TEMPLATE + "."): file.text(key) for key in file.metadata if key.startswith(_TEMPLATE + ".")
    }
    main = {"default": file.text(_TEMPLATE)}
    return MappingProxyType({name: text for name, text in (main | named).items() if text})


def _sampling(file: GgufFile) -> Mapping[str, float]:
    return MappingProxyType(
        {
            key.removeprefix(_SAMPLING): float(value)
            for key, value in file.metadata.items()
            if key.startswith(_SAMPLING) and isinstance(value, int | float)
        }
    )
