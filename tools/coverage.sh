#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# coverage.sh [build folder]: builds the library with gcc's counters, runs the unit tests and then every kernel set this
# processor has, and prints what was reached. Fails when it is less than tools/coverage_report.py demands.
# Minutes; POOLGRAD_COVERAGE_KEEP=1 adds to the counts of the last run instead of starting from nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/coverage}
jobs=$(nproc)

bash tools/deps.sh coverage
[ -e "$build/CMakeCache.txt" ] || cmake --preset coverage -B "$build" > /dev/null
cmake --build "$build" --parallel "$jobs" > /dev/null
[ -n "${POOLGRAD_COVERAGE_KEEP:-}" ] || find "$build" -name '*.gcda' -delete

# A test that fails is a matter of `make test`; here it is said, and what it reached counts.
ctest --test-dir "$build" --tests-regex '^(test_|isa_)' --parallel "$jobs" --quiet \
  --output-log "$build/coverage.log" || grep -A 99 'tests FAILED' "$build/coverage.log" >&2

python3 tools/coverage_report.py "$build"
