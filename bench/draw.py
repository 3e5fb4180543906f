#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random problems for bench.py --random, from this distribution:

    operator   all nineteen, those of OPERATORS, in turn, so that a small number of problems has all of them equally
               often; or those of one of GROUPS in turn
    type       f32, f16 or bf16; in one of 16 adaptive averages f64, of which the operator takes one output only
    indices    i32 or i64, as far as the operator takes them; masks are the operator's own
    layout     planar or channels last
    plane      H and W from 5 to 224, D from 3 to 64, odd as often as even; in half of the problems H = W
    windows    kernel 1 to 7, one in eight 8 to 16; stride 1 to kernel; in half of the problems padding from 0 to half
               of the kernel; in half ceil; one in four has values of its own for each axis. Max with indices: one in
               four has dilation 2 or 3. Averages: half count the padding, one in eight has a divisor from 1 to 64.
    outputs    of adaptive operators 1 to twice the input along each axis; in one of four they divide it; in half of the
               problems with H = W as many along both
    bytes      64 KB to 512 MB that a call must move at least; for a GPU from 16 MB
    channels   1 to 2048, in half of the problems a multiple of 8 where there are so many; at least a 1024th of the
               planes, so that the batch, which makes up the bytes, stays in the thousands

Lengths of planes, outputs of adaptive operators, bytes and channels are drawn so that each doubling is as likely as
the next one; all else is equally likely. A window that does not fit its padded plane is drawn again with the plane, and
so is a plane that is larger than the bytes.

    python3 bench/draw.py 60 1                   the 60 problems of seed 1, as rows for bench.py --rows
    python3 bench/draw.py 60 1,2 cuda            60 of seed 1 and 60 of seed 2, for a GPU
    python3 bench/draw.py 60 1 cpu backward5     of the five first backward operators alone

