#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run_tests.sh <build folder> [argument of ctest ...]: runs the tests with ctest, whose status this has, shows what the
# failed ones printed, and ends with a line for each reason why a test was skipped, whole or in part: ctest says only
# that it was. A test gives its reason on a line "skipped: ...".
set -uo pipefail
build=${1:?usage: run_tests.sh <build folder> [argument of ctest ...]}
shift
screen=$(mktemp) || exit 2
trap 'rm -f "$screen"' EXIT

status=0
ctest --test-dir "$build" --output-on-failure --output-log "$screen" "$@" || status=$?

# LastTest.log has all that the tests printed, but it calls a skipped test a passed one.
log=$build/Testing/Temporary/LastTest.log
[ -e "$log" ] || exit $status
awk '
  FNR == NR {
    if (match($0, /Test +#[0-9]+: /) && /\*\*\*Skipped/) {
      name = substr($0, RSTART + RLENGTH)
      sub(/ .*/, "", name)
      skipped[name] = 1
    }
    next
  }
  !output && /^[0-9]+\/[0-9]+ Test: / { name = $0; sub(/^[0-9]+\/[0-9]+ Test: /, "", name) }
  /^Output:$/ { output = 1; said = 0 }
  output && /^skipped: / {
    sub(/^skipped: /, "")
    said = 1
    if (!told[name, $0]++) print (name in skipped ? "skipped: " : "skipped in part: ") name ": " $0
  }
  /^<end of output>$/ {
    output = 0
    if (name in skipped && !said) print "skipped: " name ": it gives no reason"
  }
' "$screen" "$log"
exit $status
