#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_valgrind.sh <folder of the test programs>: a short list of tests under memcheck, which sees what a sanitizer
# does not: memory that is used before it has a value, in the optimised code as it is shipped. There are no
# suppressions. Left out: test_ops_memory, which sets the processor to flush subnormals, and valgrind cannot; what takes
# minutes. Valgrind has no AVX-512: kernels run with AVX2 and in plain C.
set -euo pipefail
programs=$(cd "${1:?usage: check_valgrind.sh <folder of the test programs>}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v valgrind > /dev/null; then
  echo "skipped: valgrind: it is not here (make deps WHAT=ci)"
  exit 0
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT

checked() {  # checked <program> [argument...]
  # Fair scheduling: without it a thread that spins keeps the others from what it waits for. Definite leaks only: what
  # belongs to a thread that still runs when the process ends is "possibly lost".
  if ! timeout 300 valgrind -q --error-exitcode=99 --fair-sched=yes --leak-check=full --show-leak-kinds=definite \
      --errors-for-leak-kinds=definite "$programs/$1" "${@:2}" > "$log" 2>&1; then
    cat "$log" >&2
    echo "valgrind: $1 failed" >&2
    exit 1
  fi
}

count=0
for name in array tensor executor executor_repeatable check_adaptive_avg check_adaptive_max check_avg_pool \
    check_max_pool log ops_gradient runtime_callback runtime_device runtime_event runtime_memory \
    runtime_ops_lifetime runtime_stream strict strict_waits; do
  checked "test_$name"
  count=$((count + 1))
done
mapfile -t problems < <(grep -hvE '^(#|$)' "$here"/../problems/{small,tails}.txt)
for isa in avx2 neon scalar; do
  # Not a pipe: without its set the program fails, and so would the pipe.
  if grep -q "POOLGRAD_ISA is" <<< "$(POOLGRAD_ISA=$isa "$programs/test_ops_problems" "${problems[0]}" 2>&1)"; then
    continue  # another processor's
  fi
  POOLGRAD_ISA=$isa checked test_ops_problems "${problems[@]}"
  count=$((count + 1))
done
echo "valgrind ok: $count runs, ${#problems[@]} problems"
