#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times pooling through PyTorch on the device "npu", which is poolgrad by way of torch_npu, next to PyTorch's own kernels
on the CPU: the same modules and numbers in one process.

    make bench-npu                               the full table, a few minutes
    make bench-npu ARGS="--quick --filter mp2"   passes arguments
    make bench-npu NPU=2.8.0                     with another version of torch

The first table has one tiny call: lone calls, each of which is waited for, and queued ones, a hundred calls for each wait.
The second has rows of rows.txt, each waited for. "both" is forward and backward, "backward" is the gradient alone. The two
take turns in blocks, and each number is the median of all its samples.

torch_npu keeps the memory of tensors that are gone. The C library, which PyTorch's CPU takes memory from, gives large blocks
back to the system, and fetching them again can take longer than pooling. So that kernels are compared, it is told here to
keep them as well; --fresh leaves it as it is in most programs.
"""

import argparse
import ctypes
import datetime
import os
import pathlib
import statistics
import sys
import time

import bench
import report

ROWS = ('mp2.resnet', 'mp2.vgg', 'mp2.incep', 'ap2.incep', 'ap2.dense', 'amp2.head', 'aap2.vgg7', 'mp3.unet', 'aap3.half')
TINY = 'max_pool2d f32 i64 in=1x16x8x8 kernel=2 stride=2'
DEPTH = 100
WORDS = {'kernel': 'kernel_size', 'stride': 'stride', 'pad': 'padding', 'out': 'output_size'}
# Sums are in float32 on both sides; the CPU's are in another order.
TOLERANCE = {'f32': 1e-5, 'bf16': 0.02, 'f16': 0.005}
TINY_HEADS = ['1x16x8x8, max pooling 2x2', 'npu us', 'CPU us', 'ratio']
HEADS = ['row', 'problem', 'npu both ms', 'CPU both ms', 'ratio', 'npu backward ms', 'CPU backward ms', 'ratio']


KEEPING = {'MALLOC_MMAP_MAX_': '0', 'MALLOC_TRIM_THRESHOLD_': str(1 << 40), 'MALLOC_TOP_PAD_': str(1 << 28),
           'MALLOC_ARENA_MAX': '1'}  # of glibc, which reads them when a process starts


class Pool:
    """A problem of rows.txt as a module, on both devices."""

    def __init__(self, torch, line):
        operator, kind, *words = [word for word in line.split() if word not in ('i32', 'i64')]
        given = dict(word.split('=') for word in words if '=' in word)
        sizes = [int(size) for size in given.pop('in').split('x')]
        arguments = {WORDS[word]: tuple(map(int, value.split('x'))) for word, value in given.items()}
        arguments = {word: value[0] if len(value) == 1 else value for word, value in arguments.items()}
        if operator.startswith('avg'):
            arguments['count_include_pad'] = 'include_pad' in words
        self.torch, self.kind = torch, kind
        self.module = getattr(torch.nn, ''.join(part.capitalize() for part in operator.split('_')))(**arguments)
        x = torch.randn(sizes).to({'f32': torch.float32, 'f16': torch.float16, 'bf16': torch.bfloat16}[kind])
        grad = torch.randn(self.module(x).shape).to(x.dtype)
        self.x, self.grad, self.out = {}, {}, {}
        for device in 'npu', 'cpu':
            self.x[device], self.grad[device] = x.to(device, copy=True).requires_grad_(), grad.to(device)
            self.out[device] = self.module(self.x[device])

    def forward(self, device):
        return self.module(self.x[device])

    def both(self, device):
        self.x[device].grad = None
        self.module(self.x[device]).backward(self.grad[device])

    def backward(self, device):
        return self.torch.autograd.grad(self.out[device], self.x[device], self.grad[device], retain_graph=True)[0]

    def difference(self):
        """Of results and gradients, relative to the largest of each."""
        largest = 0.
        for compute in self.forward, self.backward:
            found, expected = (compute(device).detach().cpu().double() for device in ('npu', 'cpu'))
            largest = max(largest, ((found - expected).abs().max() / expected.abs().max()).item())
        return largest


class Clock:
    """Medians of calls that take turns."""

    def __init__(self, torch, quick):
        self.torch = torch
        self.rounds, self.least, self.most, self.budget = (3, 3, 200, 0.1) if quick else (7, 4, 2000, 0.4)

    def block(self, call, device, depth):
        """Seconds per call: samples of one side for a while, after calls that wake its threads."""
        times, end = [], None
        time.sleep(0.005)  # for the other's threads to go to sleep
        for _ in range(2):
            call(device)
        self.torch.npu.synchronize()
        while end is None or len(times) < self.least or (len(times) < self.most and time.perf_counter() < end):
            start = time.perf_counter()
            for _ in range(depth):
                call(device)
            if device == 'npu':
                self.torch.npu.synchronize()
            now = time.perf_counter()
            times.append((now - start) / depth)
            end = end or start + self.budget
        return times

    def __call__(self, call, depth=1):
        """(npu, CPU, whether other processes were in the way)."""
        times, start, others = {'npu': [], 'cpu': []}, time.monotonic(), bench.others_seconds()
        for _ in range(self.rounds):
            for device, found in times.items():
                found += self.block(call, device, depth)
        noisy = bench.others_seconds() - others > 0.05 * (time.monotonic() - start)
        return statistics.median(times['npu']), statistics.median(times['cpu']), noisy


def cells(measured, unit, form):
    ours, theirs, noisy = measured
    mark = '~' if noisy else ''
    return [mark + format(ours * unit, form), mark + format(theirs * unit, form), f'{theirs / ours:.2f}']


def line_of(values):
    return '| ' + ' | '.join(values) + ' |'


def head_of(heads, texts):
    return [line_of(heads), '|' + '|'.join('---' if i < texts else '---:' for i in range(len(heads))) + '|']


def tiny_lines(torch, clock):
    pool = Pool(torch, TINY)
    yield from head_of(TINY_HEADS, 1)
    for title, call in ('forward', pool.forward), ('forward and backward', pool.both):
        for kind, depth in ('lone', 1), ('queued', DEPTH):
            yield line_of([f'{title}, {kind}', *cells(clock(call, depth), 1e6, '.1f')])


def row_lines(torch, clock, rows, notes):
    yield from head_of(HEADS, 2)
    for name, line in rows:
        pool = Pool(torch, line)
        difference = pool.difference()
        if difference > TOLERANCE[pool.kind]:
            notes.append(report.disagreement(name, 'PyTorch', difference))
            continue
        problem = ' '.join(word for word in line.split() if word not in ('i32', 'i64'))
        yield line_of([name, problem, *cells(clock(pool.both), 1e3, '.2f'), *cells(clock(pool.backward), 1e3, '.2f')])


def header(torch, torch_npu, options):
    library = ctypes.CDLL('libascendcl.so')
    library.poolgrad_version.restype = ctypes.c_char_p
    words = ['--quick'] * options.quick + ['--fresh'] * options.fresh
    words += [f'--filter {options.filter}'] if options.filter else []
    words += [f'--threads {options.threads}'] if options.threads != 2 else []
    version = torch.__version__.split('+')[0]
    command = 'make bench-npu' + (f' NPU={version}' if version != '2.7.1' else '')
    command += f' ARGS="{" ".join(words)}"' if words else ''
    return [f'- poolgrad {library.poolgrad_version().decode()} as {torch.npu.get_device_name()}, PyTorch {version}, '
            f'torch_npu {torch_npu.__version__}',
            f'- {bench.cpu_model()}, {os.cpu_count()} CPUs; {options.threads} threads each; freed memory is '
            + ('given back' if options.fresh else 'kept'),
            f'- {datetime.date.today()}, load {os.getloadavg()[0]:.1f} at the start; repeat with `{command}`']


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quick', action='store_true', help='fewer samples')
    parser.add_argument('--fresh', action='store_true', help='memory for PyTorch\'s CPU comes from the system, as usual')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--filter', default='', metavar='TEXT',
                        help='rows with this in their names; "tiny" is the first table')
    parser.add_argument('--markdown', metavar='FILE', help='put the tables between the marks "npu" of this page')
    return parser.parse_args()


def main():
    options = parse()
    if not options.fresh and any(os.environ.get(name) != value for name, value in KEEPING.items()):
        os.environ.update(KEEPING)
        os.execv(sys.executable, [sys.executable, '-u', *sys.argv])
    os.environ['POOLGRAD_THREADS'] = str(options.threads)  # read when the library starts
    import torch
    import torch_npu
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    clock, notes, lines = Clock(torch, options.quick), [], []

    def say(line):
        lines.append(line)
        print(line, flush=True)

    for line in [*header(torch, torch_npu, options), '']:
        say(line)
    if options.filter in 'tiny':
        for line in [*tiny_lines(torch, clock), '']:
            say(line)
    problems = dict(bench.read_rows(pathlib.Path(bench.HERE / 'rows.txt')))
    rows = [(name, problems[name]) for name in ROWS if options.filter in name]
    for line in row_lines(torch, clock, rows, notes) if rows else ():
        say(line)
    if any('~' in line for line in lines):
        notes.append('~: other processes took part of the CPUs.')
    for line in ['', *notes] if notes else ():
        say(line)
    if options.markdown:
        report.put_between_marks(options.markdown, 'npu', lines)


if __name__ == '__main__':
    main()
