# SPDX-License-Identifier: Apache-2.0
"""What cannot be computed raises at once, in words that say why; and what is computed after it is right."""

import pytest
import torch
from conftest import IS_910B, MASKS_ARE_FILLED, no_operator
from torch import nn

@pytest.mark.parametrize('name, compute', [('Sin', torch.sin), ('Erfinv', torch.erfinv), ('Sinh', torch.sinh),
                                           ('Cumsum', lambda x: torch.cumsum(x, 0))])
def test_an_operator_that_does_not_exist(name, compute):
    x = torch.randn(3, 4).npu()
    for _ in range(3):
        with pytest.raises(RuntimeError, match=no_operator(name)):
            compute(x)


def assign(x, place, value):
    x[place] = value


# x[mask] looks for the positions first, and finds out that it needs them after it has found that aclnnIndex exists.
@pytest.mark.parametrize('name, compute', [
    ('Nonzero', lambda x, mask, index: torch.nonzero(mask)), ('Index', lambda x, mask, index: x[mask]),
    ('Index', lambda x, mask, index: x[index]), ('Index', lambda x, mask, index: x[:, index]),
    ('IndexSelect', lambda x, mask, index: x.index_select(1, index)),
    ('NonzeroV2', lambda x, mask, index: assign(x, mask, torch.ones(int(mask.sum())).npu()))])
def test_indices_and_masks(name, compute):
    x = torch.arange(12.).reshape(3, 4)
    on_npu = x.npu()
    with pytest.raises(RuntimeError, match=no_operator(name)):
        compute(on_npu, (x > 5).npu(), torch.tensor([2, 0]).npu())
    assert torch.equal(on_npu.cpu(), x)


@pytest.mark.skipif(MASKS_ARE_FILLED, reason='see test_operators.py')
def test_a_number_for_a_mask():
    x = torch.arange(12.).reshape(3, 4)
    y = x.npu()
    with pytest.raises(RuntimeError, match=no_operator('NonzeroV2')):
        y[y > 5] = 2
    assert torch.equal(y.cpu(), x)


def test_a_value_for_indices():
    x = torch.arange(12.).reshape(3, 4)
    for place in torch.tensor([2, 0]).npu(), (slice(None), torch.tensor([1]).npu()):
        for value in 2., torch.ones(1).npu():
            y = x.npu()
            with pytest.raises(RuntimeError, match='561003[^$]*aclnnIndexPutImpl[^$]*cannot be written by their indices'):
                y[place] = value
            assert torch.equal(y.cpu(), x)


def test_later_results_are_right():
    """Where a refusal came late, torch_npu would leave out operators from then on."""
    x = torch.randn(2, 3, 9, 9)
    expected = x.clone().requires_grad_()
    nn.functional.max_pool2d(expected * 3, 3, 2).sum().backward()
    for _ in range(10):
        y = x.npu().requires_grad_()
        z = nn.functional.max_pool2d(y * 3, 3, 2)
        with pytest.raises(RuntimeError):
            torch.sin(z)
        with pytest.raises(RuntimeError):
            torch.sin(y.detach()).sum()
        z.sum().backward()
        assert torch.equal(y.grad.cpu(), expected.grad)


@pytest.mark.parametrize('mode', ('0', '1', '2'))
def test_in_every_mode_of_the_task_queue(python, mode):
    python('''
import torch, torch_npu
x = torch.randn(2, 3, 9, 9)
expected = x.clone().requires_grad_()
torch.nn.functional.max_pool2d(expected, 3, 2).sum().backward()
for turn in range(5):
    y = x.npu().requires_grad_()
    z = torch.nn.functional.max_pool2d(y, 3, 2)
    try:
        torch.sin(z)
    except RuntimeError as error:
        assert "aclnn" in str(error)
    else:
        raise SystemExit("torch.sin did not raise")
    z.sum().backward()
    assert torch.equal(y.grad.cpu(), expected.grad)
''', TASK_QUEUE_ENABLE=mode)


def test_channels_last():
    """torch_npu refuses the memory format itself, before anything reaches the library."""
    with pytest.raises(RuntimeError, match='(?i)channels.last|contiguous_format'):
        nn.functional.max_pool2d(torch.randn(2, 3, 8, 8).npu().to(memory_format=torch.channels_last), 2)


@pytest.mark.parametrize('module', [nn.MaxPool2d(2), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(3), nn.MaxPool3d(2),
                                    nn.AvgPool3d(2)], ids=str)
def test_double(module):
    x = torch.randn(2, 3, *[8] * (3 if '3d' in str(module) else 2), dtype=torch.float64).npu()
    with pytest.raises(RuntimeError, match='161002[^$]*(DOUBLE|FLOAT16)'):
        module(x)


def test_whole_numbers():
    with pytest.raises(RuntimeError, match='(?i)161002|not implemented|not support'):
        nn.functional.avg_pool2d(torch.ones(1, 1, 8, 8, dtype=torch.int32).npu(), 2)


@pytest.mark.skipif(not IS_910B, reason='the other product has dilation')
@pytest.mark.parametrize('module', [nn.MaxPool2d(2, dilation=2), nn.MaxPool3d(2, dilation=2)], ids=str)
def test_dilation_on_a_product_without(module):
    with pytest.raises(RuntimeError, match='(?i)dilation'):
        module(torch.randn(1, 1, *[9] * (3 if '3d' in str(module) else 2)).npu())


def test_the_sentence_and_the_code():
    """The first error of a thread as well, after calls that only ask whether a device was set."""
    with pytest.raises(RuntimeError) as caught:
        nn.functional.avg_pool2d(torch.randn(1, 1, 8, 8, dtype=torch.float64).npu(), 2)
    text = str(caught.value)
    assert 'aclnnAvgPool2d' in text and 'DOUBLE' in text and '161002' in text and '107002' not in text


def test_arguments_that_torch_checks():
    x = torch.randn(1, 1, 8, 8).npu()
    for words in dict(kernel_size=2, padding=2), dict(kernel_size=0), dict(kernel_size=9):
        with pytest.raises(RuntimeError):
            nn.functional.max_pool2d(x, **words)
    with pytest.raises(RuntimeError):
        nn.functional.avg_pool2d(x, 2, divisor_override=0)


def test_indices_outside_the_plane(capfd):
    """They are dropped and reported, as on the CPU device alone."""
    x = torch.randn(1, 1, 4, 4).npu()
    index = torch.tensor([[[[99]]]]).npu()
    grad = torch.ops.aten.adaptive_max_pool2d_backward(torch.ones(1, 1, 1, 1).npu(), x, index)
    assert not grad.cpu().any()
    assert '99' in capfd.readouterr().err


def test_collectives(python):
    assert 'refused' in python('''
import os, torch, torch_npu
import torch.distributed as dist
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
dist.init_process_group("hccl", rank=0, world_size=1)
try:
    dist.all_reduce(torch.ones(3).npu())
    torch.npu.synchronize()
except RuntimeError as error:
    print("refused", error)
''', stderr='')
