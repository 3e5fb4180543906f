#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""replay_cases.py --library LIBPOOLGRAD.SO --shared DIR [--max-elements N]

Replays recorded cases of the five operators: calls and the status the first phase must give, and
problems whose results are compared with sums in fp64 made here and, where torch is installed, with
PyTorch's results in fp32.

Exit: 0 all agree, 1 a case differs, 77 no cases or no numpy here.
"""

import argparse
import json
import math
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'python'))
import poolgrad_ctypes  # noqa: E402

SEED = 20240607
# Cases whose recorded status is not ours, on purpose.
MISMATCHED_CHANNELS = "gradOutput's C is not self's: refused at once instead of in the second phase"
DEVIATIONS = {
    ('aclnnAdaptiveMaxPool2dBackward', 'ascend910B2_normal_4d'): (161002, MISMATCHED_CHANNELS),
    ('aclnnAdaptiveMaxPool2dBackward', 'ascend310P_normal_4d'): (161002, MISMATCHED_CHANNELS),
}


def cases_in(path):
    with open(path, encoding='utf-8') as lines:
        return [json.loads(line) for line in lines]


# --- status ---------------------------------------------------------------------------------------

def replay_status(library, case):
    """The status of the first phase, with tensors that have no memory."""
    handles, arguments = [], []
    for name in case['args']:
        value = None if name in case['null_args'] else case[name]
        if isinstance(value, dict):
            value = library.describe(value['shape'], value['dtype'], value['format'])
            handles.append(value)
        arguments.append(value)
    status, _, executor = library.plan(case['op'], arguments)
    if status == 0:
        library.drop(executor)
    for handle in handles:
        library.so.aclDestroyTensor(handle)
    return status


def check_status(library, cases):
    failed = 0
    for case in cases:
        key = case['op'], case['name']
        expected, reason = DEVIATIONS.get(key, (case['expect'], None))
        status = replay_status(library, case)
        if reason:
            print(f'ours is {expected}, recorded {case["expect"]}: {" ".join(key)}: {reason}')
        if status != expected:
            failed += 1
            print(f'FAILED {" ".join(key)}: status {status}, expected {expected}; {library.message()}')
    print(f'status: {len(cases)} cases, {failed} failed')
    return failed


# --- windows: per axis a list of (first cell, end, step, divisor) ---------------------------------

def adaptive_windows(size, outputs):
    windows = [(o * size // outputs, -(-(o + 1) * size // outputs), 1) for o in range(outputs)]
    return [(first, end, step, end - first) for first, end, step in windows]


def sliding_windows(size, outputs, kernel, stride, padding, dilation=1, count_padding=False):
    windows = []
    for o in range(outputs):
        begin = o * stride - padding
        end = begin + dilation * (kernel - 1) + 1
        inside = begin + max(0, -(begin // dilation)) * dilation  # the first tap that is not in the padding
        counted = min(end, size + padding) - begin if count_padding else min(end, size) - max(begin, 0)
        windows.append((inside, min(end, size), dilation, counted))
    return windows


def windows_of(case):
    spatial = len(case.get('output_size') or case.get('kernel') or [0, 0, 0])
    pairs = list(zip(case['self_shape'][-spatial:], case['gradOutput_shape'][-spatial:]))
    if 'kernel' not in case:
        return [adaptive_windows(*pair) for pair in pairs]
    dilation = case.get('dilation', [1, 1])
    return [sliding_windows(*pair, case['kernel'][i], case['stride'][i], case['padding'][i], dilation[i],
                            case.get('count_include_pad', False)) for i, pair in enumerate(pairs)]


# --- the reference, one axis at a time ------------------------------------------------------------

def max_with_indices(values, windows):
    """Maxima and their flat positions; the first maximum wins, and the last NaN over everything."""
    spatial = len(windows)
    sizes = values.shape[-spatial:]
    indices = numpy.arange(math.prod(sizes), dtype='i8').reshape(sizes)
    indices = numpy.broadcast_to(indices, values.shape)
    for axis in range(-1, -spatial - 1, -1):
        first, end, step = (numpy.array([w[i] for w in windows[axis]]) for i in range(3))
        best, where = values.take(first, axis), indices.take(first, axis)
        shape = [len(first)] + [1] * (-axis - 1)
        for tap in range(1, int(((end - first - 1) // step).max()) + 1):
            position = first + tap * step
            inside = (position < end).reshape(shape)
            position = numpy.minimum(position, values.shape[axis] - 1)
            candidate = values.take(position, axis)
            better = inside & ((candidate > best) | numpy.isnan(candidate))
            best = numpy.where(better, candidate, best)
            where = numpy.where(better, indices.take(position, axis), where)
        values, indices = best, where
    return values, indices


def scatter(grad, indices, shape, spatial):
    """Adds every gradient to the cell its index names, in fp64."""
    plane = math.prod(shape[-spatial:])
    planes = numpy.arange(math.prod(shape[:-spatial]))[:, None]
    flat = indices.reshape(len(planes), -1) + planes * plane
    with numpy.errstate(invalid='ignore'):
        sums = numpy.bincount(flat.ravel(), grad.astype('f8').ravel(), math.prod(shape))
    return sums.reshape(shape)


def spread(grad, windows, sizes, divisor):
    """Divides every gradient and adds it to all cells of its window, in fp64."""
    sums = grad.astype('f8')
    if divisor:
        sums = sums / divisor
    for axis in range(-1, -len(windows) - 1, -1):
        outputs = numpy.moveaxis(sums, axis, 0)
        cells = numpy.zeros((sizes[axis], *outputs.shape[1:]))
        with numpy.errstate(invalid='ignore'):
            for (first, end, step, count), output in zip(windows[axis], outputs):
                cells[first:end:step] += output if divisor else output / count
        sums = numpy.moveaxis(cells, 0, axis)
    return sums


# --- results --------------------------------------------------------------------------------------

def draw(random, how, shape):
    if isinstance(how, dict):
        return random.standard_normal(shape, 'f4') * random.uniform(*how['std']) + random.uniform(*how['mean'])
    if len(how) == 1:
        return numpy.full(shape, float(how[0]), 'f4')
    return random.uniform(*how, shape)


def make_data(random, case):
    """self, gradOutput and indices (None for averages), their values as the tensors' type holds them."""
    def rounded(values):
        return poolgrad_ctypes.load(poolgrad_ctypes.store(values, case['dtype']), case['dtype']).astype('f4')
    ranges = case['data_range']
    data = rounded(draw(random, ranges['self'], case['self_shape']))
    if 'index_dtype' not in case:
        return data, rounded(draw(random, ranges['gradOutput'], case['gradOutput_shape'])), None
    grad, indices = max_with_indices(data, windows_of(case))
    if not isinstance(ranges['gradOutput'], str):  # else it is the forward result
        grad = rounded(draw(random, ranges['gradOutput'], case['gradOutput_shape']))
    return data, grad, indices


