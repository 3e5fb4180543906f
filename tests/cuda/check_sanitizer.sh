#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_sanitizer.sh <build folder> [tool ...]: one problem of each kind and some random ones under compute-sanitizer's
# memcheck, racecheck and initcheck.
set -euo pipefail
. "$(dirname "$0")/gpu.sh"
shift
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2> /dev/null || true)
[ -n "$sanitizer" ] || { echo "skipped: there is no compute-sanitizer here (it comes with the CUDA toolkit)"; exit 77; }
need_cuda
export POOLGRAD_DEVICES=cuda

mapfile -t problems < <(grep -vE '^(#|$)' "$POOLGRAD_TEST_PROBLEMS/small.txt")
problems+=(
  'max_pool2d f32 i64 in=2x3x60x61 kernel=3 stride=2 pad=1 index=stray data=random'
  'max_pool2d bf16 i32 in=2x3x33x47 kernel=3x5 stride=1 pad=1 nhwc index=outside'
  'adaptive_max_pool2d f16 i32 in=2x3x70x50 out=33x24 index=anywhere grad_in=gap'
  'adaptive_max_pool3d f32 i64 in=1x3x9x31x33 out=4x16x10 index=one grad_out=gap'
  'avg_pool2d f32 in=2x3x61x67 kernel=7x5 stride=2x1 pad=3x2 ceil grad_in=permuted'
  'adaptive_avg_pool3d bf16 in=2x2x11x37x29 out=5x16x11 grad_out=expand'
  'avg_pool2d f16 in=37x11x9x7 kernel=6x3 stride=5x2'
  'avg_pool2d f32 in=31x7x16x10 kernel=7 stride=7 pad=1 ceil include_pad'
  'adaptive_avg_pool3d bf16 in=41x13x4x5x5 out=1x3x3'
  'avg_pool2d bf16 in=3x20x13x11 kernel=1 stride=1 grad_out=permuted grad_in=permuted'
  'adaptive_avg_pool3d f64 in=3x5x3x7x9 out=1x1x1 grad_out=permuted grad_in=permuted'
  'max_pool2d_forward f32 i64 in=2x3x60x61 kernel=3 stride=2 pad=1 data=ties'
  'max_pool2d_forward f16 i32 in=2x24x33x47 kernel=3 stride=1 pad=1 nhwc data=specials'
  'max_pool3d_forward bf16 i32 in=2x5x9x17x19 kernel=3 stride=2 pad=1 dilation=2'
  'max_pool2d_mask_forward f16 in=2x3x31x33 kernel=5 stride=2 pad=2'
  'adaptive_max_pool2d_forward f64 i64 in=2x3x13x11 out=5x4'
  'avg_pool2d_forward f16 in=2x3x35x35 kernel=3 stride=1 pad=1 include_pad data=random'
  'avg_pool3d_forward f32 in=2x3x9x17x19 kernel=5x3x2 stride=2 pad=1 data=random'
  'adaptive_avg_pool2d_forward bf16 in=3x64x7x7 out=1x1 self=permuted grad_out=permuted'
  'avg_pool3d f32 in=1x2x7x9x11 kernel=1x2x2 stride=3x2x2')
if [ $# -eq 0 ]; then set -- memcheck racecheck initcheck; fi
failed=0
for tool in "$@"; do
  if timeout -k 10 300 "$sanitizer" --tool "$tool" --error-exitcode 9 "$tests/test_ops_problems" \
    "${problems[@]}" {1..30}
  then echo "ok $tool"
  else echo "FAILED $tool, status $?"; failed=1
  fi
done
exit $failed
