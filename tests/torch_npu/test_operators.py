# SPDX-License-Identifier: Apache-2.0
"""What programs with pooling call besides, by its spellings in PyTorch: copies, arithmetic, comparisons, reductions,
random numbers. Each is compared with PyTorch's CPU, on operands that are dense, strided, expanded and empty."""

import itertools

import pytest
import torch
import torch_npu
from conftest import FORMATS_ARE_COMPILED, MASKS_ARE_FILLED

F64, F32, F16, BF16 = torch.float64, torch.float32, torch.float16, torch.bfloat16
I8, I32, I64, BOOL = torch.int8, torch.int32, torch.int64, torch.bool
FLOATS, WHOLE = (F32, F16, BF16), (I32, I64)
ALL = (F64, *FLOATS, I8, *WHOLE, BOOL)


def made(dtype, *shape):
    """Numbers that every type has, also negative ones and zeros."""
    numbers = torch.randint(-7, 8, shape)
    return numbers.to(dtype) if not dtype.is_floating_point else (numbers / 4).to(dtype)


LAYOUTS = {
    'dense': lambda x: x,
    'transposed': lambda x: x.transpose(0, -1),
    'steps': lambda x: x[:, 1::2],
    'expanded': lambda x: x[:, :1].expand(x.shape),
    'part': lambda x: x[1:, 2:, :-1],
    'empty': lambda x: x[:0],
    'scalar': lambda x: x[0, 0, 0],
}


def made_on_npu(x):
    """The same view of the same memory, on the device."""
    base = x._base if x._base is not None else x
    return base.npu().as_strided(x.shape, x.stride(), x.storage_offset())


def equal(actual, expected):
    """The same values, type and shape."""
    assert actual.device.type == 'npu' and expected.device.type == 'cpu'
    torch.testing.assert_close(actual.cpu(), expected, rtol=0, atol=0, equal_nan=True)


def near(actual, expected):
    torch.testing.assert_close(actual.cpu(), expected, equal_nan=True)


def both(compute, *operands, layout='dense', compare=equal):
    """compute of the operands on both devices; the views are made on the device that computes."""
    view = LAYOUTS[layout]
    compare(compute(*(view(x.npu()) for x in operands)), compute(*(view(x) for x in operands)))


layouts = pytest.mark.parametrize('layout', LAYOUTS)
floats = pytest.mark.parametrize('dtype', FLOATS, ids=str)
numbers = pytest.mark.parametrize('dtype', (*FLOATS, *WHOLE), ids=str)


# --- copies -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('source, target', list(itertools.product(ALL, ALL)), ids=str)
def test_conversion(source, target):
    x = made(source, 4, 5, 6).transpose(0, -1)
    # torch_npu itself makes float32 of float64 where a tensor on the device is converted, and warns of it.
    found = F32 if target == F64 and source != F64 else target
    equal(made_on_npu(x).to(target), x.to(found))


@pytest.mark.parametrize('source, target', [(F32, F16), (F32, BF16), (F64, F32), (F64, F16), (F64, BF16)], ids=str)
def test_conversion_rounds(source, target):
    both(lambda x: x.to(target), torch.randn(1000, dtype=source) * torch.tensor(10., dtype=source) ** torch.randint(-9, 6, (1000,)))


@pytest.mark.parametrize('dtype', ALL, ids=str)
@layouts
def test_copies(layout, dtype):
    x = made(dtype, 4, 6, 8)
    both(lambda x: x.clone(), x, layout=layout)
    both(lambda x: x.contiguous(), x, layout=layout)
    equal(LAYOUTS[layout](x.npu()), LAYOUTS[layout](x))  # a copy to the host


@pytest.mark.parametrize('dtype', ALL, ids=str)
def test_copies_into_a_view(dtype):
    source, small = made(dtype, 4, 6), made(F32, 6)
    for view in (lambda x: x[:, ::2]), (lambda x: x.t()[:4, :6]), (lambda x: x[1:5, 3:9]):
        expected, actual = torch.zeros(6, 12, dtype=dtype), torch.zeros(6, 12, dtype=dtype).npu()
        for x, rows in (expected, source), (actual, source.npu()):
            window = view(x)
            window.copy_(rows[:window.shape[0], :window.shape[1]] if window.shape != (6, 6) else rows[:1, :].expand(6, 6))
        equal(actual, expected)
        view(actual).copy_(small.npu()[0])  # one value of another type
        view(expected).copy_(small[0])
        equal(actual, expected)
        view(actual).copy_(view(made(dtype, 6, 12)))  # from the host
    x = torch.arange(24.).npu()
    x[:12].copy_(x[12:])
    equal(x, torch.arange(12., 24.).repeat(2))


