#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_examples.py <build folder>

Runs tools/run_examples.sh with an installed tree in a folder with a blank in its name, and compares
the numbers that the examples print with those that follow from the definition of each operator.
Examples that fail must end the run with a sentence.

Exit: 0 all is as it should be, 1 something is not.
"""

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
MISTAKE = re.compile(r'a mistake on purpose: .*\n +.*aclDestroyTensor|a mistake on purpose: .*\n.*POOLGRAD_INDEX_CHECK')


def as_float(value):
    """The number as the examples have it, 32 bits, and print it: six digits."""
    return float(f'{struct.unpack("f", struct.pack("f", value))[0]:g}')


def scattered(cells, gradients, positions):
    """Max pooling: each gradient is added to the cell that its index names; others are dropped."""
    result = [0.0] * cells
    for gradient, position in zip(gradients, positions):
        if position < cells:
            result[position] += gradient
    return result


def averaged(length, gradients):
    """Adaptive average pooling of one axis in equal windows that do not overlap."""
    window = length // len(gradients)
    return [gradients[i // window] / window for i in range(length)]


EXPECTED = {
    'adaptive_avg_pool3d_backward': [x for row in range(4) for x in averaged(4, [2 * row + 1, 2 * row + 2])],
    'adaptive_max_pool2d_backward': scattered(4, [0.4757], [0]) + scattered(4, [0.4757], [6]),
    'adaptive_max_pool3d_backward': scattered(18, [1, 2, 3, 4], [13, 13, 13, 17]),
    'avg_pool2d_backward': averaged(16, [1]) * 2,
    'max_pool2d_with_indices_backward': scattered(12, [0.4757, 0.1726], [0, 6]),
    'streams': [1] * 8,
    'tensors': [3 * 4 * 5, 1, 5 * 3, 3],  # strides of n, c, h, w where c is the innermost
}


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
    for path in (ROOT / 'include/aclnnop').glob('aclnn_*backward.h'):
        operator = re.search(r'\b(aclnn\w+)GetWorkspaceSize\(', path.read_text())[1]
        if operator not in summary:
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
        for program, sentence in WRONG:
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