def ours(library, case, data, grad, indices):
    tag = 'ND' if case['format'] == 'default' else case['format']
    tensors = [library.tensor(grad, case['dtype'], tag), library.tensor(data, case['dtype'], tag)]
    if indices is not None:
        tensors.append(library.tensor(indices, case['index_dtype'], tag))
    out = library.tensor(numpy.full(data.shape, math.nan, 'f4'), case['dtype'], tag)  # every cell must be written
    attributes = [case[name] for name in ('kernel', 'stride', 'padding', 'dilation', 'ceil_mode', 'count_include_pad',
                                          'divisor_override', 'cube_math_type') if name in case]
    library.run(case['op'], *tensors, *attributes, out)
    result = out.read()
    for tensor in (*tensors, out):
        tensor.free()
    return result


def exact(case, grad, indices):
    """The sums in fp64."""
    windows = windows_of(case)
    if indices is not None:
        return scatter(grad, indices, case['self_shape'], len(windows))
    return spread(grad, windows, case['self_shape'], case.get('divisor_override'))


def torchs(case, data, grad, indices):
    """PyTorch's result in fp32."""
    aten = torch.ops.aten
    data, grad = torch.from_numpy(data), torch.from_numpy(grad)
    indices = None if indices is None else torch.from_numpy(indices)
    attributes = [case[name] for name in ('kernel', 'stride', 'padding', 'dilation', 'ceil_mode', 'count_include_pad',
                                          'divisor_override') if name in case]
    if case['op'] == 'aclnnAdaptiveAvgPool3dBackward':
        result = aten._adaptive_avg_pool3d_backward(grad, data)
    elif case['op'] == 'aclnnAvgPool2dBackward':
        result = aten.avg_pool2d_backward(grad, data, *attributes)
    elif case['op'] == 'aclnnMaxPool2dWithIndicesBackward':
        result = aten.max_pool2d_with_indices_backward(grad, data, *attributes, indices)
    elif case['op'] == 'aclnnAdaptiveMaxPool2dBackward':
        result = aten.adaptive_max_pool2d_backward(grad, data, indices)
    else:
        result = aten.adaptive_max_pool3d_backward(grad, data, indices)
    return result.numpy()


def check_results(library, cases, cap):
    failed = over = 0
    for case in cases:
        if max(math.prod(case['self_shape']), math.prod(case['gradOutput_shape'])) > cap:
            over += 1
            continue
        random = numpy.random.default_rng([SEED, case['case_id']])
        if isinstance(case.get('divisor_override'), dict):
            case['divisor_override'] = int(random.integers(*case['divisor_override']['drawn_from'], endpoint=True))
        data, grad, indices = make_data(random, case)
        found, wanted = ours(library, case, data, grad, indices), exact(case, grad, indices)
        absolute = exact(case, numpy.abs(grad), indices)
        rivals = {'fp64': wanted, **({'torch': torchs(case, data, grad, indices).astype('f8')} if torch else {})}
        for name, rival in rivals.items():
            bad = numpy.argwhere(poolgrad_ctypes.wrong(found, rival, absolute, case['dtype']))
            if len(bad):
                failed += 1
                cell = tuple(bad[0])
                print(f'FAILED {case["op"]} case {case["case_id"]}: {len(bad)} cells differ from {name}; '
                      f'{[int(i) for i in cell]} is {found[cell]}, expected {rival[cell]}')
    print(f'results: {len(cases)} cases, {over} left out (over {cap} elements), {failed} failed, against fp64'
          f'{" and torch " + torch.__version__ if torch else "; torch is not installed"}')
    return failed


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0])
    parser.add_argument('--library', required=True)
    parser.add_argument('--shared', type=pathlib.Path, required=True)
    parser.add_argument('--max-elements', type=float, default=4e6, help='larger cases are left out')
    arguments = parser.parse_args()

    files = [arguments.shared / 'cases' / f'five_{kind}.jsonl' for kind in ('status', 'results')]
    for path in files:
        if not path.is_file():
            print(f'skipped: the cases that were recorded on a card are not at {path}')
            return 77
    os.environ['POOLGRAD_SOC'] = 'Ascend910B'  # the product the cases were recorded for
    library = poolgrad_ctypes.Library(arguments.library)
    failed = check_status(library, cases_in(files[0]))
    failed += check_results(library, cases_in(files[1]), int(arguments.max_elements))
    return 1 if failed else 0


if __name__ == '__main__':
    poolgrad_ctypes.need('numpy')
    import numpy
    try:
        import torch
    except ImportError:
        torch = None
    sys.exit(main())
