# SPDX-License-Identifier: Apache-2.0
"""Every pooling module of torch.nn, forward and backward, against PyTorch's CPU kernels in float64."""

import numpy as np
import pytest
import torch
from conftest import FORMATS_ARE_COMPILED, IS_910B, VERSION
from torch import nn

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
# Sums are in float32 and rounded once, so a result is half a unit in the last place from the exact one, or little more.
TOLERANCE = {F32: (2e-6, 1e-6), F16: (1e-3, 1e-6), BF16: (8e-3, 1e-6)}
PLANE = {1: (23,), 2: (13, 11), 3: (7, 9, 8)}
MODULES = {1: 'MaxPool1d AvgPool1d AdaptiveMaxPool1d AdaptiveAvgPool1d', 2: 'MaxPool2d AvgPool2d AdaptiveMaxPool2d '
           'AdaptiveAvgPool2d', 3: 'MaxPool3d AvgPool3d AdaptiveMaxPool3d AdaptiveAvgPool3d'}
MAX = [dict(kernel_size=2), dict(kernel_size=3, stride=2, padding=1), dict(kernel_size=3, stride=2, ceil_mode=True),
       dict(kernel_size=2, stride=1), dict(kernel_size=5, stride=3, padding=2, ceil_mode=True), dict(kernel_size=1)]
DILATED = [dict(kernel_size=2, dilation=2), dict(kernel_size=3, stride=1, padding=1, dilation=3)]
AVERAGE = [dict(kernel_size=2), dict(kernel_size=3, stride=2, padding=1), dict(kernel_size=3, stride=2, ceil_mode=True),
           dict(kernel_size=3, stride=2, padding=1, count_include_pad=False),
           dict(kernel_size=3, stride=2, padding=1, ceil_mode=True, count_include_pad=False), dict(kernel_size=1)]
DIVISOR = [dict(kernel_size=3, stride=2, padding=1, divisor_override=7), dict(kernel_size=2, divisor_override=-1)]
UNEVEN = {2: [dict(kernel_size=(3, 2), stride=(2, 3), padding=(1, 0))],
          3: [dict(kernel_size=(3, 2, 1), stride=(2, 3, 1), padding=(1, 0, 0))]}
SIZES = {1: [5, 1, 23, 40], 2: [5, 1, (3, 7), (None, 4), (20, 1)], 3: [3, 1, (2, 4, 8), (None, 1, 3), (1, 9, 20)]}


def settings():
    """(module's name, its arguments) of all that is tried."""
    for axes in 1, 2, 3:
        maximum, average, adaptive_maximum, adaptive_average = MODULES[axes].split()
        # Ascend910B has no dilation in two and three dimensions.
        for words in MAX + UNEVEN.get(axes, []) + ([] if IS_910B else DILATED):
            yield maximum, words
        for words in AVERAGE + UNEVEN.get(axes, []) + (DIVISOR if axes > 1 else []):
            yield average, words
        for size in SIZES[axes]:
            yield adaptive_maximum, dict(output_size=size)
            yield adaptive_average, dict(output_size=size)


def name_of(value):
    return value if isinstance(value, str) else ','.join(f'{word}={given}' for word, given in value.items())


def axes_of(name):
    return int(name[-2])


def gradient(x, compute, grad):
    """The output of compute(x), and the gradient of x for that of the output."""
    x = x.detach().clone().requires_grad_()
    out = compute(x)
    out.backward(grad(out))
    return out.detach(), x.grad


def fixed_grad(out):
    """The same numbers on every device, exact in every type."""
    numbers = torch.arange(out.numel()) % 17 - 8
    return numbers.reshape(out.shape).to(out.dtype).to(out.device)


def check_values(actual, expected, dtype):
    relative, absolute = TOLERANCE[dtype]
    assert actual.dtype == dtype
    torch.testing.assert_close(actual.cpu().double(), expected, rtol=relative, atol=absolute)


def check(module, x, dtype):
    x = x.to(dtype)
    expected = gradient(x.double(), module, fixed_grad)
    actual = gradient(x.npu(), module, fixed_grad)
    for found, wanted in zip(actual, expected):
        check_values(found, wanted, dtype)


@pytest.mark.parametrize('dtype', (F32, F16, BF16), ids=str)
@pytest.mark.parametrize('name, words', list(settings()), ids=name_of)
def test_module(name, words, dtype):
    check(getattr(nn, name)(**words), torch.randn(2, 3, *PLANE[axes_of(name)]), dtype)


