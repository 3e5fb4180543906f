# SPDX-License-Identifier: Apache-2.0
"""What users do around the operators, in one process."""

import copy
import io
import pickle
import re
import threading

import pytest
import torch
import torch_npu
from conftest import IS_910B, MASKS_ARE_FILLED, VERSION, no_operator
from torch import nn
from torch.utils.checkpoint import checkpoint


class Scaled(nn.Module):
    """A network that needs no operator but pooling and arithmetic."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.linspace(0.5, 1.5, 3).reshape(3, 1, 1))
        self.shift = nn.Parameter(torch.zeros(3, 1, 1))
        self.pool = nn.Sequential(nn.MaxPool2d(3, 2, 1), nn.ReLU(), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1))

    def forward(self, x):
        return self.pool(x * self.scale + self.shift)


def trained(device, steps=4, **words):
    """The losses and parameters of a few steps."""
    torch.manual_seed(1)
    network = Scaled().to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, **words)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    x, losses = torch.randn(4, 3, 16, 16), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((network(x.to(device)) - 1) ** 2).mean()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses, [parameter.detach().cpu() for parameter in network.parameters()]


@pytest.mark.parametrize('foreach', (None, True, False))
@pytest.mark.parametrize('words', [dict(), dict(momentum=0.9, weight_decay=1e-3), dict(momentum=0.9, dampening=0.1),
                                   dict(momentum=0.9, nesterov=True)], ids=str)
def test_steps_of_sgd(words, foreach):
    words = dict(words, foreach=foreach)
    for found, wanted in zip(trained('npu', **words), trained('cpu', **words)):
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize('foreach', (None, True, False))
def test_gradients_set_to_zero(foreach):
    parameter = nn.Parameter(torch.ones(3).npu())
    optimizer = torch.optim.SGD([parameter], lr=0.1, foreach=foreach)
    (parameter * 2).sum().backward()
    if foreach and not IS_910B:  # with the other names torch_npu takes one tensor after the other
        with pytest.raises(RuntimeError, match=no_operator('ForeachZeroInplace')):
            optimizer.zero_grad(set_to_none=False)
        return
    optimizer.zero_grad(set_to_none=False)
    assert torch.equal(parameter.grad.cpu(), torch.zeros(3))


def test_gradcheck():
    """In float32: float64 pooling is refused."""
    for module in nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(2), nn.MaxPool2d(2):
        x = torch.randperm(32).reshape(1, 2, 4, 4).float().npu().requires_grad_()
        assert torch.autograd.gradcheck(module, (x,), eps=1e-1, atol=1e-2, rtol=1e-2, nondet_tol=0.)


def test_second_derivatives():
    """Averages alone: with an Ascend910B name torch_npu gathers by the mask as if it were indices, which is refused."""
    modules = [nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(2)] + ([] if IS_910B else [nn.MaxPool2d(2)])
    for module in modules:
        x, results = torch.randperm(32).reshape(1, 2, 4, 4).float(), []
        assert torch.autograd.gradgradcheck(module, (x.npu().requires_grad_(),), eps=1e-1, atol=1e-1, rtol=1e-1)
        for device in 'cpu', 'npu':
            y = x.to(device, copy=True).requires_grad_()
            grad, = torch.autograd.grad((module(y) ** 2).sum(), y, create_graph=True)
            (grad ** 2).sum().backward()
            results.append(y.grad.cpu())
        torch.testing.assert_close(*results)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


def test_ways_through_autograd():
    """Hooks, functions of one's own, graphs that are used twice, checkpoints, anomalies."""
    def run(device):
        x = torch.linspace(-1, 1, 64).reshape(1, 1, 8, 8).to(device).requires_grad_()
        handle = x.register_hook(lambda grad: grad * 3)
        loss = nn.functional.max_pool2d(Doubled.apply(x), 2).sum()
        loss.backward(retain_graph=True)
        loss.backward()
        handle.remove()
        checkpoint(lambda y: nn.functional.avg_pool2d(y, 2) * 2, x, use_reentrant=False).sum().backward()
        with torch.autograd.detect_anomaly(check_nan=False):
            nn.functional.adaptive_avg_pool2d(x, 3).sum().backward()
        return x.grad.cpu()
    torch.testing.assert_close(run('npu'), run('cpu'))
    with torch.no_grad():
        assert not (torch.ones(3).npu().requires_grad_() * 2).requires_grad
    with torch.inference_mode():
        assert torch.equal((torch.ones(3).npu() * 2).cpu(), torch.full((3,), 2.))


def test_deterministic_algorithms():
    x = torch.randn(2, 3, 8, 8).npu().requires_grad_()
    torch.use_deterministic_algorithms(True)
    try:
        for module in nn.MaxPool2d(3, 2), nn.AdaptiveMaxPool2d(3), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(3):
            module(x).sum().backward()
    finally:
        torch.use_deterministic_algorithms(False)


