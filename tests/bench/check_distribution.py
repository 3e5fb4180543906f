#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what bench.py --random prints and draws, on results whose distribution is known."""

import csv
import pathlib
import sys
import tempfile
import xml.etree.ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'bench'))
import distribution
import report

PEERS = report.CPU_PEERS


def made_up():
    """Shares of 1 to 100 %, in no order; every other problem has a peer that takes twice as long as the limit allows.
    One more was disturbed and must count only where that is said."""
    results = []
    for percent in (37 * i % 101 for i in range(1, 101)):
        line = f'{"max_pool2d" if percent <= 30 else "avg_pool2d"} f32 in=1x1x{percent}x9 kernel=2'
        peers = {'PyTorch': 200.0} if percent % 2 else {}
        results.append(report.Result(f'p.{percent}', line, 'cold', 1000, 1e4 / percent, 100.0, peers,
                                     method='gather' if percent <= 30 else 'rows'))
    results.append(report.Result('noisy', 'max_pool2d', 'cold', 1000, 1e6, 1.0, {'PyTorch': 1.0}, noisy={'poolgrad'},
                                 method='scatter'))
    return results


def check_text(results):
    text = '\n'.join(distribution.summary(PEERS, results, lambda line: f'again {line}'))
    rows = [' '.join(line.replace('|', ' ').split()) for line in text.splitlines()]
    wanted = ['share of the limit 100 38% 10% 50% 90% 1%', 'share, disturbed too 101 33% 10% 50% 90% 0%',
              'PyTorch / poolgrad 50 0.74 0.18 0.98 1.78 0.02',
              'average rows 70 62% 31% p.31', 'max gather 30 12% 1% p.1', 'avg_pool2d 70 62% 31% p.31',
              *(f'{percent}% p.{percent} again max_pool2d f32 in=1x1x{percent}x9 kernel=2' for percent in range(1, 6)),
              '0.02 p.1 again max_pool2d f32 in=1x1x1x9 kernel=2']
    problems = [f'"{line}" is not printed' for line in wanted if line not in rows]
    for unwanted in ('p.6 again', 'noisy', 'scatter', 'oneDNN'):
        if any(unwanted in row for row in rows):
            problems.append(f'"{unwanted}" is printed')
    return problems + ([text] if problems else [])


def check_curves(results, path):
    distribution.write_svg(path, PEERS, 'a <header>', results)
    curves = [element for element in xml.etree.ElementTree.parse(path).iter() if element.tag.endswith('polyline')]
    heights = [[float(point.split(',')[1]) for point in curve.get('points').split()] for curve in curves]
    problems = [] if [len(curve) for curve in heights] == [100, 50] else ['the curves have other points']
    if any(curve != sorted(curve, reverse=True) for curve in heights):
        problems.append('a curve goes down')
    return problems


def check_csv(results, path):
    report.write_csv(path, PEERS, results)
    with open(path, encoding='utf-8') as file:
        rows = {row['row']: row for row in csv.DictReader(file)}
    row = rows['p.25']
    found = [row[name] for name in ('us', 'share', 'pytorch_ratio', 'onednn_ratio', 'method', 'problem')]
    wanted = ['400.000', '0.250', '0.500', '', 'gather', 'max_pool2d f32 in=1x1x25x9 kernel=2']
    return [] if found == wanted and len(rows) == 101 else [f'{len(rows)} rows, p.25 is {found}']


def main():
    results = made_up()
    with tempfile.TemporaryDirectory(prefix='poolgrad-curves-') as folder:
        problems = check_text(results) + check_curves(results, pathlib.Path(folder, 'curves.svg'))
        problems += check_csv(results, pathlib.Path(folder, 'rows.csv'))
    print('\n'.join(problems) or 'the distribution of 100 results is right')
    return 1 if problems else 0


sys.exit(main())
