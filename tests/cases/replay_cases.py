#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""replay_cases.py --library LIBPOOLGRAD.SO --shared DIR [--max-elements N]

Replays recorded cases of the operators: calls and the status the first phase must give, and
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
    names = case.get('args') or [name for name, _ in poolgrad_ctypes.arguments_of(case['op'])]
    for name in names:
        value = None if name in case.get('null_args', []) else case.get(name)
        if isinstance(value, dict):
            value = library.describe(value['shape'], value['dtype'], value['format'], value.get('strides'))
            handles.append(value)
        arguments.append(value)
    status, _, executor = library.plan(case['op'], arguments)
    if status == 0:
        library.drop(executor)
    for handle in handles:
        library.so.aclDestroyTensor(handle)
    return status


def check_status(library, cases):
    failed = any_status = 0
    for case in cases:
        key = case['op'], case['name']
        expected, reason = DEVIATIONS.get(key, (case['expect'], None))
        status = replay_status(library, case)
        any_status += expected == 'any'
        if reason:
            print(f'ours is {expected}, recorded {case["expect"]}: {" ".join(key)}: {reason}')
        if expected not in (status, 'any'):
            failed += 1
            print(f'FAILED {" ".join(key)}: status {status}, expected {expected}; {library.message()}')
    print(f'status: {len(cases)} cases, {any_status} of them with any status, {failed} failed')
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


def per_axis(values, axes, missing=()):
    """One value counts for all axes, none for what is missing."""
    values = list(values) or list(missing)
    return values * axes if len(values) == 1 else values


