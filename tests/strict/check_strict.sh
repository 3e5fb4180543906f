#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_strict.sh <build folder>: right programs run in strict mode: the examples, and the tests of operators, which
# compute thousands of problems, and those in which memory runs out, also for what the mode itself notes.
set -euo pipefail
build=$(cd "${1:?usage: check_strict.sh <build folder>}" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export LD_LIBRARY_PATH="$build/lib64" POOLGRAD_CUDA=off

count=0
must_run() {  # must_run <program>: succeeds, and the mode has nothing to say
  if ! POOLGRAD_STRICT=1 "$1" > "$tmp/said" 2>&1 || grep -q POOLGRAD_STRICT "$tmp/said"; then
    cat "$tmp/said" >&2
    echo "strict: $1 is refused something with POOLGRAD_STRICT=1" >&2
    exit 1
  fi
  count=$((count + 1))
}
for source in "$root"/examples/*.c; do
  program=$tmp/$(basename "$source" .c)
  "${CC:-cc}" "$source" -I"$root/include" -L"$build/lib64" -lpoolgrad -o "$program"
  must_run "$program"
done
for name in ops_problems ops_tails ops_gradient ops_indices faults_operators faults_runtime; do
  must_run "$build/tests/test_$name"
done
echo "strict ok: $count programs"