@pytest.mark.parametrize('name, words', [('MaxPool1d', 2), ('MaxPool2d', 2), ('MaxPool3d', 2), ('AvgPool1d', 2), ('AvgPool2d', 2),
                                         ('AvgPool3d', 2), ('AdaptiveMaxPool1d', 3), ('AdaptiveMaxPool2d', 3),
                                         ('AdaptiveMaxPool3d', 3), ('AdaptiveAvgPool1d', 3), ('AdaptiveAvgPool2d', 3),
                                         ('AdaptiveAvgPool3d', 3)])
class TestShapes:
    def test_without_a_batch(self, name, words):
        check(getattr(nn, name)(words), torch.randn(3, *PLANE[axes_of(name)]), F32)

    def test_strided(self, name, words):
        wide = torch.randn(3, 2, *PLANE[axes_of(name)], 2)[..., 1].transpose(0, 1)
        module = getattr(nn, name)(words)
        expected = gradient(wide.double(), module, fixed_grad)
        x = torch.empty(3, 2, *wide.shape[2:], 2).npu()[..., 1].transpose(0, 1)
        x.copy_(wide)
        x.requires_grad_()
        out = module(x)
        out.backward(fixed_grad(out))
        check_values(out.detach(), expected[0], F32)
        check_values(x.grad, expected[1], F32)

    def test_gradient_that_is_expanded(self, name, words):
        x = torch.randn(2, 3, *PLANE[axes_of(name)])
        def grad(out):
            return torch.tensor(2.).to(out).expand(out.shape)
        module = getattr(nn, name)(words)
        check_values(gradient(x.npu(), module, grad)[1], gradient(x.double(), module, grad)[1], F32)

    def test_empty_batch(self, name, words):
        module = getattr(nn, name)(words)
        x = torch.randn(0, 3, *PLANE[axes_of(name)])
        if IS_910B and name == 'AdaptiveAvgPool3d':  # the product refuses it
            with pytest.raises(RuntimeError, match=r'161002[^$]*self is \[0,3,7,9,8\], axis 0 must be at least 1'):
                module(x.npu())
            return
        expected = gradient(x, module, torch.ones_like)
        actual = gradient(x.npu(), module, torch.ones_like)
        assert [found.shape for found in actual] == [wanted.shape for wanted in expected]


@pytest.mark.parametrize('dtype', (F32, F16), ids=str)
@pytest.mark.parametrize('name, words', [('MaxPool1d', 2), ('MaxPool2d', 3), ('MaxPool3d', 2), ('AdaptiveMaxPool1d', 4),
                                         ('AdaptiveMaxPool2d', 4), ('AdaptiveMaxPool3d', 3)])
def test_indices(name, words, dtype):
    x = torch.randn(2, 3, *PLANE[axes_of(name)]).to(dtype)
    module = getattr(nn, name)(words, return_indices=True)
    expected, actual = module(x.double()), module(x.npu())
    assert torch.equal(actual[0].cpu().double(), expected[0])
    if name not in ('MaxPool1d', 'MaxPool2d') or not IS_910B:  # a mask, which the backward alone can read
        assert torch.equal(actual[1].cpu().long(), expected[1])


@pytest.mark.parametrize('axes', (2, 3))
def test_unpool(axes):
    x = torch.randn(2, 3, *[8] * axes)
    unpool = getattr(nn, f'MaxUnpool{axes}d')(2)
    values, indices = getattr(nn, f'MaxPool{axes}d')(2, return_indices=True)(x)
    assert torch.equal(unpool(values.npu(), indices.npu()).cpu(), unpool(values, indices))


@pytest.mark.parametrize('compute', [nn.LPPool1d(2, 3), nn.LPPool2d(2, 3, stride=2), nn.LPPool1d(1.5, 2, ceil_mode=True)])
def test_lp_pool(compute):
    x = torch.rand(2, 3, *PLANE[1 if isinstance(compute, nn.LPPool1d) else 2]) + 0.5
    expected = gradient(x.double(), compute, fixed_grad)
    actual = gradient(x.npu(), compute, fixed_grad)
    for found, wanted in zip(actual, expected):
        torch.testing.assert_close(found.cpu().double(), wanted, rtol=1e-4, atol=1e-4)


def test_fractional_pool_runs_on_the_host():
    """torch_npu has no operator for it and computes it on the CPU."""
    samples = torch.rand(2, 3, 2)
    x = torch.randn(2, 3, 9, 9)
    compute = nn.FractionalMaxPool2d(3, output_size=4, _random_samples=samples)
    on_npu = nn.FractionalMaxPool2d(3, output_size=4, _random_samples=samples.npu())
    assert torch.equal(on_npu(x.npu()).cpu(), compute(x))


