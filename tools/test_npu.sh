#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_npu.sh <installed tree> <version of torch> [argument of pytest ...]: runs tests/torch_npu with Huawei's adapter for
# PyTorch, in the environment that npu_env.py makes, once for each product whose name that version knows. Where the
# environment cannot be made the tests are skipped, with a word.
set -euo pipefail
prefix=$(cd "${1:?usage: test_npu.sh <installed tree> <version of torch> [argument of pytest ...]}" && pwd)
version=${2:?usage: test_npu.sh <installed tree> <version of torch> [argument of pytest ...]}
shift 2
cd "$(dirname "$0")/.."

# Ascend910B1 is known to all. 2.6 and older know no Ascend950.
products=(Ascend910B1)
case $version in
  2.1.* | 2.6.*) ;;
  *) products+=(Ascend950PR_9599) ;;
esac

status=0
python=$(python3 tools/npu_env.py "$version") || status=$?
[ $status -ne 77 ] || exit 0
[ $status -eq 0 ] || exit $status

# Only what set_env.sh says may count.
unset LD_LIBRARY_PATH ASCEND_HOME_PATH ASCEND_TOOLKIT_HOME ASCEND_OPP_PATH
. "$prefix/set_env.sh"
export PYTHONDONTWRITEBYTECODE=1
for product in ${POOLGRAD_SOC:-"${products[@]}"}; do
  echo "torch $version on $product"
  POOLGRAD_SOC=$product "$python" -m pytest -q -p no:cacheprovider tests/torch_npu "$@" || status=1
done
exit $status
