# SPDX-License-Identifier: Apache-2.0
"""How many instructions problems take on a GPU, counted by NVIDIA's profiler (ncu).

A GPU issues at most one instruction per cycle in each quarter of a multiprocessor. So the instructions of a call,
divided by that rate, are a time that no change of its memory accesses can go below.

As a program, under ncu: counts.py BUILD < LINES computes each problem once, with a kernel of another name behind it."""

import csv
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys

QUARTERS = 4
MARK = 'count_poison'  # the kernel that ends a problem
METRICS = {'smsp__inst_executed.sum': 'instructions', 'sm__cycles_elapsed.avg.per_second': 'hertz',
           'dram__bytes.sum': 'bytes'}


def count(build, lines, multiprocessors):
    """Of each problem the least microseconds that its instructions take to be issued, and the bytes that it moved.
    Raises RuntimeError where they cannot be counted."""
    ncu = shutil.which('ncu')
    if not ncu:
        raise RuntimeError('there is no ncu')
    command = [ncu, '--csv', '--page', 'raw', '--print-units', 'base', '--clock-control', 'none', '--metrics',
               ','.join(METRICS), sys.executable, os.path.abspath(__file__), str(build)]
    done = subprocess.run(command, input='\n'.join(lines), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding='utf-8', check=False)
    table = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if done.returncode != 0 or len(table) < 2:
        raise RuntimeError(f'ncu: {(done.stderr or done.stdout).strip()[-200:]}')
    found = sums(csv.DictReader(table), multiprocessors)
    if len(found) != len(lines):
        raise RuntimeError(f'ncu saw {len(found)} of {len(lines)} problems')
    return found


def sums(kernels, multiprocessors):
    """The second row of ncu's table has the units, and no kernel."""
    found, us, moved = [], 0.0, 0.0
    for kernel in kernels:
        if MARK in kernel['Kernel Name']:
            found.append((us, moved))
            us = moved = 0.0
        elif kernel['Kernel Name']:
            values = {name: float(kernel[metric].replace(',', '')) for metric, name in METRICS.items()}
            us += 1e6 * values['instructions'] / (QUARTERS * multiprocessors * values['hertz'])
            moved += values['bytes']
    return found


def compute(build, lines):
    """What ncu watches."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    os.environ['POOLGRAD_DEVICES'] = 'cuda'
    import contestants
    import cuda
    ctypes.CDLL(str((build / 'lib64/libpoolgrad.so').resolve()))
    native, device = contestants.Native(build / 'bench'), cuda.Device(build / 'bench')
    for line in lines:
        row = contestants.Row(native, line, 1, len(os.sched_getaffinity(0)), False)
        why = ctypes.create_string_buffer(contestants.TEXT)
        if row.so.bench_call(row.handle, 0, 1, 1, why) < 0:
            sys.exit(f'{line}: {why.value.decode()}')
        facts = row.facts
        device.so.cuda_unwritten(row.address(0, facts.result), facts.result_elements, facts.element_bytes)
        row.close()


if __name__ == '__main__':
    compute(pathlib.Path(sys.argv[1]), sys.stdin.read().splitlines())
