# SPDX-License-Identifier: Apache-2.0
# Sourced by the checks beside it with the build folder as $1. Programs run from there as they are: no compiler, no
# cmake and no installed cmocka is needed, if libcmocka.so.0 lies among them.
build=$(cd "$1" && pwd)
tests=$build/tests
export LD_LIBRARY_PATH=$build/lib64:$tests${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export POOLGRAD_TEST_PROBLEMS=$(cd "$(dirname "${BASH_SOURCE[0]}")/../problems" && pwd)
plugin=$build/lib64/libpoolgrad_cuda.so
# Test programs are not beside the library, so they would not find it there.
[ ! -e "$plugin" ] || export POOLGRAD_CUDA=${POOLGRAD_CUDA:-$plugin}

# Goes on if the library has a CUDA device, else ends the check with the library's reason. A plug-in that does not find
# the GPU that is there has failed.
need_cuda() {
  local said problem='adaptive_max_pool2d f32 i32 in=1x1x2x2 out=1x1'
  if said=$(POOLGRAD_DEVICES=cuda "$tests/test_ops_problems" "$problem" 2>&1); then return; fi
  if ! grep -q "no device: " <<< "$said" || { [ -e "$plugin" ] && nvidia-smi -L 2> /dev/null; }; then
    echo "FAILED: $said"
    exit 1
  fi
  # Of the library's sentence the cause alone.
  said=${said##*no device: } said=${said##*no device here: } said=${said%%$'\n'*}
  echo "skipped: no GPU to use: ${said%%;*} (docs/cuda.md says what is needed)"
  exit 77
}
