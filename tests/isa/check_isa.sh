#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_isa.sh <folder of the test programs>: every problem and a run of random ones on every kernel set this CPU can
# run. The programs compare bits with the stated order of sums, so sets that pass agree with each other.
set -euo pipefail
tests=$1
for isa in avx512 avx2 scalar; do
  export POOLGRAD_ISA=$isa
  if "$tests/test_ops_problems" 'adaptive_max_pool2d f32 i32 in=1x1x2x2 out=1x1' 2>&1 | grep -q "POOLGRAD_ISA is"; then
    echo "$isa: skipped, this CPU or build does not have it"
    continue
  fi
  "$tests/test_ops_problems" > /dev/null 2>&1
  POOLGRAD_TEST_SECONDS=2 "$tests/test_ops_random" > /dev/null 2>&1
  echo "$isa: ok"
done
