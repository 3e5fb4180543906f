# SPDX-License-Identifier: Apache-2.0
"""What can be seen only from outside: variables that count for a process, forks, and how a process ends. Each program runs
in a Python of its own, must end with 0 and leave nothing on stderr."""

import pathlib
import runpy

import pytest
import torch
from conftest import IS_910B, VERSION
from torch import nn

POOLS = '''
import torch, torch_npu
from torch import nn
torch.manual_seed(3)
x = torch.randn(4, 3, 33, 31)
def check(device='npu:0'):
    for module in nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(5), nn.AdaptiveMaxPool2d(4), nn.AdaptiveAvgPool2d(1):
        y, z = x.to(device).requires_grad_(), x.clone().requires_grad_()
        module(y).mul(2).sum().backward()
        module(z).mul(2).sum().backward()
        torch.testing.assert_close(y.grad.cpu(), z.grad)
'''


@pytest.mark.parametrize('mode', ('0', '1', '2'))
def test_task_queue(python, mode):
    python(POOLS + 'for _ in range(20): check()', TASK_QUEUE_ENABLE=mode)


@pytest.mark.parametrize('name, value', [('PYTORCH_NO_NPU_MEMORY_CACHING', '1'), ('ASCEND_LAUNCH_BLOCKING', '1'),
                                         ('PYTORCH_NPU_ALLOC_CONF', 'expandable_segments:True'),
                                         ('PYTORCH_NPU_ALLOC_CONF', 'max_split_size_mb:32'), ('POOLGRAD_STRICT', '1'),
                                         ('CPU_AFFINITY_CONF', '1')])
def test_variables(python, name, value):
    """Tensors are alive at the end: their memory is freed when all else is gone."""
    python(POOLS + '''
check()
kept = [torch.randn(1 << size).npu() for size in range(5, 24)]
torch.npu.empty_cache()
again = [y * 2 for y in kept]
assert all(torch.equal(z.cpu(), y.cpu() * 2) for y, z in zip(kept, again))
check()
''', **{name: value})


def test_expandable_segments_grow(python):
    python('''
import torch, torch_npu
kept = []
for turn in range(3):
    for size in range(20, 26):
        kept.append(torch.full((1 << size,), size, dtype=torch.uint8).npu())
    kept = kept[::2]
    torch.npu.empty_cache()
assert all((y.cpu() == int(y.cpu()[0])).all() for y in kept)
''', PYTORCH_NPU_ALLOC_CONF='expandable_segments:True')


def test_several_devices(python):
    python(POOLS + '''
assert torch.npu.device_count() == 3
for device in 'npu:0', 'npu:2', 'npu:1': check(device)
y = x.to('npu:1')
assert y.device.index == 1 and torch.equal(y.to('npu:2').cpu(), x)
with torch.npu.device(2):
    assert torch.empty(1, device='npu').device.index == 2
with torch.npu.stream(torch.npu.Stream(device='npu:1')):
    z = y * 2
torch.npu.synchronize('npu:1')
assert torch.equal(z.cpu(), x * 2)
''', POOLGRAD_DEVICES='cpu,cpu,cpu')


def test_workers_of_a_data_loader(python, tmp_path):
    program = '''
import torch, torch_npu
from torch import nn
from torch.utils.data import DataLoader, Dataset
class Numbers(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.full((3, 8, 8), float(i)), i
if __name__ == "__main__":
    x = torch.ones(3).npu()  # the device is in use before the workers are forked
    for context in "fork", "spawn":
        seen = []
        for images, numbers in DataLoader(Numbers(), batch_size=8, num_workers=2, pin_memory=True, multiprocessing_context=context):
            pooled = nn.functional.max_pool2d(images.to("npu", non_blocking=True), 8).cpu()
            assert pooled.shape == (8, 3, 1, 1)
            seen += pooled[:, 0, 0, 0].tolist()
        assert seen == list(range(64))
    assert torch.equal(x.cpu(), torch.ones(3))
'''
    file = tmp_path / 'loader.py'  # spawned workers import it
    file.write_text(program, encoding='utf-8')
    python('import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name="__main__")', str(file))


def test_a_forked_child_is_told(python):
    """A child of a process that uses the device cannot use it, says so, and ends in order."""
    python('''
import os, torch, torch_npu
x = torch.ones(3).npu()
child = os.fork()
if child == 0:
    try:
        torch.ones(3).npu()
    except RuntimeError as error:
        os._exit(0 if "fork" in str(error) else 1)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert torch.equal(x.cpu(), torch.ones(3))
''')


def test_a_fork_before_the_first_tensor(python):
    python('''
import os, torch, torch_npu
child = os.fork()
x = torch.arange(4.).npu()
assert torch.equal(x.cpu(), torch.arange(4.))
del x
if child == 0: os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
''')


@pytest.mark.parametrize('program', [
    'import torch_npu', 'import torch; torch.ones(3).npu()', 'import torch; x = torch.ones(3).npu(); x.cpu()',
    'import torch; x = [torch.ones(1 << i).npu() for i in range(24)]; s = torch.npu.Stream(); e = torch.npu.Event(); e.record(s)',
    'import torch; x = torch.ones(100, 100).npu(); y = [x * i for i in range(100)]',  # work is still queued
    'import torch; x = torch.nn.functional.max_pool2d(torch.randn(1, 1, 512, 512).npu().requires_grad_(), 2).sum(); x.backward()',
    'import torch, threading; threading.Thread(target=lambda: torch.ones(3).npu().cpu()).start()',
    'import torch, atexit; x = torch.ones(3).npu(); atexit.register(lambda: print(x.cpu()))',
])
def test_clean_end(python, program):
    python(program if VERSION >= (2, 5) else f'import torch_npu; {program}')


def test_example(python):
    """It prints what the CPU computes as well."""
    file = pathlib.Path(__file__).resolve().parents[2] / 'examples/npu_pooling.py'
    printed = python('import runpy, sys; runpy.run_path(sys.argv[1], run_name="__main__")', str(file))
    example, cells = runpy.run_path(str(file)), torch.tensor([1., 5, 2, 6, 9, 3, 8, 4, 7, 12, 16, 10, 13, 11, 14, 15])
    for module in nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(3):
        pooled, grad = example['gradient'](module, cells.reshape(1, 1, 4, 4), 'cpu')
        assert f'{module}\n{pooled[0, 0]}\ngradient\n{grad[0, 0]}\n' in printed


def test_end_by_an_exception(python):
    python('import torch, torch_npu; x = torch.ones(3).npu(); y = x * 2; raise SystemExit(3)', status=3)
    python('import torch, torch_npu; x = torch.ones(3).npu(); y = x * 2; 1 / 0', status=1, stderr='ZeroDivisionError')


def test_an_unknown_product(python):
    python('import torch, torch_npu; torch.ones(3).npu()', POOLGRAD_SOC='Ascend310', status=1,
           stderr='POOLGRAD_SOC')


@pytest.mark.skipif(VERSION < (2, 7), reason='it knows no Ascend950')
@pytest.mark.skipif(IS_910B, reason='said for one product is enough')
def test_the_name_without_a_variable(python):
    """Of the two products the one whose operators are all aclnn's."""
    python('''
import os
del os.environ["POOLGRAD_SOC"]
import torch, torch_npu
assert torch.equal(torch.ones(3).npu().cpu(), torch.ones(3))
assert torch.npu.get_device_name() == "Ascend950PR_9599", torch.npu.get_device_name()
''')
