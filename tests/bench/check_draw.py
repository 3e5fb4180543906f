#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_draw.py ACCEPT_PROBLEMS: what bench/draw.py says of its problems is true, and the library accepts every one."""

import pathlib
import re
import subprocess
import sys
import zlib

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'bench'))
import draw

COUNT, SEED = 2000, 3
# Of the first 500 problems of seed 1 in each group, on every machine and with every Python. They change with the
# distribution alone, and then figures of one seed cannot be compared any more.
CHECKSUMS = {'all': 0xfe44ca95, 'backward5': 0xbfcced65, 'backward': 0x864bcdc6, 'forward': 0x105dfe9e}
# Patterns of problem lines, and in which part of the problems they are at least and at most: wide enough for the chance
# in 2000 of them.
SHARES = [
    *((f'^{operator.name} ', 0.75 / len(draw.OPERATORS), 1.25 / len(draw.OPERATORS)) for operator in draw.OPERATORS),
    (' f32 ', 0.25, 0.4), (' f16 ', 0.25, 0.4), (' bf16 ', 0.25, 0.4), (' f64 .*out=1x1x1', 0.0005, 0.01),
    (' i32 ', 0.1, 0.25), (' i64 ', 0.15, 0.3),
    ('nhwc|ndhwc|grad_out=permuted grad_in=permuted|self=permuted grad_out=permuted', 0.4, 0.6),
    (r'in=\S*[02468]( |$)', 0.4, 0.6), (r'in=\S*x(\d+)x\1( |$)', 0.4, 0.6),
    (' pad=', 0.15, 0.35), (' ceil', 0.2, 0.4), (' dilation=', 0.02, 0.1), (' include_pad', 0.05, 0.15),
    (' divisor=', 0.01, 0.05), (r' kernel=\d+x', 0.1, 0.2), (r' kernel=(\d+x)*([89]|1\d)\b', 0.04, 0.14),
    (r' out=1x1\b', 0.01, 0.1),
]


def sizes(word, line):
    found = re.search(rf' {word}=([\dx]+)', line)
    return [int(size) for size in found.group(1).split('x')] if found else []


def outside(line):
    """The ranges of draw.py that the line is not in."""
    operator = line.split()[0]
    spatial = 3 if '3d' in operator else 2
    _, channels, *size = sizes('in', line)
    kernel, stride, out = sizes('kernel', line), sizes('stride', line), sizes('out', line)
    held = {'channels': 1 <= channels <= 2048, 'rank': len(size) == spatial,
            'plane': all(5 <= length <= 224 for length in size[-2:]),
            'depth': spatial == 2 or 3 <= size[0] <= 64,
            'kernel': all(1 <= k <= 16 for k in kernel),
            'stride': len(kernel) == len(stride) and all(1 <= s <= k for s, k in zip(stride, kernel)),
            'pad': all(2 * p <= k for p, k in zip(sizes('pad', line), kernel)),
            'dilation': operator.startswith(('max_pool2d', 'max_pool3d')) and 'mask' not in operator
                        or ' dilation=' not in line,
            'outputs': all(1 <= o <= 2 * i for o, i in zip(out, size)) and len(out) in (0, spatial)}
    return [name for name, good in held.items() if not good]


def check_operators():
    """All that the language of problems has, so that a new one is not forgotten."""
    text = (ROOT / 'tests/problem.c').read_text(encoding='utf-8')
    words = re.search(r'operators\[POOL_OPERATORS\] = {(.*?)};', text, re.S).group(1)
    differing = set(re.findall(r'"(\w+)"', words)) ^ {operator.name for operator in draw.OPERATORS}
    return [f'{name} is in only one of tests/problem.c and bench/draw.py' for name in sorted(differing)]


def check_fewer():
    """Planes are taken away image by image, then channel by channel where they are planes."""
    wanted = {(20, False): '2x8x5x6', (5, False): '1x5x5x6', (0, False): '1x1x5x6', (99, False): '4x8x5x6',
              (20, True): '2x8x5x6', (5, True): '1x8x5x6'}
    found = {key: draw.fewer('max_pool2d f32 in=4x8x5x6 kernel=2', *key) for key in wanted}
    return [f'{found[key]} has not in={size}' for key, size in wanted.items() if f' in={size} kernel=2' not in found[key]]


def check_ranges(lines):
    problems = [f'{line}: {", ".join(outside(line))}' for line in lines if outside(line)]
    for pattern, least, most in SHARES:
        share = sum(bool(re.search(pattern, line)) for line in lines) / len(lines)
        if not least <= share <= most:
            problems.append(f'"{pattern}" is in {share:.1%} of the problems, not in {least:.1%} to {most:.1%}')
    return problems


def check_accepted(program, lines, least):
    """By the library; and the bytes are those that were asked for, every doubling about as often as the next."""
    done = subprocess.run([program], input='\n'.join(lines) + '\n', stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding='utf-8')
    if done.returncode != 0:
        return [f'refused: {done.stderr}']
    moved = [int(number) for number in done.stdout.split()]
    problems = [f'{line}: {bytes_moved} bytes' for line, bytes_moved in zip(lines, moved)
                if not least <= bytes_moved <= 512 << 20]
    doublings = (512 << 20).bit_length() - least.bit_length()
    for i in range(doublings):
        share = sum(least << i <= bytes_moved < least << (i + 1) for bytes_moved in moved) / len(moved)
        if not 0.5 <= share * doublings <= 1.5:
            problems.append(f'{share:.1%} of the problems have {least << i} to {least << (i + 1)} bytes')
    return problems if len(moved) == len(lines) else problems + [f'{len(moved)} answers']


