#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pack.sh <build folder> <folder>: what the checks beside it and bench.py --device cuda need, for a machine with a GPU
# that has no compiler, no cmake and no cmocka. There: check_cuda.sh <folder>, check_programs.sh <folder>
# <folder>/programs, bench.py --build <folder> --device cuda.
set -euo pipefail
build=$1 to=$2
rm -rf "$to"
mkdir -p "$to"/{lib64,tests,bench,fuzz}
cp -L "$build"/lib64/{libpoolgrad.so,libpoolgrad.so.0,libpoolgrad_cuda.so} "$to/lib64/"
for name in ascendcl nnopbase opapi; do ln -s libpoolgrad.so "$to/lib64/lib$name.so"; done
for program in "$build"/tests/test_{ops,tensor,cuda,runtime}_*; do
  if [ -f "$program" ] && [ -x "$program" ]; then cp "$program" "$to/tests/"; fi
done
cp "$build"/fuzz/replay_* "$to/fuzz/"
cp "$build"/tests/libsecond_backend.so "$to/tests/" # a test finds it beside itself
strip "$to"/tests/test_* "$to"/fuzz/replay_*
cp -L "$(ldd "$build/tests/test_ops_problems" | awk '/libcmocka/ { print $3 }')" "$to/tests/"
cp "$build"/bench/*.so "$to/bench/"
bash "$(dirname "$0")/check_programs.sh" --make "$build" "$to/programs"