def test_item_and_lists():
    assert torch.tensor(2.5).npu().item() == 2.5 and int(torch.tensor(7).npu()) == 7 and bool(torch.tensor(True).npu())
    assert torch.arange(4).npu().tolist() == [0, 1, 2, 3]
    assert torch.arange(4.).npu().reshape(2, 2).t().cpu().numpy().tolist() == [[0, 2], [1, 3]]
    x = torch.arange(12.).reshape(3, 4).npu()
    assert x[1, 2].item() == 6 and x[:, 1].tolist() == [1, 5, 9]


VIEWS = {
    'permute': lambda x: x.permute(2, 0, 1), 'transpose': lambda x: x.mT, 'view': lambda x: x.view(6, -1),
    'flatten': lambda x: x.flatten(1), 'expand': lambda x: x[:1].expand(3, 6, 8), 'narrow': lambda x: x.narrow(1, 1, 3),
    'slice': lambda x: x[1:, ::2, -3:], 'select': lambda x: x[-1], 'none': lambda x: x[:, None, ..., 0],
    'unfold': lambda x: x.unfold(1, 3, 2), 'diagonal': lambda x: x.diagonal(), 'squeeze': lambda x: x[:, :1].squeeze(1),
    'split': lambda x: x.split(4, 1)[1], 'chunk': lambda x: x.chunk(3, 2)[2], 'unbind': lambda x: x.unbind(1)[2],
}


@pytest.mark.parametrize('view', VIEWS)
def test_views(view):
    """Nothing is computed for them, but what follows reads through them."""
    both(lambda x: VIEWS[view](x), made(F32, 4, 6, 8))
    both(lambda x: VIEWS[view](x) * 2, made(F32, 4, 6, 8))
    both(lambda x: VIEWS[view](x).contiguous(), made(I64, 4, 6, 8))


@pytest.mark.parametrize('dtype', ALL, ids=str)
def test_joins(dtype):
    x, y = made(dtype, 4, 6, 8), made(dtype, 4, 6, 8)
    for dim in 0, 1, -1:
        both(lambda x, y: torch.cat([x, y], dim), x, y)
        both(lambda x, y: torch.stack([x, y, x], dim), x, y)
    both(lambda x, y: torch.cat([x.mT, y[:, :5].transpose(1, 2)], 2), x, y)
    both(lambda x, y: torch.hstack([x, y]), x, y)
    both(lambda x: torch.cat([x[:, :3], x[:, :0], x[:, 3:]], 1), x)
    both(lambda x: torch.cat([x] * 70), x)


def test_joins_of_types_that_differ():
    both(lambda x, y: torch.cat([x, y]), made(F32, 4, 6), made(F16, 3, 6))
    both(lambda x, y: torch.cat([x, y], 1), made(I32, 4, 6), made(F32, 4, 2))


def test_assignments():
    x, y = made(F32, 4, 6), made(F16, 4, 6)
    on_npu = x.npu()
    for z, other in (x, y), (on_npu, y.npu()):
        z[1:, ::2] = 5
        z[0] = z[1]
        z[:, 1] += 2
        z[2, 3] = torch.tensor(9.)
        z[2:, :] = other[:2]
        z[..., -1] = other[0, 0]
    equal(on_npu, x)


# --- values -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('dtype', (F32, F16, BF16, F64, I32, I64, BOOL, I8), ids=str)
def test_fills(dtype):
    npu = dict(dtype=dtype, device='npu')
    equal(torch.zeros(3, 5, **npu), torch.zeros(3, 5, dtype=dtype))
    equal(torch.ones(3, 5, **npu), torch.ones(3, 5, dtype=dtype))
    equal(torch.full((3, 5), 1, **npu), torch.full((3, 5), 1, dtype=dtype))
    x, y = made(dtype, 4, 6), made(dtype, 4, 6).npu()
    y.copy_(x)
    for z in x, y:
        z[:, ::2].fill_(1)
        z.t()[1].zero_()
        z[3] = 0
    equal(y, x)
    equal(torch.ones_like(y), torch.ones_like(x))
    equal(torch.full_like(y, 1), torch.full_like(x, 1))
    equal(y.new_zeros(2, 3), x.new_zeros(2, 3))
    equal(y.new_full((2,), 1), x.new_full((2,), 1))
    equal(torch.tensor([1, 0], **npu), torch.tensor([1, 0], dtype=dtype))
    equal(torch.zeros(0, **npu), torch.zeros(0, dtype=dtype))


