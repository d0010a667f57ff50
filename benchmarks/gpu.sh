#!/bin/sh
# Build with CUDA and measure: the prefix example, then the engine beside a bare loop.
#
#     benchmarks/gpu.sh [MODEL]        in a virtual environment with Strata in it
set -eu

if ! command -v nvidia-smi >/dev/null 2>&1; then
    echo "gpu.sh: there is no nvidia-smi here, so no NVIDIA driver; run this on a machine with a GPU" >&2
    exit 1
fi
nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader

CMAKE_ARGS="-DGGML_CUDA=on" python -m pip install --force-reinstall --no-cache-dir --no-deps \
    llama-cpp-python==0.3.36

if [ $# -gt 0 ]; then
    STRATA_MODEL=$1
    export STRATA_MODEL
fi
strata chat -ngl all --temp 0 -n 32 --stats --prefix "The next number is" "Complete the sequence: 1, 2, 3,"
strata bench -ngl all --depth 0,512,4096 --prompt-tokens 512 --against raw
