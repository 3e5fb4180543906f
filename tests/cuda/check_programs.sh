#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_programs.sh <build folder> [folder]: the examples and the documents' programs print the same on the GPU as on
# the CPU. Taken as they are from a folder that --make has filled; without one they are made first.
# check_programs.sh --make <build folder> <folder> only makes them, for a machine without sources of them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/../.." && pwd)

make_programs() { # <build folder> <folder>
  local source with=(-I"$root/include" -L"$1/lib64" -lascendcl -lnnopbase -lopapi)
  mkdir -p "$2"
  for source in "$root"/examples/*.c; do
    "${CC:-cc}" "$source" "${with[@]}" -o "$2/$(basename "$source" .c)"
  done
  python3 "$root/tests/documents/check_documents.py" --shared "$root/../shared" --extract "$2" || [ $? -eq 77 ]
  if [ -z "${CXX-c++}" ]; then
    echo "skipped: the documents' programs, there is no C++ compiler here (Debian: g++)"
    return
  fi
  for source in "$2"/*.cpp; do
    [ ! -e "$source" ] || "${CXX-c++}" -std=c++11 "$source" "${with[@]}" -o "${source%.cpp}"
  done
}

if [ "$1" = --make ]; then
  make_programs "$2" "$3"
  exit
fi
. "$here/gpu.sh"
need_cuda
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
programs=${2:-$work/programs}
[ $# -gt 1 ] || make_programs "$build" "$programs"

# What differs by nature: the devices' own names, measured times, the time and the process in front of a warning.
output() { # <devices> <program>
  POOLGRAD_DEVICES=$1 timeout -k 10 60 "$2" 2>&1 |
    sed -E '/^[0-9]+: (cpu|cuda)/d; /^cuda: /d; s/[0-9.]+ ms/# ms/; s/^\[PID.*[0-9]{3} //'
}

failed=0 count=0
for program in "$programs"/*; do
  [ -x "$program" ] && [ -f "$program" ] || continue
  count=$((count + 1))
  if output cpu "$program" > "$work/cpu" && output cuda "$program" > "$work/cuda" && diff "$work/cpu" "$work/cuda"
  then echo "ok $(basename "$program")"
  else echo "FAILED $(basename "$program")"; failed=1
  fi
done
[ $count -gt 0 ] || { echo "FAILED: no programs in $programs"; failed=1; }
exit $failed