# --- arithmetic -------------------------------------------------------------------------------------------------------

@numbers
@layouts
def test_sums(layout, dtype):
    x, y = made(dtype, 4, 6, 8), made(dtype, 4, 6, 8)
    both(lambda x, y: x + y, x, y, layout=layout)
    both(lambda x, y: x - y, x, y, layout=layout)
    both(lambda x, y: torch.add(x, y, alpha=3), x, y, layout=layout)
    both(lambda x, y: torch.sub(x, y, alpha=2), x, y, layout=layout)
    both(lambda x: x + 2, x, layout=layout)
    both(lambda x: x - 3, x, layout=layout)
    both(lambda x: torch.add(x, 2, alpha=3), x, layout=layout)


@floats
@layouts
def test_products(layout, dtype):
    x, y = made(dtype, 4, 6, 8), made(dtype, 4, 6, 8)
    both(lambda x, y: x * y, x, y, layout=layout)
    both(lambda x, y: x / (y + 8), x, y, layout=layout, compare=near)
    both(lambda x, y: x / y, x, y, layout=layout, compare=near)  # by zero as well
    both(lambda x: x * 0.5, x, layout=layout)
    both(lambda x: x / 3, x, layout=layout, compare=near)


@numbers
def test_in_place(dtype):
    x, y = made(dtype, 4, 6), made(dtype, 4, 6)
    on_npu = x.npu()
    for z, other in (x, y), (on_npu, y.npu()):
        z += other
        z.add_(2)
        z[:, ::2].add_(other[:, 1::2], alpha=2)
        z.t()[1:3] += other[:, 0]
        z.add_(other[0])
        z -= other
        z.sub_(1)
        z *= other
        z.mul_(2)
    equal(on_npu, x)


def test_types_that_differ():
    f32, f16, i64, i32 = made(F32, 3, 4), made(F16, 3, 4), made(I64, 3, 4), made(I32, 3, 4)
    for x, y in (f32, f16), (f16, f32), (f32, i64), (i64, f16), (i32, i64), (f32, torch.tensor(2.)), (i64, torch.tensor(3)):
        both(lambda x, y: x + y, x, y)
        both(lambda x, y: x * y, x, y)


def test_broadcasts():
    rows, column, one = made(F32, 4, 6), made(F32, 4, 1), made(F32, 1)
    for x, y in (rows, column), (column, rows), (rows, one), (rows, rows[0]), (column, rows[0]):
        both(lambda x, y: x + y, x, y)
        both(lambda x, y: x * y, x, y)
        both(lambda x, y: x - y, x, y)
    equal(rows.npu() * torch.tensor(3.), rows * 3)  # a tensor on the host without axes counts as a number


@floats
@layouts
def test_functions_of_one(layout, dtype):
    x = made(dtype, 4, 6, 8)
    for compute in torch.abs, torch.sign, torch.relu, torch.neg, torch.ceil, torch.floor:
        both(compute, x, layout=layout)
    both(lambda x: x ** 2, x, layout=layout)
    both(lambda x: x ** 3, x, layout=layout, compare=near)
    both(lambda x: torch.abs(x).sqrt(), x, layout=layout, compare=near)
    both(lambda x: (x + 8) ** 0.5, x, layout=layout, compare=near)


# --- comparisons ------------------------------------------------------------------------------------------------------

@numbers
@layouts
def test_comparisons(layout, dtype):
    x, y = made(dtype, 4, 6, 8), made(dtype, 4, 6, 8)
    for compute in torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge:
        both(compute, x, y, layout=layout)
        both(lambda x: compute(x, 1), x, layout=layout)


def test_comparisons_of_nan():
    x = torch.tensor([1., float('nan'), float('inf'), -0., 0.])
    for compute in torch.eq, torch.ne, torch.lt, torch.ge:
        both(compute, x, x.flip(0))
        both(lambda x: compute(x, 0), x)
    both(torch.isfinite, x)
    both(lambda x: torch.isclose(x, x + 1e-9), x)
    both(lambda x: torch.isclose(x, x + 1e-9, equal_nan=True), x)