def test_several_pools_of_one_input():
    """Spatial pyramid pooling, and the mean along the axes of an image."""
    x, results = torch.randn(2, 3, 9, 9), []
    for device in 'cpu', 'npu':
        y = x.to(device, copy=True).requires_grad_()
        pyramid = torch.cat([nn.functional.adaptive_max_pool2d(y, size).flatten(1) for size in (1, 2, 4)], 1)
        both = torch.cat([nn.functional.max_pool2d(y, 2), nn.functional.avg_pool2d(y, 2)], 1)
        (pyramid.sum() + both.mean() + y.mean((2, 3)).sum()).backward()
        results.append((pyramid.detach().cpu(), both.detach().cpu(), y.grad.cpu()))
    for expected, actual in zip(*results):
        torch.testing.assert_close(actual, expected)


def test_copies_of_modules():
    network, x = Scaled().npu(), torch.randn(2, 3, 16, 16).npu()
    pickled = pickle.loads(pickle.dumps(network))
    # torch_npu 2.9 puts what was pickled on the host.
    found = {parameter.device.type for parameter in pickled.parameters()}
    assert found == {'cpu' if (2, 9) <= VERSION < (2, 10) else 'npu'}
    for other in copy.deepcopy(network), pickled.npu():
        assert all(parameter.is_npu for parameter in other.parameters())
        assert torch.equal(other(x).cpu(), network(x).cpu())


def test_compiled():
    """What Inductor makes needs Triton for NPUs. Dynamo and AOTAutograd do not."""
    x = torch.randn(2, 3, 8, 8)
    module = nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d(2))
    for compiled in torch.jit.trace(module, x.npu()), torch.jit.script(module):
        torch.testing.assert_close(compiled(x.npu()).cpu(), module(x))
    for backend in 'eager', 'aot_eager':
        y = x.npu().requires_grad_()
        torch.compile(module, backend=backend)(y).sum().backward()
        z = x.clone().requires_grad_()
        module(z).sum().backward()
        assert torch.equal(y.grad.cpu(), z.grad)


def test_profiler_of_torch():
    """On the side of the host. torch_npu's own profiler says that it finds no function of CANN for it, and goes on."""
    x = torch.randn(2, 3, 8, 8).npu()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        nn.functional.max_pool2d(x, 2)
    assert 'aten::max_pool2d' in profile.key_averages().table()


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


def test_limits_and_records_of_memory():
    torch.npu.empty_cache()
    x = torch.ones(1 << 20).npu()
    assert any(segment['total_size'] >= 4 << 20 for segment in torch.npu.memory_snapshot())
    torch.npu.reset_accumulated_memory_stats()
    _, total = torch.npu.mem_get_info()
    torch.npu.set_per_process_memory_fraction(0.5)
    try:
        with pytest.raises(RuntimeError, match='(?i)out of memory'):
            torch.empty(total * 3 // 4, dtype=torch.uint8, device='npu')
    finally:
        torch.npu.set_per_process_memory_fraction(1.)
    assert torch.equal(x.cpu(), torch.ones(1 << 20))


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
        text, on_npu = repr(y.npu()), re.compile(r",\s*device='npu:0'")  # on a line of its own where there are many
        assert on_npu.search(text)
        assert ''.join(on_npu.sub('', text).split()) == ''.join(repr(y).split())
    loss = (x.npu().requires_grad_() ** 2).mean()
    assert 'grad_fn' in repr(loss) and f'{loss.item():.3f}' == '9.167'
    assert f'{torch.tensor(2.5).npu():.2f}' == '2.50'


def test_assert_close_and_its_message():
    x = torch.arange(6.).reshape(2, 3).npu()
    torch.testing.assert_close(x, x + 1e-9)
    torch.testing.assert_close(x.half(), x.half())
    torch.testing.assert_close(torch.arange(3).npu(), torch.arange(3).npu())
    with pytest.raises(AssertionError, match='device'):
        torch.testing.assert_close(x, x.cpu())
    y = x.clone()
    y[1, 1] = 5
    if not MASKS_ARE_FILLED:  # PyTorch fills by a mask before it says how much the others differ
        with pytest.raises(RuntimeError, match='unexpected exception') as caught:
            torch.testing.assert_close(y, x)
        assert no_operator('NonzeroV2') in str(caught.value.__cause__)
        return
    with pytest.raises(AssertionError, match=r'Mismatched elements: 1 / 6[^$]*1\.0 at index \(1, 1\)'):
        torch.testing.assert_close(y, x)
    for dtype in torch.float16, torch.bfloat16, torch.int8, torch.int32, torch.int64, torch.uint8, torch.bool:
        y, messages = torch.tensor([[0, 1, 0], [1, 0, 0]]).to(dtype), []
        for device in 'cpu', 'npu':
            with pytest.raises(AssertionError) as caught:
                torch.testing.assert_close(y.to(device), torch.zeros(2, 3, dtype=dtype).to(device))
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


def test_threads():
    """Each has its own context, streams and errors."""
    x = torch.randn(4, 3, 32, 32)
    module = nn.MaxPool2d(3, 2, 1)
    expected = module(x)
    failures = []

    def work(number):
        try:
            torch.npu.set_device(0)
            wrong = x.double().npu()
            with torch.npu.stream(torch.npu.Stream()):
                for _ in range(20):
                    y = x.npu().requires_grad_()
                    z = module(y)
                    (z * number).sum().backward()
                    assert torch.equal(z.detach().cpu(), expected)
                    with pytest.raises(RuntimeError, match='161002'):
                        nn.functional.avg_pool2d(wrong, 2)
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