def bytes_moved(program, lines):
    done = subprocess.run([program], input='\n'.join(lines) + '\n', stdout=subprocess.PIPE, check=True,
                          encoding='utf-8')
    return [int(number) for number in done.stdout.split()]


def check_bytes_of_relatives(program, lines):
    """The same in planes. In f32 of half as many images they are a little less, since indices are no larger; where the
    images cannot be halved they are up to twice as many."""
    pairs = [(line, kind, other) for line in lines for kind, other in draw.relatives(line)]
    before, after = (bytes_moved(program, [pair[at] for pair in pairs]) for at in (0, 2))
    return [f'{line}, {kind}: {moved} bytes instead of {was}'
            for (line, kind, _), was, moved in zip(pairs, before, after)
            if not (moved == was if kind == 'as planar' else 0.5 * was <= moved <= 2 * was)]


def check_repeats():
    rows, problems = draw.rows(500, 1), []
    for group, wanted in CHECKSUMS.items():
        text = '\n'.join(f'{name}: {line}' for name, line in draw.rows(500, 1, group=group))
        checksum = zlib.crc32(text.encode())
        problems += [] if checksum == wanted else [f'{group}: the checksum of seed 1 is {checksum:#010x}, not '
                                                   f'{wanted:#010x}']
    if CHECKSUMS.keys() != draw.GROUPS.keys():
        problems.append(f'the groups are {", ".join(draw.GROUPS)}')
    if draw.rows(20, 1) != rows[:20] or draw.rows(500, 1) != rows:
        problems.append('a second draw of seed 1 has other problems')
    if draw.rows(20, 2) == rows[:20] or draw.rows(20, 1, 'cuda') == rows[:20]:
        problems.append('another seed or device has the same problems')
    return problems


def check_seeds():
    """A list of seeds has the problems of each, under names that are unique and begin with their operators."""
    rows = draw.rows_of_seeds(20, [1, 12, 2])
    problems = [] if len({name for name, _ in rows}) == 60 else ['two problems of different seeds have one name']
    if [line for _, line in rows] != [line for seed in (1, 12, 2) for _, line in draw.rows(20, seed)]:
        problems.append('a list of seeds has other problems than its seeds')
    named = [rows[i][0] for i in (0, 24, 29)] == ['mp2.1.1', 'aap3.12.5', 'f.mp.12.10']
    if not named or draw.rows_of_seeds(20, [7]) != draw.rows(20, 7):
        problems.append(f'the names are {rows[0][0]}, {rows[24][0]}, {rows[29][0]}, {draw.rows_of_seeds(1, [7])[0][0]}')
    for text in ('1,2,1', '1,', 'one'):
        try:
            problems.append(f'"{text}" is read as the seeds {draw.seeds_of(text)}')
        except ValueError:
            pass
    return problems if draw.seeds_of('201,202') == [201, 202] else problems + ['201,202 are other seeds']


def check_relatives():
    """Each line but the ones that have none, in the order in which they are timed."""
    wanted = {
        'max_pool2d f16 i64 in=3x7x9x9 kernel=3 stride=2 nhwc': [
            ('as f32', 'max_pool2d f32 i64 in=2x7x9x9 kernel=3 stride=2 nhwc'),
            ('as planar', 'max_pool2d f16 i64 in=3x7x9x9 kernel=3 stride=2')],
        'adaptive_avg_pool3d bf16 in=1x7x9x9x9 out=2x2x2 grad_out=permuted grad_in=permuted': [
            ('as f32', 'adaptive_avg_pool3d f32 in=1x7x9x9x9 out=2x2x2 grad_out=permuted grad_in=permuted'),
            ('as planar', 'adaptive_avg_pool3d bf16 in=1x7x9x9x9 out=2x2x2')],
        'adaptive_max_pool3d f32 i32 in=4x7x9x9x9 out=2x2x2 grad_out=permuted grad_in=permuted indices=permuted': [
            ('as planar', 'adaptive_max_pool3d f32 i32 in=4x7x9x9x9 out=2x2x2')],
        'max_pool3d_forward f32 i64 in=3x7x9x9x9 kernel=3 ndhwc': [
            ('as planar', 'max_pool3d_forward f32 i64 in=3x7x9x9x9 kernel=3')],
        'avg_pool2d_forward f32 in=3x7x9x9 kernel=3 self=permuted grad_out=permuted': [
            ('as planar', 'avg_pool2d_forward f32 in=3x7x9x9 kernel=3')],
        'avg_pool2d f32 in=4x7x9x9 kernel=2 stride=2': [], 'adaptive_avg_pool3d f64 in=4x7x9x9x9 out=1x1x1': []}
    return [f'the relatives of {line} are {draw.relatives(line)}' for line, found in wanted.items()
            if draw.relatives(line) != found]


def main():
    program, problems = sys.argv[1], check_operators() + check_fewer()
    problems += check_repeats() + check_seeds() + check_relatives()
    for device, least in ('cpu', 64 << 10), ('cuda', 16 << 20):
        lines = [line for _, line in draw.rows(COUNT, SEED, device)]
        problems += check_ranges(lines) + check_accepted(program, lines, least)
        problems += check_bytes_of_relatives(program, lines[:200])
    print('\n'.join(problems[:20]) or f'{2 * COUNT} problems are as stated, and accepted')
    return 1 if problems else 0


sys.exit(main())