@pytest.mark.parametrize('dtype', (F32, F16, BF16), ids=str)
def test_nan_and_infinity(dtype):
    x = torch.randn(1, 2, 8, 8).to(dtype)
    x[0, 0, 2, 3], x[0, 0, 5, 5], x[0, 1, 0, 0], x[0, 1, 4:6, 4:6] = float('nan'), float('inf'), float('inf'), -float('inf')
    for module in nn.MaxPool2d(2), nn.AdaptiveMaxPool2d(4), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(4):
        torch.testing.assert_close(module(x.npu()).cpu().double(), module(x.double()), rtol=8e-3, atol=1e-3, equal_nan=True)


def test_planes_that_are_large():
    x = torch.randn(1, 2, 513, 700)
    check(nn.MaxPool2d(3, 2, 1), x, F32)
    check(nn.AdaptiveAvgPool2d((100, 7)), x, F32)


@pytest.mark.skipif(not IS_910B, reason='the other product has no masks')
@pytest.mark.parametrize('dtype', (F32, F16, BF16), ids=str)
def test_every_byte_of_the_mask(dtype):
    """The same call leaves the same bytes, whatever the memory held: the container is longer than its indices."""
    x = torch.randn(2, 3, 13, 11).to(dtype).npu()
    call = torch.ops.aten.max_pool2d_with_indices
    out, mask = call(x, [3, 3], [2, 2], [1, 1], [1, 1], False)
    for before in 0, -1:
        blocks = [torch.full(mask.shape, before, dtype=torch.int8).npu() for _ in range(7)]
        holes = [blocks[i].data_ptr() for i in (1, 3, 5)]
        del blocks[5], blocks[3], blocks[1]  # the caching allocator takes those that fit best
        again = call(x, [3, 3], [2, 2], [1, 1], [1, 1], False)
        assert again[1].data_ptr() in holes
        assert torch.equal(again[0].cpu(), out.cpu()) and torch.equal(again[1].cpu(), mask.cpu())
        del again, blocks
    grad = torch.ops.aten.max_pool2d_with_indices_backward(torch.ones_like(out), x, [3, 3], [2, 2], [1, 1], [1, 1], False,
                                                           mask)
    expected = gradient(x.cpu().double(), nn.MaxPool2d(3, 2, 1), torch.ones_like)
    check_values(grad, expected[1], dtype)


@pytest.mark.skipif(VERSION < (2, 7), reason='an older torch_npu has no such switch')
def test_compatible_implementations(python):
    """max_pool2d with indices under Ascend910B as well."""
    python('''
import torch, torch_npu
torch_npu.npu.use_compatible_impl(True)
x = torch.randn(2, 3, 9, 9)
out, indices = torch.nn.MaxPool2d(3, 2, return_indices=True)(x.npu())
expected = torch.nn.MaxPool2d(3, 2, return_indices=True)(x)
assert torch.equal(out.cpu(), expected[0]) and torch.equal(indices.cpu().long(), expected[1])
y = x.npu().requires_grad_()
torch.nn.MaxPool2d(3, 2)(y).sum().backward()
x.requires_grad_()
torch.nn.MaxPool2d(3, 2)(x).sum().backward()
assert torch.equal(y.grad.cpu(), x.grad)
''')


@pytest.mark.parametrize('dtype', (np.float32, np.float16))
def test_as_op_plugin_tests(dtype):
    """With the tools of torch_npu.testing, with which its own tests are written."""
    from torch_npu.testing.common_utils import create_common_tensor
    from torch_npu.testing.testcase import TestCase
    case = TestCase()
    for number in (-1, 0, 2) if FORMATS_ARE_COMPILED else (-1, 0, 2, 3, 4, 29):
        on_cpu, on_npu = create_common_tensor([dtype, number, (2, 3, 16, 16)], 0, 100)
        for module in nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d((3, 5)), nn.AdaptiveMaxPool2d(3):
            expected = gradient(on_cpu.float(), module, torch.ones_like)
            for found, wanted in zip(gradient(on_npu, module, torch.ones_like), expected):
                case.assertRtolEqual(wanted.numpy().astype(dtype), found.cpu().numpy())
    with pytest.raises(AssertionError):
        case.assertRtolEqual(np.ones(3, dtype), np.full(3, 2, dtype))
