#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh <folder of the fuzzers> <seconds> [target]: each fuzzer, or this one, for so long; what it says about itself at
#   the end, and failure if one has found something. New inputs and finds stay in <folder>/found/<target>.
# run.sh <folder of the fuzzers> merge [target]: makes fuzz/corpus/<target> anew from it and from what was found: the
#   fewest inputs that reach as many edges.
set -euo pipefail
binaries=$(realpath "${1:?usage: run.sh <folder of the fuzzers> <seconds>|merge [target]}")
seconds=${2:?usage: run.sh <folder of the fuzzers> <seconds>|merge [target]}
cd "$(dirname "$0")"
targets=${3:-$(ls fuzz_*.c | sed -E 's/fuzz_(.*)\.c/\1/')}
export POOLGRAD_CUDA=off ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1}

run() { # <target>
  local found=$binaries/found/$1 status=0
  local options=(-max_total_time="$seconds" -timeout=60 -rss_limit_mb=3072 -max_len=512 -print_final_stats=1
    -artifact_prefix="$found/find-")
  [ ! -e "$1.dict" ] || options+=(-dict="$1.dict")
  mkdir -p "$found/inputs"
  "$binaries/fuzz_$1" "${options[@]}" "$found/inputs" "corpus/$1" > "$found/log" 2>&1 || status=$?
  # "#1234 DONE cov: 1 ft: 2 ...": edges of the library reached, and features, which count how often too
  printf '%-12s %s executions, %s\n' "$1" "$(sed -nE 's/^stat::number_of_executed_units: +//p' "$found/log")" \
    "$(grep -oE 'cov: [0-9]+ ft: [0-9]+ corp: [0-9]+' "$found/log" | tail -n 1)"
  [ $status -eq 0 ] || { grep -E '^WRONG|ERROR|SUMMARY|Test unit' "$found/log" || tail -n 20 "$found/log"; }
  return $status
}

merge() { # <target>
  local found=$binaries/found/$1 fresh
  fresh=$(mktemp -d "$binaries/merge-XXXXXX")
  mkdir -p "$found/inputs" "corpus/$1"
  "$binaries/fuzz_$1" -set_cover_merge=1 -use_counters=0 -timeout=60 -rss_limit_mb=3072 "$fresh" "corpus/$1" "$found/inputs" \
    > "$found/merge.log" 2>&1 || { tail -n 20 "$found/merge.log"; return 1; }
  find "corpus/$1" -maxdepth 1 -type f ! -name '*_*' -delete # names with _ were chosen by hand and stay
  mv "$fresh"/* "corpus/$1/" && rmdir "$fresh"
  printf '%-12s %s inputs, %s bytes\n' "$1" "$(ls "corpus/$1" | wc -l)" "$(cat "corpus/$1"/* | wc -c)"
}

# As many at once as there are processors; each uses little more than one.
failed=0 running=()
for target in $targets; do
  if [ ${#running[@]} -ge "$(nproc)" ]; then
    wait "${running[0]}" || failed=1
    running=("${running[@]:1}")
  fi
  if [ "$seconds" = merge ]; then merge "$target"; else run "$target"; fi &
  running+=($!)
done
for process in "${running[@]}"; do wait "$process" || failed=1; done
exit $failed