@floats
def test_isclose(dtype):
    x = made(dtype, 4, 6)
    y = x + torch.tensor([0, 1e-6, 1e-3, 1e-2, 0.1, 1.]).to(dtype)
    for rtol, atol in (1e-5, 1e-8), (1e-2, 0.), (0., 1e-2):
        both(lambda x, y: torch.isclose(x, y, rtol=rtol, atol=atol), x, y)
    assert torch.allclose(x.npu(), x.npu()) and not torch.allclose(x.npu(), x.npu() + 1)
    assert torch.equal(x.npu(), x.npu()) and not torch.equal(x.npu(), x.npu() + 1)


# --- reductions -------------------------------------------------------------------------------------------------------

AXES = [dict(), dict(dim=0), dict(dim=-1, keepdim=True), dict(dim=(0, 2)), dict(dim=(-1, -2), keepdim=True)]


@floats
@pytest.mark.parametrize('words', AXES, ids=str)
def test_sum_and_mean(words, dtype):
    x = made(dtype, 4, 6, 8)
    for layout in 'dense', 'transposed', 'steps', 'expanded':
        both(lambda x: x.sum(**words), x, layout=layout, compare=near)
        both(lambda x: x.mean(**words), x, layout=layout, compare=near)
        both(lambda x: x.sum(**words, dtype=F32), x, layout=layout, compare=near)


def test_sums_of_whole_numbers():
    for dtype in I32, I64, BOOL:
        both(lambda x: x.sum(), made(dtype, 4, 6, 8))
        both(lambda x: x.sum(dim=1), made(dtype, 4, 6, 8))
    equal(torch.zeros(0, 3).npu().sum(dim=0), torch.zeros(3))
    assert torch.isnan(torch.zeros(0).npu().mean()).item()


def test_all_and_any():
    for x in made(BOOL, 4, 6), torch.ones(4, 6, dtype=torch.bool), torch.zeros(4, 6, dtype=torch.bool), made(BOOL, 0, 6):
        for words in {}, dict(dim=0), dict(dim=1, keepdim=True):
            both(lambda x: x.all(**words), x)
            both(lambda x: x.any(**words), x)


@floats
def test_largest_and_smallest(dtype):
    x = torch.randn(4, 6, 8).to(dtype)
    for layout in 'dense', 'transposed', 'steps', 'part':
        both(torch.max, x, layout=layout)
        both(torch.min, x, layout=layout)
        for dim in 0, -1:
            for which in 0, 1:
                both(lambda x: torch.max(x, dim=dim)[which], x, layout=layout)
    x[1, 2, 3] = float('nan')
    both(torch.max, x)
    both(lambda x: torch.max(x, dim=1, keepdim=True)[1], x)


# --- gradients --------------------------------------------------------------------------------------------------------

GRADIENTS = {
    'relu': torch.relu, 'relu in place': lambda x: torch.relu_(x * 2), 'abs': torch.abs, 'square': lambda x: x ** 2,
    'cube': lambda x: x ** 3, 'root': lambda x: (x.abs() + 1).sqrt(), 'negative': lambda x: -x, 'copy': lambda x: x.clone(),
    'half': lambda x: x.half().float(), 'sum': lambda x: x.sum(1), 'mean': lambda x: x.mean((0, 2)), 'fill': lambda x:
    x.masked_fill(x > 0, 0.), 'join': lambda x: torch.cat([x, x * 2], 1), 'stack': lambda x: torch.stack([x, x * 3]),
    'split': lambda x: x.split(2)[1] * 2, 'quotient': lambda x: x / 3,
    **{name: lambda x, view=view: view(x) * 2 for name, view in VIEWS.items()},
}
GRADIENTS_OF_TWO = {
    'sum': lambda x, y: x + y, 'difference': lambda x, y: x - 2 * y, 'product': lambda x, y: x * y, 'quotient': lambda x, y:
    x / (y + 9), 'rows': lambda x, y: x * y[0], 'columns': lambda x, y: x + y[:, :1], 'one': lambda x, y: x * y[0, 0, 0],
    'join': lambda x, y: torch.cat([x, y[:, :2]], 1), 'types': lambda x, y: x * y.half(),
}


@pytest.mark.parametrize('name', (*GRADIENTS, *(f'two {name}' for name in GRADIENTS_OF_TWO)))
def test_gradients(name):
    compute = GRADIENTS_OF_TWO[name[4:]] if name.startswith('two ') else GRADIENTS[name]
    operands, results = [made(F32, 4, 6, 8), made(F32, 4, 6, 8)][:2 if name.startswith('two ') else 1], []
    for device in 'npu', 'cpu':
        leaves = [x.to(device, copy=True).requires_grad_() for x in operands]
        out = compute(*leaves)
        out.backward((torch.arange(out.numel()) % 5).reshape(out.shape).to(out))
        results.append([out.detach(), *(leaf.grad for leaf in leaves)])
    for found, wanted in zip(*results):
        near(found, wanted)


