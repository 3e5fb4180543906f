#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pooling on an NPU with PyTorch, forward and backward, beside the same on the CPU.

PyTorch and Huawei's torch_npu are needed, and CANN or poolgrad beneath them; nothing here is different on a card. With
poolgrad it runs where no card is: docs/torch_npu.md says how.
"""

import torch
import torch_npu  # noqa: F401  makes the device "npu" known
from torch import nn


def gradient(module, cells, device):
    """What the module computes on that device, and the gradient of the sum of its squares."""
    x = cells.to(device, copy=True).requires_grad_()
    pooled = module(x)
    (pooled ** 2).sum().backward()
    return pooled.detach().cpu(), x.grad.cpu()


def main():
    print(f'PyTorch {torch.__version__} on {torch.npu.get_device_name()}')
    cells = torch.tensor([[1., 5, 2, 6], [9, 3, 8, 4], [7, 12, 16, 10], [13, 11, 14, 15]]).reshape(1, 1, 4, 4)
    for module in nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(3):
        pooled, grad = gradient(module, cells, 'npu')
        print(f'\n{module}\n{pooled[0, 0]}\ngradient\n{grad[0, 0]}')

    images, apart = torch.randn(8, 16, 56, 56), 0.
    for module in nn.MaxPool2d(3, stride=2, padding=1), nn.AdaptiveAvgPool2d(7):
        for found, expected in zip(gradient(module, images, 'npu'), gradient(module, images, 'cpu')):
            apart = max(apart, (found - expected).abs().max().item())
    print(f'\nlargest difference from the CPU: {apart:.1g}')
    return 0 if apart < 1e-5 else 1


if __name__ == '__main__':
    raise SystemExit(main())
