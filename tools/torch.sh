#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# torch.sh: puts the newest PyTorch of PyPI into build/torch, a virtual environment, for `make bench`.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ ! -x build/torch/bin/python ]; then
  echo "PyTorch: downloads about 3 GB (it brings NVIDIA's libraries) and takes about 6 GB in build/torch"
  bash tools/deps.sh docs # python3-venv
  mkdir -p build
  python3 -m venv build/torch
fi
build/torch/bin/python -m pip install --quiet --disable-pip-version-check --upgrade torch numpy
build/torch/bin/python -c 'import torch; print("PyTorch", torch.__version__, "in build/torch")'
