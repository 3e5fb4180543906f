#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_bits32.sh: a 32-bit build is refused by one sentence when it is configured. The compiler is a real one where
# it makes 32-bit programs; elsewhere CMake is told that it would, as a toolchain file may.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

cc=${CC:-cc}
options=("-DCMAKE_C_COMPILER=$cc")
if echo 'int main(void) { return 0; }' | "$cc" -m32 -x c - -o "$tmp/try" 2> /dev/null; then
  options+=(-DCMAKE_C_FLAGS=-m32)
else
  options+=(-DCMAKE_C_COMPILER_WORKS=1 -DCMAKE_C_ABI_COMPILED=1 -DCMAKE_C_SIZEOF_DATA_PTR=4 -DCMAKE_SIZEOF_VOID_P=4)
fi
if cmake -S "$root" -B "$tmp/build" "${options[@]}" > "$tmp/log" 2>&1; then
  echo "a 32-bit build was configured" >&2
  exit 1
fi
# CMake breaks the lines of what it says.
if ! tr -s '\n ' '  ' < "$tmp/log" | grep -q "poolgrad needs a 64-bit processor: .*makes 32-bit programs"; then
  cat "$tmp/log" >&2
  echo "a 32-bit build was refused, but not by the sentence" >&2
  exit 1
fi
echo "32 bits are refused"
