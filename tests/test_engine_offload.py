"""What fits where: estimates from headers, and what is decided from them."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

import pytest

from strata_cli.engine import ModelOptions
from strata_cli.engine.llama import library, machine, model, offload, open_model
from strata_cli.engine.llama.offload import Shape, cache_bytes, plan, shape, with_fewer_layers
from strata_cli.environment import Interrupt
from strata_cli.errors import MODEL_LOAD_FAILED, StrataError
from strata_cli.store.gguf import GgufFile, read
from tests import tiny

GB = 1 << 30
# As Llama 3.1 8B in 4 bits.
LLAMA = Shape(
    layers=(130 << 20,) * 32,
    experts=(0,) * 32,
    input=300 << 20,
    output=400 << 20,
    cache=(2 * 8 * 128 * 2,) * 32,
    windows=(0,) * 32,
    training_context=131_072,
    width=4 * 4096 + 2 * 14_336,
    matrix=4096 * 14_336,
    heads=32,
)
OPTIONS = ModelOptions("m.gguf")


def described(**metadata: object) -> GgufFile:
    """A header of four layers without tensors."""
    fields = {"block_count": 4, "embedding_length": 64, "context_length": 1000} | metadata
    named = {f"test.{key.replace('__', '.')}": value for key, value in fields.items()}
    return GgufFile(Path("m.gguf"), 3, {"general.architecture": "test", **named}, (), 0)


def test_sizes_are_those_of_the_file(tiny_model: Path) -> None:
    file = read(tiny_model)
    sizes = shape([file], "f16", "f16")
    assert len(sizes.layers) == tiny.LAYERS and len(set(sizes.layers)) == 1
    assert sizes.weights == sum(tensor.size or 0 for tensor in file.tensors)
    assert sizes.cache == (2 * 2 * tiny.WIDTH // tiny.HEADS,) * tiny.LAYERS
    assert sizes.training_context == tiny.CONTEXT


def test_a_tied_embedding_is_on_both_sides(tiny_model: Path) -> None:
    file = read(tiny_model)
    tied = replace(file, tensors=tuple(tensor for tensor in file.tensors if tensor.name != "output.weight"))
    sizes = shape([tied], "f16", "f16")
    assert sizes.output > sizes.input


def test_the_cache_of_every_kind_of_attention() -> None:
    def cache(**metadata: object) -> tuple[int, ...]:
        return shape([described(**metadata)], "f16", "f16").cache

    assert cache(attention__head_count=4) == (2 * 64 * 2,) * 4
    assert cache(attention__head_count=4, attention__head_count_kv=1) == (2 * 16 * 2,) * 4
    assert cache(attention__head_count=4, attention__head_count_kv=(1, 0, 1, 0)) == (64, 0, 64, 0)
    assert cache(attention__head_count=4, attention__key_length=32, attention__value_length=8) == (4 * 40 * 2,) * 4
    assert cache(attention__head_count=4, full_attention_interval=2) == (0, 256, 0, 256)
    assert cache() == (0,) * 4
    assert shape([described(attention__head_count=2)], "q8_0", "q8_0").cache == (2 * 2 * 34,) * 4


def test_sliding_windows_bound_the_cache() -> None:
    by_list = described(attention__head_count=4, attention__sliding_window=512)
    by_list.metadata["test.attention.sliding_window_pattern"] = (True, False, True, True)
    assert shape([by_list], "f16", "f16").windows == (512, 0, 512, 512)
    gemma = described(attention__head_count=4, attention__sliding_window=512)
    gemma.metadata["general.architecture"] = "gemma2"
    for key in list(gemma.metadata):
        gemma.metadata[key.replace("test.", "gemma2.")] = gemma.metadata[key]
    sizes = shape([gemma], "f16", "f16")
    assert sizes.windows == (512, 0, 512, 0)
    assert cache_bytes(sizes, 100_000, 512) < cache_bytes(replace(sizes, windows=(0,) * 4), 100_000, 512) * 0.6


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_the_estimate_is_what_llama_cpp_takes(tmp_path: Path, architecture: str) -> None:
    lines: list[str] = []
    path = tiny.write(tmp_path / "m.gguf", architecture=architecture, window=16, context=10_000)
    options = ModelOptions(str(path), context=10_000, ubatch=32, threads=1)
    open_model(options, interrupt=Interrupt(), log=lines.append).close()
    taken = sum(float(line.split("size =")[1].split("MiB")[0]) for line in lines if "llama_kv_cache: size =" in line)
    assert taken > 0
    estimate = cache_bytes(shape([read(path)], "f16", "f16"), 10_000, 32) / (1 << 20)
    assert estimate == pytest.approx(taken, rel=0.02, abs=0.02)


def test_on_a_large_device_all_layers_and_the_whole_context() -> None:
    decided = plan(LLAMA, OPTIONS, [80 * GB], 64 * GB)
    assert (decided.layers, decided.context, decided.notes) == (33, 131_072, ())


def test_a_smaller_device_gets_all_layers_and_less_context() -> None:
    decided = plan(LLAMA, OPTIONS, [12 * GB], 64 * GB)
    assert decided.layers == 33 and 4096 < decided.context < 131_072
    assert "-c sets it" in decided.notes[0]


def test_more_context_than_the_model_knows_is_noted() -> None:
    assert plan(LLAMA, replace(OPTIONS, context=131_072), [], 640 * GB).notes == ()
    (note,) = plan(LLAMA, replace(OPTIONS, context=131_073), [], 640 * GB).notes
    assert "131,073" in note and "trained for 131,072" in note


def test_a_small_device_gets_some_layers() -> None:
    decided = plan(LLAMA, replace(OPTIONS, context=8192), [4 * GB], 64 * GB)
    assert 5 < decided.layers < 25
    assert f"{decided.layers} of 33 layers" in decided.notes[0]
    assert plan(LLAMA, replace(OPTIONS, context=8192), [GB // 2], 64 * GB).layers == 0


def test_experts_in_main_memory_make_room() -> None:
    experts = replace(LLAMA, layers=(900 << 20,) * 32, experts=(800 << 20,) * 32)
    fixed = replace(OPTIONS, context=8192)
    alone = plan(experts, fixed, [8 * GB], 64 * GB).layers
    assert plan(experts, replace(fixed, cpu_moe=32), [8 * GB], 64 * GB).layers == 33 > alone


def test_a_number_of_layers_is_obeyed() -> None:
    assert plan(LLAMA, replace(OPTIONS, gpu_layers=7), [GB], 64 * GB).layers == 7
    assert plan(LLAMA, replace(OPTIONS, gpu_layers="all"), [GB], 64 * GB).layers == 33
    assert plan(LLAMA, replace(OPTIONS, gpu_layers="all"), [], 64 * GB).layers == 0


def test_without_a_device_the_context_leaves_half_of_the_memory() -> None:
    decided = plan(LLAMA, OPTIONS, [], 16 * GB)
    assert decided.context % 256 == 0 and 30_000 < decided.context < 60_000
    assert cache_bytes(LLAMA, decided.context, 512) < (16 * GB - LLAMA.weights) / 2
    assert plan(LLAMA, OPTIONS, [], None).context == 131_072
    assert plan(LLAMA, OPTIONS, [], 1 * GB).context == 4096
    assert plan(LLAMA, replace(OPTIONS, context=99), [], 1 * GB) == offload.Plan(99, 64, 0)


def test_large_models_are_evaluated_in_small_pieces_on_a_cpu() -> None:
    small = replace(LLAMA, matrix=576 * 1536)
    assert plan(LLAMA, OPTIONS, [], GB).ubatch == 64
    assert plan(small, OPTIONS, [], GB).ubatch == 512
    assert plan(LLAMA, OPTIONS, [80 * GB], GB).ubatch == 512
    assert plan(LLAMA, replace(OPTIONS, ubatch=256), [], GB).ubatch == 256
    assert plan(small, replace(OPTIONS, batch=100), [], GB).ubatch == 100


def test_after_a_failure_there_are_fewer_layers_and_one_note() -> None:
    decided, seen = plan(LLAMA, OPTIONS, [80 * GB], 64 * GB), []
    while decided.layers:
        decided = with_fewer_layers(decided)
        seen.append(decided.layers)
    assert seen[:3] == [24, 18, 13] and len(seen) < 12
    assert len(decided.notes) == 1


def test_a_load_that_fails_is_tried_with_less(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    load_once = model._load_once

    def failing(api, options, planned, *rest):
        tried.append(planned.layers)
        if planned.layers > 1:
            raise StrataError(MODEL_LOAD_FAILED, "no memory on the device")
        return load_once(api, options, replace(planned, layers=0), *rest)

    monkeypatch.setattr(model, "_load_once", failing)
    monkeypatch.setattr(machine, "devices", lambda: (machine.Device("GPU0", "A GPU", 80 * GB, 0),))
    engine = open_model(ModelOptions(str(tiny_model), threads=1), interrupt=Interrupt())
    assert tried == [3, 2, 1]
    assert engine.info.notes == ("With 2 layers on the GPU the model could not be loaded, so 1 are there.",)
    assert (engine.info.device, engine.info.gpu_layers) == ("A GPU", 1)
    engine.close()
    tried.clear()
    with pytest.raises(StrataError):
        open_model(ModelOptions(str(tiny_model), gpu_layers=2), interrupt=Interrupt())
    assert tried == [2]


def test_an_unused_nvidia_device_is_named_once(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "devices", lambda: ())
    monkeypatch.setattr(machine, "has_nvidia", lambda: True)

    def notes(**options: object) -> tuple[str, ...]:
        engine = open_model(ModelOptions(str(tiny_model), threads=1, **options), interrupt=Interrupt())
        engine.close()
        return engine.info.notes

    (note,) = notes()
    assert "GGML_CUDA=on" in note and f"llama-cpp-python=={library.INSTALLED_VERSION}" in note
    assert notes(gpu_layers=0) == ()


def test_the_pinned_version_is_the_installed_one() -> None:
    from importlib.metadata import version

    assert version("llama-cpp-python") == library.INSTALLED_VERSION


def test_the_machine_is_plausible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library.load()
    assert machine.physical_cores() >= 1
    memory = machine.free_memory()
    assert memory is None or memory > 100 << 20
    assert all(device.free >= 0 for device in machine.devices())
    for name, text in (
        ("memory.max", "3000"),
        ("memory.current", "1000"),
        ("memory.stat", "anon 5\ninactive_file 200"),
    ):
        (tmp_path / name).write_text(text)
    (tmp_path / "cpu.max").write_text("250000 100000")
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    assert machine.free_memory() == 2200
    assert machine._cgroup_cores() == 2
    (tmp_path / "memory.max").write_text("max")
    assert machine._cgroup_left() is None


def test_ctypes_structures_have_the_sizes_of_c() -> None:
    assert ctypes.sizeof(model._Placement) == 2 * ctypes.sizeof(ctypes.c_void_p)
