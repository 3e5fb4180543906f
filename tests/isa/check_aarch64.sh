#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_aarch64.sh: builds all for aarch64 and runs under qemu what could depend on the processor: every kernel set,
# halves, the floating-point mode, the checks. Plain C, which x86-64 tests, is left out, and so are streams and faults:
# qemu has this machine's memory order, so little would be learnt. "make test PRESET=aarch64" runs them all.
set -euo pipefail
cd "$(dirname "$0")/../.."

skip() {
  echo "skipped: aarch64: $*"
  exit 0
}
[ "$(uname -m)" != aarch64 ] || skip "this machine is one, and make test has tested it"
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
  command -v $tool > /dev/null || skip "there is no $tool here (make deps WHAT=aarch64)"
done
for file in crt1.o libcmocka.so; do
  [ -e "$(aarch64-linux-gnu-gcc -print-file-name=$file)" ] ||
    skip "there is no $file for it here (make deps WHAT=aarch64)"
done

jobs=${JOBS:-$(nproc)}
cmake --preset aarch64 > /dev/null
cmake --build build/aarch64 --parallel "$jobs" > /dev/null
# test_ops_problems and test_ops_random run once for each kernel set, as isa_*.
ctest --test-dir build/aarch64 --output-on-failure --parallel "$jobs" \
  -E '^(test_(runtime_.*|faults_.*|ops_(problems|random|large))|isa_scalar)$'
