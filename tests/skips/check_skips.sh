#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_skips.sh: tools/run_tests.sh says why tests were skipped, whole or in part, and has the status of ctest.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

mkdir "$tmp/source"
cat > "$tmp/source/CMakeLists.txt" << 'END'
cmake_minimum_required(VERSION 3.21)
project(skips LANGUAGES NONE)
enable_testing()
add_test(NAME whole COMMAND sh -c "echo noise; echo 'skipped: no such tool (Debian: tool)'; exit 77")
add_test(NAME mute COMMAND sh -c "exit 77")
add_test(NAME part COMMAND sh -c "seq 2000; echo 'skipped: too little memory'; seq 2000; echo 'skipped: too little memory'")
add_test(NAME plain COMMAND sh -c "echo 'nothing is skipped: nothing'")
add_test(NAME bad COMMAND sh -c "exit 1")
set_tests_properties(whole mute part plain bad PROPERTIES SKIP_RETURN_CODE 77)
END
cmake -S "$tmp/source" -B "$tmp/a build" > "$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }

expect() {  # expect <status> <argument of ctest ...>: the lines about skipped tests are those on stdin
  local wanted=$1 status=0
  shift
  bash "$root/tools/run_tests.sh" "$tmp/a build" --parallel 2 "$@" > "$tmp/log" 2>&1 || status=$?
  grep '^skipped' "$tmp/log" | sort > "$tmp/found" || true
  if [ "$status" != "$wanted" ] || ! diff "$tmp/found" -; then
    cat "$tmp/log" >&2
    echo "run_tests.sh ended with $status, expected $wanted, or the lines on skipped tests are not those expected" >&2
    exit 1
  fi
}
expect 0 -E bad << 'END'
skipped in part: part: too little memory
skipped: mute: it gives no reason
skipped: whole: no such tool (Debian: tool)
END
expect 0 -R plain < /dev/null
expect 8 -R 'bad|whole' << 'END'
skipped: whole: no such tool (Debian: tool)
END
echo "reasons are shown"
