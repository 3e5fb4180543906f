#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run_examples.sh <prefix> <build folder> [example.c ...]: compiles each example against the library that is installed
# in the prefix, as a program for CANN is compiled, and runs it; all of examples/ if none is named. The programs stay in
# <build folder>/examples. The compiler is CC, otherwise that of the build. Each example prints a line "summary: ...";
# together they end the output.
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: run_examples.sh <prefix> <build folder> [example.c ...]" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
prefix=$1 programs=$2/examples
stop() {
  echo "make run: $1" >&2
  exit 1
}

library=$(find "$prefix" -name libascendcl.so 2> /dev/null | head -n 1 || true)
[ -n "$library" ] || stop "no library is installed in $prefix"
libraries=$(cd "$(dirname "$library")" && pwd)
[ -n "${CC:-}" ] || CC=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$2/CMakeCache.txt" 2> /dev/null || true)
compile=("${CC:=cc}")
command -v "$CC" > /dev/null || read -ra compile <<< "$CC" # several words: a launcher or flags

# A library with a sanitizer in it asks for one in the program too.
case $(sed -n 's/^POOLGRAD_SANITIZE:[A-Z]*=//p' "$2/CMakeCache.txt" 2> /dev/null || true) in
  address) compile+=(-fsanitize=address,undefined) ;;
  thread) compile+=(-fsanitize=thread) ;;
  integer) compile+=(-fsanitize=undefined) ;;
esac

examples=("${@:3}")
[ ${#examples[@]} -gt 0 ] || examples=("$root"/examples/*.c)
mkdir -p "$programs"
summaries=
for source in "${examples[@]}"; do
  name=$(basename "$source" .c)
  program=$programs/$name
  echo "== examples/$name.c"
  "${compile[@]}" "$source" -I"$prefix/include" -L"$libraries" -lascendcl -lnnopbase -lopapi -o "$program" ||
    stop "$source does not compile with ${compile[*]}"
  # One file for both streams, so that a warning stays behind the line that announces it.
  status=0
  LD_LIBRARY_PATH=$libraries "$program" > "$program.log" 2>&1 || status=$?
  grep -v '^summary: ' "$program.log" || true
  [ $status -eq 0 ] || stop "$source failed with status $status; what it printed is above"
  summary=$(sed -n 's/^summary: //p' "$program.log")
  [ -n "$summary" ] || stop "$source ended without its line \"summary: ...\""
  summaries+="  $summary"$'\n'
  echo
done
echo "== what the examples computed"
printf '%s' "$summaries"
[ ${#examples[@]} -eq 1 ] && echo "1 example ran" || echo "${#examples[@]} examples ran"