def pooled(size, kernel, stride, paddings, dilation, ceil_mode):
    """The outputs of a sliding axis."""
    room = size + sum(paddings) - dilation * (kernel - 1) - 1
    outputs = (-(-room // stride) if ceil_mode else room // stride) + 1
    return outputs - 1 if ceil_mode and (outputs - 1) * stride >= size + paddings[0] else outputs


def axes_of(case):
    """How many axes windows slide along."""
    if 'output_size' in case:
        return len(case['output_size'])
    return 2 if '2d' in case['op'] or case['op'] == 'aclnnMaxPool' else 3


def sliding_of(case):
    """Per axis kernel, stride, padding before and behind, dilation."""
    axes = axes_of(case)
    kernel = per_axis(case['kernel'], axes)
    stride = per_axis(case['stride'], axes, [1, 1] if case['op'] == 'aclnnMaxPool' else kernel)
    before = per_axis(case['padding'], axes, [0])
    behind = before[2:] if len(before) == 4 else before
    dilation = per_axis(case.get('dilation', []), axes, [1])
    return list(zip(kernel, stride, zip(before, behind), dilation))


def out_shape(case):
    """The shape of what the windows give, as computed here."""
    if case['op'].endswith('Backward'):
        return case['gradOutput_shape']
    axes = axes_of(case)
    sizes = case['self_shape'][-axes:]
    if 'kernel' in case:
        sizes = [pooled(size, *axis, case['ceil_mode']) for size, axis in zip(sizes, sliding_of(case))]
    return case['self_shape'][:-axes] + (sizes if 'kernel' in case else case['output_size'])


def windows_of(case):
    axes = axes_of(case)
    pairs = list(zip(case['self_shape'][-axes:], out_shape(case)[-axes:]))
    if 'kernel' not in case:
        return [adaptive_windows(*pair) for pair in pairs]
    return [sliding_windows(*pair, kernel, stride, padding[0], dilation, case.get('count_include_pad', False))
            for pair, (kernel, stride, padding, dilation) in zip(pairs, sliding_of(case))]


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


def mean(values, windows, divisor):
    """Adds the cells of every window and divides, in fp64."""
    sums = values.astype('f8')
    for axis in range(-1, -len(windows) - 1, -1):
        cells = numpy.moveaxis(sums, axis, 0)
        with numpy.errstate(invalid='ignore'):
            outputs = numpy.stack([cells[first:end:step].sum(0) / (1 if divisor else count)
                                   for first, end, step, count in windows[axis]])
        sums = numpy.moveaxis(outputs, 0, axis)
    return sums / divisor if divisor else sums


# --- masks: positions of 32 bits from the first byte of a container on, and zeros behind them ------

def mask_shape(case):
    kernel, outputs = per_axis(case['kernel'], 2), out_shape(case)
    return [*outputs[:-2], math.prod(kernel), (-(-math.prod(outputs[-2:]) // 16) + 1) * 32]


def to_mask(case, indices):
    """What is in the container; nothing, where a window has one cell."""
    mask = numpy.zeros(math.prod(mask_shape(case)), 'i1')
    if math.prod(per_axis(case['kernel'], 2)) > 1:
        mask[:4 * indices.size] = indices.astype('<i4').ravel().view('i1')
    return mask.reshape(mask_shape(case))


# --- results --------------------------------------------------------------------------------------

def draw(random, how, shape):
    if isinstance(how, int):
        return numpy.full(shape, how, 'f4')
    if isinstance(how, dict):
        return random.standard_normal(shape, 'f4') * random.uniform(*how['std']) + random.uniform(*how['mean'])
    if len(how) == 1:
        return numpy.full(shape, float(how[0]), 'f4')
    return random.uniform(*how, shape)


def is_forward(case):
    return not case['op'].endswith('Backward')


def is_max(case):
    return 'Max' in case['op']


def make_data(random, case):
    """self, gradOutput (None for a forward) and indices (None for averages), their values as the tensors' type holds
    them."""
    def rounded(values):
        return poolgrad_ctypes.load(poolgrad_ctypes.store(values, case['dtype']), case['dtype']).astype('f4')
    ranges = case['data_range']
    data = rounded(draw(random, ranges['self'], case['self_shape']))
    if is_forward(case):
        return data, None, None
    if not is_max(case):
        return data, rounded(draw(random, ranges['gradOutput'], case['gradOutput_shape'])), None
    grad, indices = max_with_indices(data, windows_of(case))
    if not isinstance(ranges['gradOutput'], str):  # else it is the forward result
        grad = rounded(draw(random, ranges['gradOutput'], case['gradOutput_shape']))
    return data, grad, indices


def attributes(case, names=('kernel', 'stride', 'auto_pad', 'padding', 'dilation', 'ceil_mode', 'count_include_pad',
                            'divisor_override', 'cube_math_type')):
    """What is no tensor, in the order of the arguments."""
    values = [case[name] for name in names if name in case]
    return [case['output_size']] + values if is_forward(case) and 'output_size' in case else values


def tag_of(case):
    """The format; the two that ask for the one of their rank get it."""
    by_rank = {'aclnnAvgPool2d': {3: 'NCL', 4: 'NCHW'}, 'aclnnAdaptiveAvgPool2d': {3: 'NCL', 4: 'NCHW'},
               'aclnnAdaptiveMaxPool3d': {4: 'NCHW', 5: 'NCDHW'}}
    if case['format'] in ('default', 'ND') and case['op'] in by_rank:
        return by_rank[case['op']][len(case['self_shape'])]
    return 'ND' if case['format'] == 'default' else case['format']


def ours(library, case, data, grad, indices):
    """The result of a backward."""
    tag = tag_of(case)
    tensors = [library.tensor(grad, case['dtype'], tag), library.tensor(data, case['dtype'], tag)]
    if indices is not None:
        held = to_mask(case, indices) if case['index_dtype'] == 'INT8' else indices
        tensors.append(library.tensor(held, case['index_dtype'], tag))
    out = library.tensor(numpy.full(data.shape, math.nan, 'f4'), case['dtype'], tag)  # every cell must be written
    library.run(case['op'], *tensors, *attributes(case), out)
    result = out.read()
    for tensor in (*tensors, out):
        tensor.free()
    return result


def ours_forward(library, case, data):
    """The outputs of a forward, and its indices or what its mask holds (None: it has none)."""
    tag, shape = tag_of(case), out_shape(case)
    tensors = [library.tensor(data, case['dtype'], tag),
               library.tensor(numpy.full(shape, math.nan, 'f4'), case['dtype'], tag)]
    if 'index_dtype' in case:
        of_mask = case['index_dtype'] == 'INT8'
        tensors.append(library.tensor(numpy.full(mask_shape(case) if of_mask else shape, -1), case['index_dtype'], tag))
    library.run(case['op'], tensors[0], *attributes(case), *tensors[1:])
    results = [tensor.read() for tensor in tensors[1:]]
    for tensor in tensors:
        tensor.free()
    return results[0], results[1] if len(results) > 1 else None


def exact(case, grad, indices):
    """The sums in fp64."""
    windows = windows_of(case)
    if indices is not None:
        return scatter(grad, indices, case['self_shape'], len(windows))
    return spread(grad, windows, case['self_shape'], case.get('divisor_override'))


def torchs(case, data, grad, indices):
    """PyTorch's result of a backward in fp32."""
    aten = torch.ops.aten
    data, grad = torch.from_numpy(data), torch.from_numpy(grad)
    indices = None if indices is None else torch.from_numpy(indices)
    rest = attributes(case, ('kernel', 'stride', 'padding', 'dilation', 'ceil_mode', 'count_include_pad',
                             'divisor_override'))
    if 'divisor_override' in case and not rest[-1]:
        rest[-1] = None
    if case['op'] == 'aclnnAdaptiveAvgPool3dBackward':
        result = aten._adaptive_avg_pool3d_backward(grad, data)
    elif case['op'] == 'aclnnAdaptiveAvgPool2dBackward':
        result = aten._adaptive_avg_pool2d_backward(grad, data)
    elif case['op'] == 'aclnnAvgPool2dBackward':
        result = aten.avg_pool2d_backward(grad, data, *rest)
    elif case['op'] == 'aclnnAvgPool3dBackward':
        result = aten.avg_pool3d_backward(grad, data, *rest)
    elif case['op'] in ('aclnnMaxPool2dWithIndicesBackward', 'aclnnMaxPool2dWithMaskBackward'):
        result = aten.max_pool2d_with_indices_backward(grad, data, *rest, indices)
    elif case['op'] == 'aclnnMaxPool3dWithArgmaxBackward':
        result = aten.max_pool3d_with_indices_backward(grad, data, *rest, indices)
    elif case['op'] == 'aclnnAdaptiveMaxPool2dBackward':
        result = aten.adaptive_max_pool2d_backward(grad, data, indices)
    else:
        result = aten.adaptive_max_pool3d_backward(grad, data, indices)
    return result.numpy()


def torchs_forward(case, data):
    """PyTorch's outputs in fp32, and its indices (None: averages)."""
    functional, data = torch.nn.functional, torch.from_numpy(data)
    if 'output_size' in case:
        name = ('adaptive_max_pool%dd' if is_max(case) else 'adaptive_avg_pool%dd') % axes_of(case)
        result = getattr(functional, name)(data, case['output_size'], *([True] if is_max(case) else []))
    elif is_max(case):
        kernel, stride, padding, dilation = zip(*sliding_of(case))
        if any(a != b or 2 * a > k for (a, b), k in zip(padding, kernel)):
            return None, None  # paddings that PyTorch does not take
        result = getattr(functional, f'max_pool{axes_of(case)}d')(
            data, kernel, stride, [before for before, _ in padding], dilation, bool(case['ceil_mode']), True)
    else:
        result = getattr(functional, f'avg_pool{axes_of(case)}d')(
            data, *attributes(case, ('kernel', 'stride', 'padding', 'ceil_mode', 'count_include_pad')),
            case['divisor_override'] or None)
    out, indices = result if is_max(case) else (result, None)
    return out.numpy(), None if indices is None else indices.numpy()


def differing(case, found, rival, absolute, name):
    """Says where two results differ; 1 if they do."""
    bad = numpy.argwhere(poolgrad_ctypes.wrong(found, rival, absolute, case['dtype']))
    if not len(bad):
        return 0
    cell = tuple(bad[0])
    print(f'FAILED {case["op"]} case {case["case_id"]}: {len(bad)} cells differ from {name}; '
          f'{[int(i) for i in cell]} is {found[cell]}, expected {rival[cell]}')
    return 1


def check_backward(library, case, random):
    data, grad, indices = make_data(random, case)
    found = ours(library, case, data, grad, indices)
    absolute = exact(case, numpy.abs(grad), indices)
    if case.get('divisor_override', 0) < 0:
        absolute = -absolute
    failed = differing(case, found, exact(case, grad, indices), absolute, 'fp64')
    if torch:
        failed += differing(case, found, torchs(case, data, grad, indices).astype('f8'), absolute, 'torch')
    return failed


def same_picks(case, found, rival, name):
    """Maxima and positions must be those of the rival, without a tolerance."""
    values, places = rival
    out, held = found
    wanted = places
    if held is not None and case['index_dtype'] == 'INT8':
        wanted = to_mask(case, places)
    good = numpy.array_equal(out, values, equal_nan=True) and (held is None or numpy.array_equal(held, wanted))
    if not good:
        print(f'FAILED {case["op"]} case {case["case_id"]}: maxima or indices are not those of {name}')
    return 0 if good else 1


def check_forward(library, case, random):
    data, _, _ = make_data(random, case)
    found, windows = ours_forward(library, case, data), windows_of(case)
    rival = torchs_forward(case, data) if torch else (None, None)
    if is_max(case):
        failed = same_picks(case, found, max_with_indices(data, windows), 'numpy')
        return failed + (0 if rival[0] is None else same_picks(case, found, rival, 'torch'))
    divisor = case.get('divisor_override')
    # One rounding for each cell: PyTorch adds a window one by one, here a column at a time.
    column = math.prod(max((end - first) // step for first, end, step, _ in axis) for axis in windows[:-1])
    row = max((end - first) // step for first, end, step, _ in windows[-1])
    absolute = numpy.abs(mean(numpy.abs(data), windows, divisor))
    failed = differing(case, found[0], mean(data, windows, divisor), absolute * max(1, (column + row) / 16), 'fp64')
    if rival[0] is None:
        return failed
    return failed + differing(case, found[0], rival[0].astype('f8'), absolute * max(1, column * row / 8), 'torch')


def settle(case, random):
    """What the recording left to chance."""
    for name in ('divisor_override', 'ceil_mode'):
        if isinstance(case.get(name), dict):
            choices = case[name]['drawn_from']
            is_range = name == 'divisor_override'
            case[name] = int(random.integers(*choices, endpoint=True)) if is_range else True  # inf is no zero


def check_results(library, cases, cap):
    failed = over = 0
    for case in cases:
        random = numpy.random.default_rng([SEED, case['case_id']])
        settle(case, random)
        if max(math.prod(case['self_shape']), math.prod(out_shape(case))) > cap:
            over += 1
            continue
        if is_forward(case) and case.get('out_shape', out_shape(case)) != out_shape(case):
            failed += 1
            print(f'FAILED {case["op"]} case {case["case_id"]}: {out_shape(case)} here, {case["out_shape"]} recorded')
            continue
        failed += (check_forward if is_forward(case) else check_backward)(library, case, random)
    print(f'results: {len(cases)} cases, {over} left out (over {cap} elements), {failed} failed, against fp64'
          f'{" and torch " + torch.__version__ if torch else "; torch is not installed"}')
    return failed


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0])
    parser.add_argument('--library', required=True)
    parser.add_argument('--shared', type=pathlib.Path, required=True)
    parser.add_argument('--max-elements', type=float, default=4e6, help='larger cases are left out')
    arguments = parser.parse_args()

    files = [arguments.shared / 'cases' / f'{group}_{kind}.jsonl'
             for kind in ('status', 'results') for group in ('five', 'family')]
    for path in files:
        if not path.is_file():
            print(f'skipped: the cases that were recorded on a card are not at {path}')
            return 77
    os.environ['POOLGRAD_SOC'] = 'Ascend910B'  # the product the cases were recorded for
    library = poolgrad_ctypes.Library(arguments.library)
    failed = sum(check_status(library, cases_in(path)) for path in files[:2])
    failed += sum(check_results(library, cases_in(path), int(arguments.max_elements)) for path in files[2:])
    return 1 if failed else 0


if __name__ == '__main__':
    poolgrad_ctypes.need('numpy')
    import numpy
    try:
        import torch
    except ImportError:
        torch = None
    sys.exit(main())
