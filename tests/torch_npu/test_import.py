# SPDX-License-Identifier: Apache-2.0
"""Huawei's adapter finds all that it is linked with."""

import torch
import torch_npu


def test_a_device_is_found():
    assert torch_npu.__version__.startswith(torch.__version__.split('+')[0])
    assert torch.npu.is_available()


def test_there_and_back():
    x = torch.arange(24.).reshape(2, 3, 4)
    assert torch.equal(x.npu().cpu(), x)
