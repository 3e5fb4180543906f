#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_isa.sh <isa> <folder of the test programs> [emulator]: every problem, every tail and a run of random ones on
# that kernel set, and which methods it chooses. The programs compare bits with the stated order of sums, so sets that
# pass agree with each other.
set -euo pipefail
export POOLGRAD_ISA=$1
problems=$2/test_ops_problems random=$2/test_ops_random tails=$2/test_ops_tails choice=$2/test_choice
shift 2

# Not a pipe: without its set the program fails, and so would the pipe.
if grep -q "POOLGRAD_ISA is" <<< "$("$@" "$problems" 'adaptive_max_pool2d f32 i32 in=1x1x2x2 out=1x1' 2>&1)"; then
  echo "skipped: this processor or this build does not have the kernel set $POOLGRAD_ISA"
  exit 77
fi
"$@" "$choice"
"$@" "$problems"
[ $# -gt 0 ] || "$tails" # an emulator takes minutes: there each program runs once
POOLGRAD_TEST_SECONDS=2 "$@" "$random"

# The same with results past the caches, which small ones never are by themselves.
export POOLGRAD_STREAM_BYTES=1
[ $# -gt 0 ] || "$problems"
"$@" "$tails"
POOLGRAD_TEST_SECONDS=1 "$@" "$random"
