#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_cuda.sh <build folder> [name ...]: the tests on the GPU, all of them or those with these names in theirs.
# Operators run on the CPU as well and must give the same bits.
set -euo pipefail
. "$(dirname "$0")/gpu.sh"
need_cuda
shift
failed=()

run() { # <devices> <program> [argument]
  local start=$SECONDS log status=0
  log=$(mktemp)
  POOLGRAD_DEVICES=$1 timeout -k 10 "${POOLGRAD_TEST_TIMEOUT:-180}" "${@:2}" > "$log" 2>&1 || status=$?
  if [ $status -eq 0 ] || [ $status -eq 77 ]; then
    echo "ok $(basename "$2") on $1, $((SECONDS - start)) s"
    sed -n "s/^skipped: /skipped: $(basename "$2"): /p" "$log"
  else
    echo "FAILED $(basename "$2") on $1, status $status, $((SECONDS - start)) s"
    grep -vE '^\[ +(RUN|OK) ' "$log" | head -n 60
    failed+=("$(basename "$2")")
  fi
  rm -f "$log"
}

wanted() { # <program> <names>
  local name
  [ $# -gt 1 ] || return 0
  for name in "${@:2}"; do
    [[ $1 != *$name* ]] || return 0
  done
  return 1
}

for program in "$tests"/test_ops_* "$tests"/test_tensor_* "$tests"/test_cuda_* "$tests"/test_runtime_*; do
  [[ $program != *_second_backend ]] || continue # brings a device of its own
  [ -x "$program" ] && [ -f "$program" ] && wanted "$(basename "$program")" "$@" || continue
  case $program in
    */test_runtime_*) run cuda "$program" ;;
    *) run cuda,cpu "$program" ;;
  esac
done
for target in operators half tensors; do # what the fuzzers have kept
  [ -x "$build/fuzz/replay_$target" ] && wanted "replay_$target" "$@" || continue
  run cuda,cpu "$build/fuzz/replay_$target" "$(dirname "$0")/../../fuzz/corpus/$target"
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}"; exit 1; }