# --- by index ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('dtype', (F32, F16, I32, I64), ids=str)
def test_gather(dtype):
    x, index = made(dtype, 4, 6), torch.randint(0, 4, (3, 6))
    equal(torch.gather(x.npu(), 0, index.npu()), torch.gather(x, 0, index))
    equal(torch.gather(x.npu().t(), 1, index.npu().t()), torch.gather(x.t(), 1, index.t()))


def test_masks():
    x, mask = made(F32, 4, 6), made(BOOL, 4, 6)
    equal(x.npu().masked_fill(mask.npu(), -2.5), x.masked_fill(mask, -2.5))
    equal(x.npu().masked_fill_(mask[:1].npu(), 3), x.masked_fill(mask[:1], 3))
    equal(torch.masked_select(x.npu(), mask.npu()), torch.masked_select(x, mask))
    both(lambda x, y: x & y, mask, made(BOOL, 4, 6))


@pytest.mark.skipif(not MASKS_ARE_FILLED, reason='see test_refusals.py')
def test_a_number_for_a_mask():
    x, mask = made(F32, 4, 6), made(BOOL, 4, 6)
    y = x.npu()
    for z in x, y:
        z[mask.to(z.device)] = 2
        z[z < 0] = torch.tensor(0.5).to(z.device)
    equal(y, x)


# --- random numbers ---------------------------------------------------------------------------------------------------

DRAWS = {
    'randn': lambda: torch.randn(64, 1000, device='npu'),
    'rand': lambda: torch.rand(64, 1000, device='npu'),
    'randn half': lambda: torch.randn(64, 1000, device='npu', dtype=F16),
    'randint': lambda: torch.randint(-3, 11, (64, 1000), device='npu'),
    'normal_': lambda: torch.empty(64, 1000, device='npu').normal_(2, 3),
    'uniform_': lambda: torch.empty(64, 1000, device='npu').uniform_(-1, 3),
    'random_': lambda: torch.empty(64, 1000, device='npu').random_(-5, 5),
}


@pytest.mark.parametrize('draw', DRAWS)
def test_random_numbers_follow_the_seed(draw):
    def drawn(seed):
        torch.manual_seed(seed)
        return [DRAWS[draw]().cpu() for _ in range(2)]
    first, again, other = drawn(7), drawn(7), drawn(8)
    assert all(torch.equal(*pair) for pair in zip(first, again))
    assert not torch.equal(first[0], first[1]) and not torch.equal(first[0], other[0])
    state = torch.npu.get_rng_state()
    x = DRAWS[draw]().cpu()
    torch.npu.set_rng_state(state)
    assert torch.equal(DRAWS[draw]().cpu(), x)


def test_distributions():
    draws = {name: draw().cpu().double() for name, draw in DRAWS.items()}
    assert abs(draws['randn'].mean()) < 0.02 and abs(draws['randn'].std() - 1) < 0.02
    assert abs(draws['randn half'].std() - 1) < 0.02
    assert draws['rand'].min() >= 0 and draws['rand'].max() < 1 and abs(draws['rand'].mean() - 0.5) < 0.01
    assert set(draws['randint'].unique().tolist()) == set(range(-3, 11))
    assert abs(draws['normal_'].mean() - 2) < 0.05 and abs(draws['normal_'].std() - 3) < 0.05
    assert draws['uniform_'].min() >= -1 and draws['uniform_'].max() <= 3 and abs(draws['uniform_'].mean() - 1) < 0.03
    assert set(draws['random_'].unique().tolist()) == set(range(-5, 5))


# --- formats ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('dtype', (F32, F16), ids=str)
@pytest.mark.parametrize('number', (0, 2, 3, 4, 29))
def test_private_formats_are_plain_here(number, dtype):
    x = torch.randn(2, 16, 7, 9).to(dtype)
    if number > 2 and FORMATS_ARE_COMPILED:
        with pytest.raises(RuntimeError, match='only the aclnn operators of aclnnop/ exist'):
            torch_npu.npu_format_cast(x.npu(), number)
        return
    cast = torch_npu.npu_format_cast(x.npu(), number)
    assert torch_npu.get_npu_format(cast) in (0, 2)
    equal(cast, x)
    equal(torch.nn.functional.max_pool2d(cast, 2), torch.nn.functional.max_pool2d(x.float(), 2).to(dtype))
