#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_baseline.sh <folder of the test programs>: the x86-64 programs as built, on the oldest x86-64 processor that
# qemu has, where one instruction of a later one ends the program. The same part as check_aarch64.sh: streams are left
# out, and with them failing requests and wrong calls, which do not depend on the processor, and what only takes long.
set -euo pipefail
programs=$(cd "${1:?usage: check_baseline.sh <folder of the test programs>}" && pwd)
cd "$(dirname "$0")/../.."

skip() {
  echo "skipped: baseline: $*"
  exit 0
}
[ "$(uname -m)" = x86_64 ] || skip "the programs are for another processor"
command -v qemu-x86_64 > /dev/null || skip "there is no qemu-x86_64 here (make deps WHAT=ci)"
export cpu=Opteron_G1 # of 2003: no SSE3, no POPCNT, no AVX
# Emulated threads take turns badly on few cores: two are enough to share the work of a kernel.
export POOLGRAD_THREADS=2

# If the emulator let this through, the rest would show nothing.
problem='adaptive_max_pool2d f32 i32 in=1x1x2x2 out=1x1'
if POOLGRAD_ISA=avx2 qemu-x86_64 -cpu $cpu "$programs/test_ops_problems" "$problem" > /dev/null 2>&1; then
  echo "baseline: the emulated $cpu has AVX2" >&2
  exit 1
fi

log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
export log
run() {  # run <program> [argument...]: shows the output only of what fails
  local name
  name=$(basename "$1")
  timeout 300 qemu-x86_64 -cpu "$cpu" "$@" > "$log/$name" 2>&1 && return
  { cat "$log/$name"; echo "baseline: $name failed"; } >&2
  return 1
}
export -f run

# All the problems are for make test; here each kind of kernel is enough.
mapfile -t problems < <(grep -hvE '^(#|$)' tests/problems/{small,specials,tails}.txt)
run "$programs/test_ops_problems" "${problems[@]}"
find "$programs" -maxdepth 1 -name 'test_*' -type f -executable | sort |
  grep -vE '/test_(faults_.*|runtime_.*|cuda_.*|ops_(bad_.*|problems|random|large))$' > "$log/programs"
xargs -P "${JOBS:-$(nproc)}" -I{} bash -c 'run {}' < "$log/programs"
echo "baseline ok: $(wc -l < "$log/programs") programs, ${#problems[@]} problems on $cpu"
