#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_torch.py --library LIBPOOLGRAD.SO [--random COUNT]

Gives the same problems to the library and to PyTorch's CPU kernels and compares the results: gradients,
averages, and maxima with their indices, bit by bit.
PyTorch always computes contiguous tensors in fp32 (fp64 for DOUBLE); half types are rounded
afterwards. Four of its own faults make that the fair comparison:

- Half accumulation loses digits (pytorch issues 52719, 140696), hence fp32 and one rounding.
- adaptive_max_pool3d's backward reads strided indices as if contiguous (issue 197888), and some
  channels-last kernels are wrong (issues 107201, 188344, pull 171869): the library gets the strides,
  PyTorch a contiguous copy.
- Some versions take another divisor backward than forward in ceil mode (issue 198119): there the
  gradient is made from the forward operator alone, which is linear, one input cell at a time in fp64.
- Indices outside the plane and gradients of a wrong size crash it or corrupt memory (issues 141099,
  141100, 140923): neither is tried here.

Exit: 0 all agree, 1 a problem differs, 77 no torch here.
"""

import argparse
import collections
import math
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'python'))
import poolgrad_ctypes  # noqa: E402

# size: the adaptive operators' output; window: kernel, stride, padding, dilation of the others.
Problem = collections.namedtuple('Problem', 'operator shape size window ceil include divisor',
                                 defaults=(None, None, False, True, 0))
MAX2D, MAX3D, AVG3D, WINDOW_MAX, WINDOW_AVG = (
    'aclnnAdaptiveMaxPool2dBackward', 'aclnnAdaptiveMaxPool3dBackward', 'aclnnAdaptiveAvgPool3dBackward',
    'aclnnMaxPool2dWithIndicesBackward', 'aclnnAvgPool2dBackward')
AVG2D, WINDOW_MAX3D, WINDOW_AVG3D = (
    'aclnnAdaptiveAvgPool2dBackward', 'aclnnMaxPool3dWithArgmaxBackward', 'aclnnAvgPool3dBackward')
BACKWARD = {MAX2D: 'adaptive_max_pool2d', MAX3D: 'adaptive_max_pool3d', AVG3D: 'adaptive_avg_pool3d',
            WINDOW_MAX: 'max_pool2d', WINDOW_AVG: 'avg_pool2d', AVG2D: 'adaptive_avg_pool2d',
            WINDOW_MAX3D: 'max_pool3d', WINDOW_AVG3D: 'avg_pool3d'}
FORWARD = {'aclnnAdaptiveMaxPool2d': 'adaptive_max_pool2d', 'aclnnAdaptiveMaxPool3d': 'adaptive_max_pool3d',
           'aclnnAdaptiveAvgPool2d': 'adaptive_avg_pool2d', 'aclnnAdaptiveAvgPool3d': 'adaptive_avg_pool3d',
           'aclnnMaxPool2dWithIndices': 'max_pool2d', 'aclnnMaxPool3dWithArgmax': 'max_pool3d',
           'aclnnMaxPool': 'max_pool2d', 'aclnnAvgPool2d': 'avg_pool2d', 'aclnnAvgPool3d': 'avg_pool3d'}


def kind(problem):
    """The name of the function of PyTorch."""
    return BACKWARD.get(problem.operator) or FORWARD[problem.operator]


def spatial_of(problem):
    return 3 if kind(problem).endswith('3d') else 2


def is_max(problem):
    return 'max' in kind(problem)


def adaptive(operator, *rows):
    return [Problem(operator, shape, size) for shape, size in rows]


def window_max(shape, kernel, stride, padding, dilation=(1, 1), ceil=False):
    return Problem(WINDOW_MAX, shape, None, (kernel, stride, padding, dilation), ceil)


def window_avg(shape, kernel, stride, padding, ceil=False, include=True, divisor=0):
    return Problem(WINDOW_AVG, shape, None, (kernel, stride, padding, (1, 1)), ceil, include, divisor)


PROBLEMS = [
    *adaptive(MAX2D, ((2, 3, 8, 12), (4, 3)), ((2, 3, 7, 5), (3, 4)), ((3, 7, 9), (1, 1)), ((1, 2, 3, 2), (7, 5)),
              ((2, 17, 11, 13), (5, 13)), ((1, 1, 1, 1), (3, 3))),
    *adaptive(MAX3D, ((2, 3, 4, 6, 8), (2, 3, 4)), ((2, 2, 5, 7, 3), (3, 2, 2)), ((3, 5, 4, 7), (1, 1, 1)),
              ((1, 2, 2, 3, 1), (5, 4, 3)), ((1, 9, 7, 1, 6), (2, 1, 5))),
    *adaptive(AVG3D, ((2, 3, 4, 6, 8), (2, 3, 4)), ((2, 2, 5, 7, 3), (3, 2, 2)), ((3, 5, 4, 7), (1, 1, 1)),
              ((1, 2, 2, 3, 1), (5, 4, 3)), ((1, 9, 7, 1, 6), (2, 1, 5)), ((2, 16, 3, 9, 11), (1, 1, 1))),
    window_max((2, 3, 8, 9), (2, 2), (2, 2), (0, 0)),
    window_max((2, 3, 8, 9), (3, 3), (2, 2), (1, 1)),
    window_max((2, 3, 9, 8), (3, 2), (2, 3), (1, 1), ceil=True),
    window_max((1, 5, 11, 12), (3, 4), (1, 1), (1, 2), dilation=(2, 3)),
    window_max((4, 13, 10), (3, 3), (3, 2), (1, 0), dilation=(3, 1), ceil=True),
    window_max((1, 2, 6, 6), (1, 1), (1, 1), (0, 0)),
    window_max((1, 17, 5, 7), (2, 3), (4, 5), (1, 1), ceil=True),
    window_avg((2, 3, 8, 9), (2, 2), (2, 2), (0, 0)),
    window_avg((2, 3, 8, 9), (3, 3), (2, 2), (1, 1)),
    window_avg((2, 3, 8, 9), (3, 3), (2, 2), (1, 1), include=False),
    window_avg((2, 3, 9, 8), (3, 2), (2, 3), (1, 1), ceil=True),
    window_avg((2, 3, 9, 8), (3, 2), (2, 3), (1, 1), ceil=True, include=False),
    window_avg((1, 2, 10, 7), (4, 5), (3, 3), (2, 2), ceil=True),
    window_avg((1, 2, 10, 7), (4, 5), (3, 3), (2, 2), ceil=True, divisor=7),
    window_avg((5, 10, 7), (4, 5), (1, 1), (2, 1), divisor=-3),
    window_avg((1, 17, 12, 12), (12, 12), (1, 1), (2, 3)),  # a whole plane that is still shifted by its padding
    window_avg((1, 2, 6, 5), (1, 1), (3, 2), (0, 0)),
    *adaptive(AVG2D, ((2, 3, 8, 12), (4, 3)), ((2, 3, 7, 5), (3, 4)), ((3, 7, 9), (1, 1)), ((1, 2, 3, 2), (7, 5))),
    Problem(WINDOW_MAX3D, (2, 3, 5, 8, 9), None, ((2, 3, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1))),
    Problem(WINDOW_MAX3D, (4, 7, 9, 8), None, ((3, 2, 2), (1, 2, 3), (1, 0, 1), (2, 1, 3)), True),
    Problem(WINDOW_AVG3D, (2, 3, 5, 8, 9), None, ((2, 3, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1))),
    Problem(WINDOW_AVG3D, (4, 7, 9, 8), None, ((3, 2, 2), (4, 2, 3), (1, 0, 1), (1, 1, 1)), False, False),
    Problem(WINDOW_AVG3D, (1, 2, 6, 7, 7), None, ((2, 2, 2), (3, 3, 3), (0, 0, 0), (1, 1, 1)), False, True, -5),
]


def random_problem(rng, operators):
    operator = rng.choice(operators)
    drawn = Problem(operator, ())
    spatial = spatial_of(drawn)
    lead = rng.choice(((rng.randint(1, 20),), (rng.randint(1, 3), rng.randint(1, 20))))
    sizes = tuple(rng.randint(1, 19 if spatial == 2 else 9) for _ in range(spatial))
    if 'adaptive' in kind(drawn):
        return Problem(operator, lead + sizes, tuple(rng.randint(1, size + 3) for size in sizes))
    axes = []
    for size in sizes:
        dilation = rng.randint(1, 3) if is_max(drawn) and operator != 'aclnnMaxPool' else 1
        kernel = rng.randint(1, max(1, (size - 1) // dilation + 1))
        axes.append((kernel, rng.randint(1, kernel + 2), rng.randint(0, kernel // 2), dilation))
    return Problem(operator, lead + sizes, None, tuple(zip(*axes)), rng.random() < 0.5, rng.random() < 0.5,
                   rng.choice((0, 0, 0, 5, -9)))


# --- PyTorch's side -------------------------------------------------------------------------------

def forward(problem, data):
    """Outputs and indices; indices are None for averages."""
    pool = getattr(torch.nn.functional, kind(problem))
    if problem.size:
        return pool(data, problem.size, True) if is_max(problem) else (pool(data, problem.size), None)
    kernel, stride, padding, dilation = problem.window
    if is_max(problem):
        return pool(data, kernel, stride, padding, dilation, problem.ceil, return_indices=True)
    return pool(data, kernel, stride, padding, problem.ceil, problem.include, problem.divisor or None), None


def gradient(problem, data, grad):
    """What PyTorch says the gradient is, in fp64."""
    if problem.operator in (WINDOW_AVG, WINDOW_AVG3D) and problem.ceil:
        plane = problem.shape[-spatial_of(problem):]
        cells = torch.eye(math.prod(plane), dtype=torch.float64).reshape(-1, 1, *plane)
        weights = forward(problem, cells)[0].reshape(len(cells), -1)
        return (grad.reshape(-1, weights.shape[1]).double() @ weights.T).reshape(problem.shape).numpy()
    data = data.clone().requires_grad_()
    return torch.autograd.grad(forward(problem, data)[0], data, grad)[0].double().numpy()


# --- our side -------------------------------------------------------------------------------------

def channels_last(rank, spatial):
    lead = rank - spatial - 1
    return [*range(lead), *range(lead + 1, rank), lead]


def layouts(problem, rank, spatial):
    """Name, format, and the order in memory of gradOutput, indices and gradInput."""
    last, backwards = channels_last(rank, spatial), list(range(rank))[::-1]
    tag = 'NCHW' if spatial == 2 else 'ND'
    yield 'plain', tag, (None, None, None)
    yield 'channels-last strides', tag, (last, last, last)
    yield 'mixed strides', tag, (None, last, backwards)
    if problem.operator == WINDOW_MAX:
        yield 'NHWC', 'NHWC', (None, None, None)


def attributes(problem):
    """What is no tensor, in the order of the arguments."""
    if problem.size:
        return [] if problem.operator in BACKWARD else [list(problem.size)]
    kernel, stride, padding, dilation = (list(values) for values in problem.window)
    if problem.operator == 'aclnnMaxPool':
        return [kernel, stride, 0, padding, dilation, int(problem.ceil)]
    if is_max(problem):
        return [kernel, stride, padding, dilation, problem.ceil]
    math_type = [0] if spatial_of(problem) == 2 else []
    return [kernel, stride, padding, problem.ceil, problem.include, problem.divisor, *math_type]


def ours_forward(library, problem, dtype, index_dtype, order, data, shape):
    """Outputs, and indices where the operator has them.  order: of the axes in memory, for all tensors."""
    tag = {3: 'NCL', 4: 'NCHW'}[len(problem.shape)] if spatial_of(problem) == 2 else 'ND'
    tensors = [library.tensor(data, dtype, tag, order), library.tensor(numpy.full(shape, math.nan), dtype, tag, order)]
    if is_max(problem) and problem.operator != 'aclnnMaxPool':
        tensors.append(library.tensor(numpy.full(shape, -1), index_dtype, tag, order))
    library.run(problem.operator, tensors[0], *attributes(problem), *tensors[1:])
    results = [tensor.read() for tensor in tensors[1:]]
    for tensor in tensors:
        tensor.free()
    return results


def ours(library, problem, dtype, index_dtype, layout, grad, indices):
    _, tag, (grad_order, index_order, out_order) = layout
    out = numpy.full(problem.shape, math.nan, 'f4')  # every cell must be written
    moved = channels_last(out.ndim, 2) if tag == 'NHWC' else list(range(out.ndim))
    tensors = [library.tensor(grad.transpose(moved), dtype, tag, grad_order),
               library.tensor(out.transpose(moved), dtype, tag)]
    if indices is not None:
        tensors.append(library.tensor(indices.transpose(moved), index_dtype, tag, index_order))
    tensors.append(library.tensor(out.transpose(moved), dtype, tag, out_order))
    library.run(problem.operator, *tensors[:-1], *attributes(problem), tensors[-1])
    result = tensors[-1].read().transpose([moved.index(axis) for axis in range(out.ndim)])
    for tensor in tensors:
        tensor.free()
    return result


def special(grad):
    """Infinities, a NaN, zeros of both signs and the smallest number, here and there."""
    values = [math.inf, -math.inf, math.nan, -0.0, 0.0, 1e-45]
    grad = grad.copy()
    grad.ravel()[::3] = numpy.resize(numpy.array(values, grad.dtype), grad.ravel()[::3].shape)
    return grad


def compare(library, problem, layout, dtype, index_dtype, grad, data):
    """None, or what differs."""
    grad = poolgrad_ctypes.load(poolgrad_ctypes.store(grad, dtype), dtype).astype('f8' if dtype == 'DOUBLE' else 'f4')
    data = data.double() if dtype == 'DOUBLE' else data
    indices = forward(problem, data)[1]
    found = ours(library, problem, dtype, index_dtype, layout, grad, None if indices is None else indices.numpy())
    wanted = gradient(problem, data, torch.from_numpy(grad))
    terms = numpy.where(numpy.isfinite(grad), numpy.abs(grad), 0)  # infinities and NaNs match or not
    absolute = gradient(problem._replace(divisor=abs(problem.divisor)), data, torch.from_numpy(terms))
    bad = numpy.argwhere(poolgrad_ctypes.wrong(found, wanted, absolute, dtype))
    if len(bad) == 0:
        return None
    cell = tuple(bad[0])
    return f'{len(bad)} cells differ; {[int(i) for i in cell]} is {found[cell]}, torch {wanted[cell]}'


def compare_forward(library, problem, order, dtype, index_dtype, data):
    """Likewise."""
    held = poolgrad_ctypes.load(poolgrad_ctypes.store(data, dtype), dtype).astype('f8' if dtype == 'DOUBLE' else 'f4')
    wanted, indices = forward(problem, torch.from_numpy(held))
    wanted = wanted.numpy()
    found = ours_forward(library, problem, dtype, index_dtype, order, held, wanted.shape)
    if is_max(problem):
        if not numpy.array_equal(found[0].astype(held.dtype), wanted, equal_nan=True):
            return 'maxima differ'
        same = len(found) == 1 or numpy.array_equal(found[1], indices.numpy())
        return None if same else 'indices differ'
    terms = torch.from_numpy(numpy.where(numpy.isfinite(held), numpy.abs(held), 0))
    absolute = forward(problem._replace(divisor=abs(problem.divisor)), terms)[0].double().numpy()
    # PyTorch's own sums lose a digit for every few hundred cells.
    bad = numpy.argwhere(poolgrad_ctypes.wrong(found[0], wanted.astype('f8'), 4 * absolute, dtype))
    return f'{len(bad)} outputs differ' if len(bad) else None


def try_forward(library, rng, numbers, count):
    """So many random problems of the forward operators; how many differ."""
    tried, failed = collections.Counter(), 0
    for _ in range(count):
        problem = random_problem(rng, list(FORWARD))
        # Few different values: maxima tie.  PyTorch keeps the last of several NaNs, too.
        data = numbers.integers(-2, 7, problem.shape).astype('f4') if is_max(problem) else (
            numbers.standard_normal(problem.shape, 'f4'))
        if rng.random() < 0.2:
            data = special(data)
        types = ['FLOAT', 'FLOAT16', 'BF16'] + (['DOUBLE'] if problem.operator == 'aclnnAdaptiveMaxPool2d' else [])
        dtype = rng.choice(types if len(problem.shape) == spatial_of(problem) + 2 else types[:3])
        order = rng.choice((None, channels_last(len(problem.shape), spatial_of(problem))))
        wide = problem.operator == 'aclnnAdaptiveMaxPool2d' or rng.random() < 0.5
        difference = compare_forward(library, problem, order, dtype, 'INT64' if wide else 'INT32', data)
        tried[problem.operator] += 1
        if difference:
            failed += 1
            print(f'FAILED {problem}, {dtype}, order {order}: {difference}')
    for operator, number in tried.items():
        print(f'{operator}: {number} problems')
    return failed


def variants(problem, rank, spatial):
    """Every layout, type and kind of gradient that a listed problem is tried with."""
    types = ['FLOAT', 'FLOAT16', 'BF16']
    if problem.operator == AVG3D and problem.size == (1, 1, 1):
        types.append('DOUBLE')
    for layout in layouts(problem, rank, spatial):
        for dtype in types:
            yield layout, dtype, False
        # The gradient made from the forward operator multiplies by 0 what it must not touch.
        if not (problem.operator in (WINDOW_AVG, WINDOW_AVG3D) and problem.ceil):
            yield layout, 'FLOAT', True


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0])
    parser.add_argument('--library', required=True)
    parser.add_argument('--random', type=int, default=2000, help='this many random problems as well')
    arguments = parser.parse_args()

    library = poolgrad_ctypes.Library(arguments.library)
    rng, numbers = random.Random(7), numpy.random.default_rng(7)
    jobs = []
    for problem in PROBLEMS:
        jobs += [(problem, *variant) for variant in variants(problem, len(problem.shape), spatial_of(problem))]
    for _ in range(arguments.random):
        problem = random_problem(rng, list(BACKWARD))
        jobs.append((problem, *rng.choice(list(variants(problem, len(problem.shape), spatial_of(problem))))))

    tried, failed = collections.Counter(), 0
    for problem, layout, dtype, odd in jobs:
        # Few different values: maxima tie, and neighbouring windows choose the same cell.
        data = torch.from_numpy(numbers.integers(0, 9, problem.shape).astype('f4'))
        grad = numbers.standard_normal(tuple(forward(problem, data)[0].shape), 'f4')
        index_dtype = rng.choice(('INT32', 'INT64'))
        difference = compare(library, problem, layout, dtype, index_dtype, special(grad) if odd else grad, data)
        tried[problem.operator] += 1
        if difference:
            failed += 1
            print(f'FAILED {problem}, {dtype}, {index_dtype}, {layout[0]}{", odd values" if odd else ""}: {difference}')
    for operator, count in tried.items():
        print(f'{operator}: {count} problems')
    failed += try_forward(library, rng, numbers, arguments.random)
    print(f'torch {torch.__version__}: {failed} of {sum(tried.values()) + arguments.random} differ')
    return 1 if failed else 0


if __name__ == '__main__':
    poolgrad_ctypes.need('numpy', 'torch')
    import numpy
    import torch
    sys.exit(main())