A seed draws other problems for each group. Those of backward5 are what a seed drew before there were other operators.
"""

import dataclasses
import math
import random
import re
import sys
from typing import Callable, Optional

LEAST_BYTES, MOST_BYTES = {'cpu': 64 << 10, 'cuda': 16 << 20}, 512 << 20
MOST_CHANNELS, USUAL_BATCH = 2048, 1024
BYTES_OF = {'f32': 4, 'f16': 2, 'bf16': 2, 'f64': 8, 'i32': 4, 'i64': 8}
FLOATS = ('f32', 'f16', 'bf16')


class Draws:
    """Only random() and exact arithmetic, so that a seed means the same on every machine and with every Python."""

    def __init__(self, seed):
        self.random = random.Random(seed).random

    def between(self, low, high):
        return low + int(self.random() * (high - low + 1))

    def one_in(self, odds):
        return self.between(1, odds) == 1

    def pick(self, items):
        return items[self.between(0, len(items) - 1)]

    def doubling(self, low, high):
        """Each doubling of low is as likely as the next one, up to high; within one all numbers are."""
        doublings, last = 0, low
        while 2 * last <= high + 1:
            doublings, last = doublings + 1, 2 * last
        at = self.random() * (doublings + (high + 1 - last) / last)
        return min(high, int(low * 2 ** int(at) * (1 + at - int(at))))

    def length(self, low, high):
        """Of an axis, odd as often as even; low is odd and high even."""
        return low + (self.doubling(low, high) - low) // 2 * 2 + self.between(0, 1)


def by_x(sizes):
    return 'x'.join(map(str, sizes))


# --- kinds of operators: the outputs along each axis (0 where no window fits), and the words that say so -----------

def outputs(length, kernel, stride, pad, dilation, ceil):
    room = length + 2 * pad - dilation * (kernel - 1) - 1
    if room < 0:
        return 0
    out = (room + (stride - 1 if ceil else 0)) // stride + 1
    return out - 1 if ceil and (out - 1) * stride >= length + pad else out


def sliding(draws, size, dilates):
    axes = len(size) if draws.one_in(4) else 1
    padded, dilated, ceil = draws.one_in(2), dilates and draws.one_in(4), draws.one_in(2)
    kernel = [draws.between(8, 16) if draws.one_in(8) else draws.between(1, 7) for _ in range(axes)]
    stride = [draws.between(1, k) for k in kernel]
    pad = [draws.between(0, k // 2) if padded else 0 for k in kernel]
    dilation = [draws.between(2, 3) if dilated else 1 for _ in kernel]
    each = zip(*(values * (len(size) // axes) for values in (kernel, stride, pad, dilation)))
    out = [outputs(length, *window, ceil) for length, window in zip(size, each)]
    words = f'kernel={by_x(kernel)} stride={by_x(stride)}'
    words += f' pad={by_x(pad)}' if any(pad) else ''
    words += f' dilation={by_x(dilation)}' if dilated else ''
    return out, words + (' ceil' if ceil else '')


def sliding_max(draws, size):
    return sliding(draws, size, True)


def sliding_plain(draws, size):
    return sliding(draws, size, False)


def sliding_average(draws, size):
    out, words = sliding(draws, size, False)
    words += ' include_pad' if draws.one_in(2) else ''
    return out, words + (f' divisor={draws.between(1, 64)}' if draws.one_in(8) else '')


def adaptive(draws, size):
    if draws.one_in(4):
        out = [draws.pick([part for part in range(1, length + 1) if length % part == 0]) for length in size]
    else:
        out = [draws.doubling(1, 2 * length) for length in size]
    if size[-1] == size[-2] and draws.one_in(2):
        out[-1] = out[-2]
    return out, f'out={by_x(out)}'


def one_output(_, size):
    out = [1] * len(size)
    return out, f'out={by_x(out)}'


# --- bytes of a plane beside its cells and outputs, for so many outputs and such windows ----------------------------

def kernel_cells(words):
    kernel = re.search(r'kernel=([\dx]+)', words).group(1).split('x')
    return math.prod(map(int, kernel if len(kernel) > 1 else 2 * kernel))


def mask_read(results, words):
    """The indices that are packed in it; windows of one cell need none."""
    return 4 * results if kernel_cells(words) > 1 else 0


def mask_written(results, words):
    """All of it."""
    return kernel_cells(words) * (-(-results // 16) + 1) * 32


@dataclasses.dataclass(frozen=True)
class Operator:
    name: str
    short: str  # of its rows
    spatial: int
    kind: Callable
    last: str  # the words for channels last: a format, or strides where the operator has no such format
    indices: tuple = ()
    types: tuple = FLOATS
    mask: Optional[Callable] = None


INDICES = ('i32', 'i64')
LAST_AVERAGE = 'grad_out=permuted grad_in=permuted'
LAST_MAX = LAST_AVERAGE + ' indices=permuted'
LAST_FORWARD = 'self=permuted grad_out=permuted'
OPERATORS = (
    Operator('max_pool2d', 'mp2', 2, sliding_max, 'nhwc', INDICES),
    Operator('avg_pool2d', 'ap2', 2, sliding_average, LAST_AVERAGE),
    Operator('adaptive_max_pool2d', 'amp2', 2, adaptive, LAST_MAX, INDICES),
    Operator('adaptive_max_pool3d', 'amp3', 3, adaptive, LAST_MAX, INDICES),
    Operator('adaptive_avg_pool3d', 'aap3', 3, adaptive, LAST_AVERAGE, types=5 * FLOATS + ('f64',)),
    Operator('max_pool2d_mask', 'mp2m', 2, sliding_plain, LAST_AVERAGE, mask=mask_read),
    Operator('max_pool3d', 'mp3', 3, sliding_max, LAST_MAX, INDICES),
    Operator('avg_pool3d', 'ap3', 3, sliding_average, LAST_AVERAGE),
    Operator('adaptive_avg_pool2d', 'aap2', 2, adaptive, LAST_AVERAGE),
    Operator('max_pool_forward', 'f.mp', 2, sliding_plain, LAST_FORWARD),
    Operator('max_pool2d_forward', 'f.mp2', 2, sliding_max, 'nhwc', INDICES),
    Operator('max_pool2d_mask_forward', 'f.mp2m', 2, sliding_plain, LAST_FORWARD, mask=mask_written),
    Operator('max_pool3d_forward', 'f.mp3', 3, sliding_max, 'ndhwc', INDICES),
    Operator('avg_pool2d_forward', 'f.ap2', 2, sliding_average, LAST_FORWARD),
    Operator('avg_pool3d_forward', 'f.ap3', 3, sliding_average, LAST_FORWARD),
    Operator('adaptive_max_pool2d_forward', 'f.amp2', 2, adaptive, 'nhwc', ('i64',)),
    Operator('adaptive_max_pool3d_forward', 'f.amp3', 3, adaptive, LAST_FORWARD + ' indices=permuted', INDICES),
    Operator('adaptive_avg_pool2d_forward', 'f.aap2', 2, adaptive, LAST_FORWARD),
    Operator('adaptive_avg_pool3d_forward', 'f.aap3', 3, adaptive, LAST_FORWARD),
)
GROUPS = {'all': OPERATORS, 'backward5': OPERATORS[:5], 'backward': OPERATORS[:9], 'forward': OPERATORS[9:]}
LAST = {word for operator in OPERATORS for word in operator.last.split()}


# --- problems ---------------------------------------------------------------------------------------------------------

def plane_size(draws, spatial):
    height = draws.length(5, 224)
    width = height if draws.one_in(2) else draws.length(5, 224)
    return [draws.length(3, 64), height, width] if spatial == 3 else [height, width]


def batch_and_channels(draws, planes):
    least = min(MOST_CHANNELS, -(-planes // USUAL_BATCH))
    channels = draws.doubling(least, min(MOST_CHANNELS, planes))
    if channels >= 8 and draws.one_in(2):
        channels -= channels % 8
    return max(1, (planes + channels // 2) // channels), channels


def problem(draws, operator, least_bytes):
    """A line in the language of tests/problem.h."""
    floats = draws.pick(operator.types)
    index = draws.pick(operator.indices) if operator.indices else ''
    last = draws.one_in(2)
    kind = one_output if floats == 'f64' else operator.kind
    wanted = draws.doubling(least_bytes, MOST_BYTES)
    while True:
        size = plane_size(draws, operator.spatial)
        out, words = kind(draws, size)
        cells, results = math.prod(size), math.prod(out)
        plane_bytes = cells * BYTES_OF[floats] + results * (BYTES_OF[floats] + BYTES_OF.get(index, 0))
        plane_bytes += operator.mask(results, words) if operator.mask else 0
        if results == 0 or plane_bytes > wanted:
            continue
        n, c = batch_and_channels(draws, wanted // plane_bytes)
        if least_bytes <= n * c * plane_bytes <= MOST_BYTES:
            said = [operator.name, floats, index, f'in={by_x([n, c, *size])}', words, operator.last if last else '']
            return ' '.join(word for word in said if word)


def rows(count, seed, device='cpu', group='all'):
    """Names and problems; the first ones are the same for every count."""
    draws, found, operators = Draws(seed), [], GROUPS[group]
    for number in range(count):
        operator = operators[number % len(operators)]
        found.append((f'{operator.short}.{number + 1}', problem(draws, operator, LEAST_BYTES[device])))
    return found


def relatives(line):
    """What a problem is compared with so that all else is equal: one in a 16-bit type with the same problem in f32, of
    half as many images where there are several, so that the bytes are about the same; one with channels last with the
    same problem in planes. Names for their results, and their lines."""
    words, found = line.split(), []
    if words[1] in ('f16', 'bf16'):
        batch, rest = next(word for word in words if word.startswith('in=')).removeprefix('in=').split('x', 1)
        images = f'in={(int(batch) + 1) // 2}x{rest}'
        found.append(('as f32', ' '.join([words[0], 'f32', *(images if word.startswith('in=') else word
                                                              for word in words[2:])])))
    planes = [word for word in words if word not in LAST]
    return found + ([('as planar', ' '.join(planes))] if planes != words else [])


def fewer(line, planes, last):
    """The problem with about so many planes, at least one image; with channels last all channels stay."""
    words = line.split()
    at = next(i for i, word in enumerate(words) if word.startswith('in='))
    images, channels, *size = map(int, words[at].removeprefix('in=').split('x'))
    kept = max(1, min(images, planes // channels))
    words[at] = f'in={by_x([kept, channels if last else max(1, min(channels, planes // kept)), *size])}'
    return ' '.join(words)


def seeds_of(text):
    """A list such as 201,202,203."""
    seeds = [int(word) for word in text.split(',')]
    if len(set(seeds)) < len(seeds):
        raise ValueError('a seed is there twice')
    return seeds


def rows_of_seeds(count, seeds, device='cpu', group='all'):
    """So many problems of each seed. With several seeds a name has its seed in it: mp2.201.1."""
    def named(name, seed):
        operator, number = name.rsplit('.', 1)
        return f'{operator}.{seed}.{number}' if len(seeds) > 1 else name
    return [(named(name, seed), line) for seed in seeds for name, line in rows(count, seed, device, group)]


if __name__ == '__main__':
    if len(sys.argv) not in (3, 4, 5):
        sys.exit(__doc__)
    for name, line in rows_of_seeds(int(sys.argv[1]), seeds_of(sys.argv[2]), *sys.argv[3:]):
        print(f'{name}: {line}')
