#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_examples.py <build folder>

Runs tools/run_examples.sh with an installed tree in a folder with a blank in its name, and compares
the numbers that the examples print with those that follow from the definition of each operator.
Examples that fail must end the run with a sentence.

Exit: 0 all is as it should be, 1 something is not.
"""

import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / 'tools/run_examples.sh'
WRONG = (  # an example, and what the run must say of it
    ('int main(void) { return 3; }', 'failed with status 3'),
    ('int main(void) { return 0; }', 'ended without its line "summary: ..."'),
    ('int main(void) { return missing; }', 'does not compile'),
)
# Likewise, of round_trip.c with a wrong gradient, and with operators that do nothing.
WRONG_TRIPS = (
    (r'(aclnnAvgPool2dBackward, .*?true, )0', r'\g<1>3', 'aclnnAvgPool2d: the gradient of cell 0 is'),
    (r'  RUN\(aclnnAdaptiveAvgPool2d(Backward)?, .*?\);\n', '', 'AvgPool2d: gradients of 78 in all, 0 arrived'),
)
MISTAKE = re.compile(r'a mistake on purpose: .*\n +.*aclDestroyTensor|a mistake on purpose: .*\n.*POOLGRAD_INDEX_CHECK')


def as_float(value):
    """The number as the examples have it, 32 bits, and print it: six digits."""
    return float(f'{struct.unpack("f", struct.pack("f", value))[0]:g}')


def adaptive(length, outputs):
    """The windows of adaptive pooling along one axis: the cells of each, and how many its divisor counts."""
    ranges = [range(o * length // outputs, -(-(o + 1) * length // outputs)) for o in range(outputs)]
    return [(cells, len(cells)) for cells in ranges]


def sliding(length, kernel, stride, padding=0):
    """The same for windows that slide, with as much padding on either side, which counts."""
    starts = range(-padding, length + padding - kernel + 1, stride)
    return [([i for i in range(start, start + kernel) if 0 <= i < length], kernel) for start in starts]


def windows(*axes):
    """(cells, divisor) of each output: the flat positions in a plane whose axes are (length, windows) each."""
    found = [([0], 1)]
    for length, along in axes:
        found = [([i * length + j for i in cells for j in more], divisor * count)
                 for cells, divisor in found for more, count in along]
    return found


def positions_of_maxima(plane, outputs):
    """The first one, where several cells are equal."""
    return [max(cells, key=lambda i: (plane[i], -i)) for cells, _ in outputs]


def with_maxima(plane, outputs):
    """The maxima, then where they are: what most of the max operators give."""
    positions = positions_of_maxima(plane, outputs)
    return [plane[i] for i in positions] + positions


def means(plane, outputs):
    return [sum(plane[i] for i in cells) / divisor for cells, divisor in outputs]


def scattered(cells, gradients, positions):
    """The gradient of max pooling: each goes to the cell that its index names; others are dropped."""
    result = [0.0] * cells
    for gradient, position in zip(gradients, positions):
        if position < cells:
            result[position] += gradient
    return result


def spread(cells, gradients, outputs):
    """The gradient of average pooling: each is divided among the cells of its window."""
    result = [0.0] * cells
    for gradient, (window, divisor) in zip(gradients, outputs):
        for i in window:
            result[i] += gradient / divisor
    return result


def round_trip():
    """The first slice of cells of each pair: nine of them, averages and maxima in two and three dimensions."""
    def first(kind, *lengths):
        outputs = windows(*((length, sliding(length, 2, 1)) for length in lengths))
        cells, gradients = math.prod(lengths), range(1, len(outputs) + 1)
        if kind == 'average':
            return spread(cells, gradients, outputs)[:12]
        plane = [i * 7 % (2 * cells) for i in range(cells)]
        return scattered(cells, gradients, positions_of_maxima(plane, outputs))[:12]

    average, maximum = ((first(kind, 3, 4), first(kind, 3, 3, 4)) for kind in ('average', 'max'))
    return sum([*average, *maximum, *average, maximum[0], maximum[0], maximum[1]], [])


ROWS = list(range(1, 17))
IMAGE = [1, 2, 8, 3, 4, 7, 5, 6, 9, 3, 1, 2, 5, 4, 8, 10]
VOLUME = [1, 9, 2, 3, 4, 5, 6, 7, 8, 7, 6, 5, 4, 3, 10, 1]
ADAPTIVE_3 = windows((3, adaptive(3, 2)), (3, adaptive(3, 2)))
SQUARES = windows((4, sliding(4, 2, 2)), (4, sliding(4, 2, 2)))
CUBES = windows((2, sliding(2, 2, 2)), (2, sliding(2, 2, 2)), (4, sliding(4, 2, 2)))

EXPECTED = {
    'adaptive_avg_pool2d': means(ROWS, ADAPTIVE_3) + spread(9, [4, 8, 12, 16], ADAPTIVE_3),
    'adaptive_avg_pool3d': means(ROWS, windows((2, adaptive(2, 2)), (2, adaptive(2, 1)), (2, adaptive(2, 1)))),
    'adaptive_avg_pool3d_backward': [x for row in range(4) for x in spread(4, [2 * row + 1, 2 * row + 2],
                                                                            windows((4, adaptive(4, 2))))],
    'adaptive_max_pool2d': with_maxima([9, 1, 2, 3, 4, 8, 5, 7, 6], ADAPTIVE_3),
    'adaptive_max_pool2d_backward': scattered(4, [0.4757], [0]) + scattered(4, [0.4757], [6]),
    'adaptive_max_pool3d': with_maxima([1, 8, 3, 6, 5, 4, 7, 2], windows((2, adaptive(2, 1)), (2, adaptive(2, 2)),
                                                                         (2, adaptive(2, 2)))),
    'adaptive_max_pool3d_backward': scattered(18, [1, 2, 3, 4], [13, 13, 13, 17]),
    'avg_pool2d': means(ROWS, windows((3, sliding(3, 3, 2, 1)), (3, sliding(3, 3, 2, 1)))),
    'avg_pool2d_backward': spread(16, [1], [(range(16), 16)]) * 2,
    'avg_pool3d': means(ROWS, CUBES) + spread(16, [8, 16], CUBES),
    'max_pool': with_maxima([1, 5, 2, 6, 9, 3, 8, 4, 7, 12, 16, 10, 13, 11, 14, 15],
                            windows((4, sliding(4, 2, 2, 1)), (4, sliding(4, 2, 2))))[:6],
    'max_pool2d_with_indices': with_maxima(IMAGE, SQUARES),
    'max_pool2d_with_indices_backward': scattered(12, [0.4757, 0.1726], [0, 6]),
    'max_pool2d_with_mask': with_maxima(IMAGE, SQUARES)[:4] + scattered(
        16, [1, 2, 3, 4], positions_of_maxima(IMAGE, SQUARES)),
    'max_pool3d_with_argmax': with_maxima(VOLUME, CUBES) + scattered(16, [1, 2], positions_of_maxima(VOLUME, CUBES)),
    'round_trip': round_trip(),
    'streams': [1] * 8,
    'tensors': [3 * 4 * 5, 1, 5 * 3, 3],  # strides of n, c, h, w where c is the innermost
}


def wrong_programs():
    """(program, sentence): each must fail, and say so."""
    yield from WRONG
    trip = (ROOT / 'examples/round_trip.c').read_text()
    for pattern, becomes, sentence in WRONG_TRIPS:
        yield re.sub(pattern, becomes, trip, flags=re.S), sentence


def run(*command):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(('POOLGRAD_', 'ASCEND_'))}
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding='utf-8', env=environment, check=False)
    return done.returncode, done.stdout


def numbers(text):
    """What the indented lines hold that have nothing but numbers and bars."""
    lines = re.findall(r'^ +([-+.e\d |]+)$', text, re.M)
    return [float(word) for line in lines for word in line.replace('|', ' ').split()]


def problems_with(printed):
    """What is wrong with the output of a good run."""
    body, _, summary = printed.partition('== what the examples computed\n')
    sections = dict(re.findall(r'^== examples/(\w+)\.c\n(.*?)^$', body, re.M | re.S))
    names = {path.stem for path in (ROOT / 'examples').glob('*.c')}
    if set(sections) != names or names != set(EXPECTED):
        yield f'examples/ has {sorted(names)}, run were {sorted(sections)}, known here are {sorted(EXPECTED)}'
        return
    for name, expected in EXPECTED.items():
        found = numbers(sections[name])
        if found != [as_float(value) for value in expected]:
            yield f'{name} printed {found}, expected {expected}'
    lines = summary.splitlines()
    if len(lines) != len(names) + 1 or lines[-1] != f'{len(names)} examples ran':
        yield f'the summary is not a line for each example and their number:\n{summary}'
    headers = ROOT / 'include/aclnnop'
    for name in re.findall(r'"(aclnn_\w+\.h)"', (headers / 'aclnn_ops_nn.h').read_text()):  # those that pool
        for operator in re.findall(r'\b(aclnn\w+)GetWorkspaceSize\(', (headers / name).read_text()):
            if not re.search(rf'\b{operator}\b', summary):
                yield f'the summary does not name {operator}'
    if len(MISTAKE.findall(body)) != 2:
        yield 'a mistake is not announced by the line before what the library says of it'


def main():
    build = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix='poolgrad examples ') as name:
        folder = pathlib.Path(name)
        status, printed = run('cmake', '--install', build, '--prefix', folder / 'a prefix')
        if status != 0:
            sys.exit(f'FAILED: cannot install {build}\n{printed}')
        status, printed = run('bash', SCRIPT, folder / 'a prefix', folder / 'a build')
        problems = [f'status {status}'] if status else list(problems_with(printed))
        if problems:
            print(printed)
        for program, sentence in wrong_programs():
            source = folder / 'wrong.c'
            source.write_text(program)
            status, printed = run('bash', SCRIPT, folder / 'a prefix', folder / 'a build', source)
            if status != 1 or sentence not in printed or 'ran' in printed.splitlines()[-1]:
                problems.append(f'"{program}" gave status {status}:\n{printed}')
        status, printed = run('bash', SCRIPT, folder / 'nothing', folder / 'a build')
        if status != 1 or 'no library is installed in' not in printed:
            problems.append(f'without a library: status {status}:\n{printed}')
    for problem in problems:
        print(f'FAILED: {problem}')
    if not problems:
        print(f'{len(EXPECTED)} examples print what they should')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
