#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_musl.sh: builds the library with musl instead of glibc (the libc of Alpine and of static programs) and runs the
# examples and small_stack.c with it. The unit tests stay with glibc: there is no cmocka for musl in Debian.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! command -v musl-gcc > /dev/null; then
  echo "skipped: musl: there is no musl-gcc here (make deps WHAT=ci)"
  exit 0
fi

build=build/musl
# -O1: what libc does is tested here, not what the optimiser does, and it halves the time.
cmake -S . -B $build -DCMAKE_C_COMPILER=musl-gcc -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE="-O1 -DNDEBUG" \
  -DPOOLGRAD_WERROR=ON -DPOOLGRAD_CUDA=OFF -DBUILD_TESTING=OFF -DCMAKE_TARGET_MESSAGES=OFF > /dev/null
cmake --build $build --parallel "${JOBS:-$(nproc)}" --target poolgrad > /dev/null

mkdir -p $build/programs
for source in examples/*.c tests/musl/small_stack.c; do
  program=$build/programs/$(basename "$source" .c)
  musl-gcc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 "$source" -Iinclude -L$build/lib64 -lpoolgrad -Wl,-z,now \
    -o "$program"
  # In a file, not a pipe: a program that fails must fail the check, and shows what it said.
  if ! LD_LIBRARY_PATH=$build/lib64 timeout 60 "$program" > $build/programs/output 2>&1; then
    cat $build/programs/output >&2
    echo "musl: $source failed" >&2
    exit 1
  fi
done
echo "musl ok: $(ls examples/*.c | wc -l) examples and small_stack"
