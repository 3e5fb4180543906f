# SPDX-License-Identifier: Apache-2.0
"""What users do around the operators, in one process."""

import io
import threading

import pytest
import torch
import torch_npu
from conftest import VERSION
from torch import nn


class Scaled(nn.Module):
    """A network that needs no operator but pooling and arithmetic."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.linspace(0.5, 1.5, 3).reshape(3, 1, 1))
        self.shift = nn.Parameter(torch.zeros(3, 1, 1))
        self.pool = nn.Sequential(nn.MaxPool2d(3, 2, 1), nn.ReLU(), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1))

    def forward(self, x):
        return self.pool(x * self.scale + self.shift)


def trained(device, foreach, steps=4):
    """The losses and parameters of a few steps."""
    torch.manual_seed(1)
    network = Scaled().to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3, foreach=foreach)
    x, losses = torch.randn(4, 3, 16, 16), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((network(x.to(device)) - 1) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [parameter.detach().cpu() for parameter in network.parameters()]


@pytest.mark.parametrize('foreach', (True, False))
def test_steps_of_sgd(foreach):
    for found, wanted in zip(trained('npu', foreach), trained('cpu', foreach)):
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)


def test_gradcheck():
    """In float32: float64 pooling is refused."""
    for module in nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(2), nn.MaxPool2d(2):
        x = torch.randperm(32).reshape(1, 2, 4, 4).float().npu().requires_grad_()
        assert torch.autograd.gradcheck(module, (x,), eps=1e-1, atol=1e-2, rtol=1e-2, nondet_tol=0.)


def test_pinned_memory():
    x = torch.arange(1000.).pin_memory()
    assert x.is_pinned() and not torch.arange(3.).is_pinned()
    y = x.to('npu', non_blocking=True)
    z = torch.empty(1000).pin_memory()
    z.copy_(y, non_blocking=True)
    torch.npu.synchronize()
    assert torch.equal(z, x)


def test_copies_that_do_not_wait():
    x = torch.randn(512, 512)
    y = x.to('npu', non_blocking=True)
    assert torch.equal((y * 2).to('cpu', non_blocking=False), x * 2)
    z = (y * 3).to('cpu', non_blocking=True)
    torch.npu.synchronize()
    assert torch.equal(z, x * 3)


def test_streams():
    stream, x = torch.npu.Stream(), torch.randn(8, 3, 64, 64).npu()
    assert stream != torch.npu.default_stream()
    stream.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(stream):
        assert torch.npu.current_stream() == stream
        y = nn.functional.max_pool2d(x, 2)
    torch.npu.current_stream().wait_stream(stream)
    y.record_stream(torch.npu.current_stream())
    z = y * 2
    assert torch.equal(z.cpu(), nn.functional.max_pool2d(x.cpu(), 2) * 2)
    stream.synchronize()
    assert stream.query()


def test_events_and_times():
    start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    x = torch.randn(8, 8, 128, 128).npu()
    start.record()
    for _ in range(3):
        nn.functional.avg_pool2d(x, 3)
    end.record()
    end.synchronize()
    assert end.query() and 0 < start.elapsed_time(end) < 60000
    event = torch.npu.Event()
    event.record()
    torch.npu.Stream().wait_event(event)
    torch.npu.synchronize()
    assert event.query()


def test_memory_statistics():
    torch.npu.empty_cache()
    torch.npu.reset_peak_memory_stats()
    before = torch.npu.memory_allocated()
    x = torch.empty(4 << 20, device='npu')
    assert torch.npu.memory_allocated() - before >= 16 << 20
    assert torch.npu.max_memory_allocated() >= torch.npu.memory_allocated()
    assert torch.npu.memory_reserved() >= torch.npu.memory_allocated()
    del x
    assert torch.npu.memory_allocated() == before
    torch.npu.empty_cache()
    free, total = torch.npu.mem_get_info()
    assert 0 < free <= total
    assert 'allocated' in torch.npu.memory_summary().lower() and torch.npu.memory_stats()['num_ooms'] >= 0


def test_lack_of_memory():
    with pytest.raises(RuntimeError, match='(?i)out of memory'):
        torch.empty(1 << 50, device='npu')
    assert torch.equal(torch.ones(3).npu().cpu(), torch.ones(3))


def test_save_and_load():
    x = {'weights': torch.randn(3, 4).npu(), 'steps': 7, 'half': torch.randn(5).half().npu()}
    file = io.BytesIO()
    torch.save(x, file)
    for place, device in (None, 'npu'), ('cpu', 'cpu'), ('npu:0', 'npu'):
        file.seek(0)
        y = torch.load(file, map_location=place, weights_only=False)
        assert y['weights'].device.type == device and y['steps'] == 7
        assert torch.equal(y['weights'].cpu(), x['weights'].cpu()) and torch.equal(y['half'].cpu(), x['half'].cpu())
    network, other = Scaled().npu(), Scaled().npu()
    with torch.no_grad():
        network.scale.mul_(3)
    file = io.BytesIO()
    torch.save(network.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, map_location='cpu', weights_only=False))
    assert torch.equal(other.scale.cpu(), network.scale.cpu())


def test_print():
    x = torch.arange(6.).reshape(2, 3)
    assert repr(x.npu()) == repr(x)[:-1] + ", device='npu:0')"
    for y in torch.tensor(2.5), torch.tensor(7), torch.tensor(True), torch.tensor(float('nan')), torch.tensor([1e9, 1e-9]), \
            torch.tensor([0.5, 1e5]), torch.zeros(0), torch.arange(5), torch.tensor([1.5]).half(), torch.randn(40, 40):
        suffix = ", device='npu:0'"
        text = repr(y.npu())
        assert suffix in text
        assert ''.join(text.replace(suffix, '').split()) == ''.join(repr(y).split())
    loss = (x.npu().requires_grad_() ** 2).mean()
    assert 'grad_fn' in repr(loss) and f'{loss.item():.3f}' == '9.167'
    assert f'{torch.tensor(2.5).npu():.2f}' == '2.50'


def test_assert_close_and_its_message():
    x = torch.arange(6.).reshape(2, 3).npu()
    torch.testing.assert_close(x, x + 1e-9)
    torch.testing.assert_close(x.half(), x.half())
    torch.testing.assert_close(torch.arange(3).npu(), torch.arange(3).npu())
    y = x.clone()
    y[1, 1] = 5
    with pytest.raises(AssertionError, match=r'Mismatched elements: 1 / 6[^$]*1\.0 at index \(1, 1\)'):
        torch.testing.assert_close(y, x)
    with pytest.raises(AssertionError, match='Mismatched elements: 3 / 3'):
        torch.testing.assert_close(torch.arange(3).npu(), torch.arange(3).npu() + 1)
    with pytest.raises(AssertionError, match='device'):
        torch.testing.assert_close(x, x.cpu())


def test_threads():
    """Each has its own context, streams and errors."""
    x = torch.randn(4, 3, 32, 32)
    module = nn.MaxPool2d(3, 2, 1)
    expected = module(x)
    failures = []

    def work(number):
        try:
            torch.npu.set_device(0)
            with torch.npu.stream(torch.npu.Stream()):
                for _ in range(20):
                    y = x.npu().requires_grad_()
                    z = module(y)
                    (z * number).sum().backward()
                    assert torch.equal(z.detach().cpu(), expected)
                    with pytest.raises(RuntimeError):
                        nn.functional.avg_pool2d(y.double(), 2)
        except BaseException as error:  # noqa: B902 an assertion too
            failures.append(error)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_modules_move():
    network = Scaled().npu()
    assert all(parameter.is_npu for parameter in network.parameters())
    x = torch.randn(2, 3, 16, 16)
    torch.testing.assert_close(network(x.npu()).cpu(), network.cpu()(x))
    half = Scaled().npu().half()
    assert half(x.npu().half()).dtype == torch.float16


def test_autocast():
    x = torch.randn(2, 3, 8, 8).npu()
    with torch.autocast('npu', dtype=torch.float16):
        assert nn.functional.max_pool2d(x, 2).dtype == torch.float32
        assert nn.functional.avg_pool2d(x.half(), 2).dtype == torch.float16


def test_device_properties():
    assert torch.npu.device_count() == 1 and torch.npu.current_device() == 0
    assert torch.npu.get_device_properties(0).total_memory > 0
    assert torch.npu.get_device_name(0).startswith('Ascend')
    if VERSION >= (2, 6):
        assert torch.accelerator.current_accelerator().type == 'npu'


def test_double_where_it_is_allowed():
    x = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    module = nn.AdaptiveMaxPool2d(3)
    assert torch.equal(module(x.npu()).cpu(), module(x))


def test_numbers_of_versions():
    assert torch_npu.__version__.startswith(torch.__version__.split('+')[0])
