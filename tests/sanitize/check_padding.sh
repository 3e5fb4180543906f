#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_padding.sh asan|valgrind <build folder>: a program that is built with AddressSanitizer, or runs under valgrind,
# and uses the library as it is shipped may touch every byte of an allocation that it asked for, and is told of the first
# byte behind them, though the library's padding lies there.
set -euo pipefail
checker=${1:?usage: check_padding.sh asan|valgrind <build folder>}
lib=$(cd "${2:?usage: check_padding.sh asan|valgrind <build folder>}/lib64" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export LD_LIBRARY_PATH="$lib" POOLGRAD_DEVICES=cpu POOLGRAD_CUDA=off ASAN_OPTIONS=detect_leaks=0

build() {  # build <compiler> [flag...]
  "$1" -std=c11 -g -I"$root/include" "${@:2}" "$root/tests/sanitize/overrun.c" -L"$lib" -lpoolgrad -o "$tmp/overrun"
}

runs=0
try() {  # try <function> <bytes> <index> <word that must be said, or none>
  local status=0
  "${watch[@]}" "$tmp/overrun" "$1" "$2" "$3" > "$tmp/said" 2>&1 || status=$?
  if [ -z "$4" ] && [ "$status" -ne 0 ]; then
    cat "$tmp/said" >&2
    echo "$name: byte $3 of $2 from $1 is the program's own, and was reported" >&2
    exit 1
  elif [ -n "$4" ] && ! grep -q "$4" "$tmp/said"; then
    cat "$tmp/said" >&2
    echo "$name: byte $3 behind the $2 from $1 was touched, and not reported ('$4')" >&2
    exit 1
  fi
  runs=$((runs + 1))
}

try_all() {  # try_all <word> <size...>
  for function in aclrtMalloc aclrtMallocHost; do
    for bytes in "${@:2}"; do
      try $function "$bytes" $((bytes - 1)) ""
      try $function "$bytes" "$bytes" "$1"
    done
  done
  try aclrtMalloc 100 159 "$1" # the last byte of 128 + 32
}

if [ "$checker" = valgrind ]; then
  if ! command -v valgrind > /dev/null; then
    echo "skipped: valgrind is not installed"
    exit 77
  elif [ ! -e /usr/include/valgrind/memcheck.h ]; then
    echo "skipped: the library was built without <valgrind/memcheck.h>"
    exit 77
  fi
  name=valgrind
  watch=(valgrind -q --error-exitcode=99 --fair-sched=yes)
  build "${CC:-cc}"
  try_all "Invalid write of size 1" 31 100
else
  compilers='' known=''
  for name in "${CC:-cc}" gcc clang; do
    watch=()
    command -v "$name" > /dev/null || continue
    [[ " $known " != *" $(readlink -f "$(command -v "$name")") "* ]] || continue # cc is one of the others
    known+=" $(readlink -f "$(command -v "$name")")"
    build "$name" -fsanitize=address 2> "$tmp/why" || continue # it has no AddressSanitizer
    compilers+=" $name"
    try_all "AddressSanitizer: \(use-after-poison\|heap-buffer-overflow\)" 1 31 32 100 3000005
  done
  if [ -z "$compilers" ]; then
    cat "$tmp/why"
    echo "skipped: no compiler here has AddressSanitizer"
    exit 77
  fi
fi
echo "padding ok: $runs runs (${compilers:-$name})"
