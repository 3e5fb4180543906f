#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_cuda_decision.sh: whether the CUDA plug-in is built, and what is said about it, with and without a GPU. The GPU is
# a script that answers as nvidia-smi does.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/gpu" "$tmp/none"
unset POOLGRAD_CUDA_ARCHITECTURES
printf '#!/bin/sh\necho 9.0\necho 9.0\n' > "$tmp/gpu/nvidia-smi"
printf '#!/bin/sh\nexit 9\n' > "$tmp/none/nvidia-smi"
chmod +x "$tmp"/*/nvidia-smi

expect() {  # expect <gpu|none> <sentence> [option...]
  local machine=$1 sentence=$2
  shift 2
  rm -rf "$tmp/build"
  PATH="$tmp/$machine:$PATH" cmake -S "$root" -B "$tmp/build" -DCMAKE_C_COMPILER="${CC:-cc}" -DBUILD_TESTING=OFF "$@" \
    > "$tmp/log" 2>&1 || true
  # CMake breaks the lines of an error.
  tr -s '\n ' '  ' < "$tmp/log" | grep -qF "$sentence" ||
    { cat "$tmp/log"; echo "with $machine $*: not said: $sentence"; exit 1; } >&2
}
expect none "plug-in not built, there is no NVIDIA GPU here (make cuda, or -DPOOLGRAD_CUDA=ON, builds it)"
expect gpu "plug-in not built, POOLGRAD_CUDA is OFF" -DPOOLGRAD_CUDA=OFF
expect gpu "plug-in not built, there is a GPU but no nvcc" -DPOOLGRAD_NVCC=""
expect none "POOLGRAD_CUDA is ON, but there is no nvcc" -DPOOLGRAD_CUDA=ON -DPOOLGRAD_NVCC=""
if command -v nvcc > /dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
  expect gpu "for 90-real, which takes minutes"
  expect none "for 80-real, 90, which takes minutes" -DPOOLGRAD_CUDA=ON
else
  echo "no nvcc here: what is said where it is was not looked at"
fi
echo "cuda decision ok"
