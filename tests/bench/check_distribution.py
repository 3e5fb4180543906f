#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what bench.py --random prints, draws and writes, on results whose distribution is known."""

import csv
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import xml.etree.ElementTree

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'bench'))
import bench
import counts
import curves
import distribution
import draw
import report

PEERS = report.CPU_PEERS


def line_of(percent):
    """Of the problem with that share: the first 30 are maxima, every third is f32, every fourth has channels last."""
    operator = 'max_pool2d' if percent <= 30 else 'avg_pool2d'
    kind = ('f32', 'f16', 'bf16')[percent % 3]
    return f'{operator} {kind} in=1x1x{percent}x9 kernel=2' + (' grad_in=permuted' if percent % 4 == 0 else '')


def made_up():
    """Shares of 1 to 100 %, in no order; every other problem has a peer that takes twice as long as the limit allows.
    The first 20 are small, and warm the peer takes three times as long as we do, but for one in which it takes half.
    Computing would allow half of the limit in the first 50. In f32 the shares would be twice as high, of one problem disturbed; in planes half as high.
    One more was disturbed and must count only where that is said."""
    results = []
    for percent in (37 * i % 101 for i in range(1, 101)):
        floor = 1 << 20 if percent <= 20 else 4 << 20 if percent <= 50 else 32 << 20
        method = 'gather' if percent <= 30 else 'rows'
        peers = {'PyTorch': 200.0} if percent % 2 else {}
        results.append(report.Result(f'p.{percent}', line_of(percent), 'cold', floor, 1e4 / percent, 100.0, peers,
                                     method=method))
        if floor < 4 << 20:
            ratio = 0.5 if percent == 7 else 3
            results.append(report.Result(f'p.{percent}', line_of(percent), 'warm', floor, 10.0, 1.0,
                                         {'PyTorch': 10.0 * ratio}, method=method))
        if percent <= 50:
            results.append(report.Result(f'p.{percent}', line_of(percent), 'bound', floor, 200.0, 100.0, method=method))
        for kind, other in draw.relatives(line_of(percent)):
            limit = 200.0 if kind == 'as f32' else 50.0
            results.append(report.Result(f'p.{percent}', other, kind, floor, 1e4 / percent, limit,
                                         noisy={'twin 2'} if percent == 1 else set(), method=method))
    results.append(report.Result('noisy', 'max_pool2d f32 in=1x1x1x9', 'cold', 1000, 1e6, 1.0, {'PyTorch': 1.0},
                                 noisy={'poolgrad'}, method='scatter'))
    return results


def squeezed(text):
    return [' '.join(line.replace('|', ' ').split()) for line in text.splitlines()]


def check_text(results):
    text = '\n'.join(distribution.summary(PEERS, results, lambda line: f'again {line}'))
    rows = squeezed(text)
    wanted = ['share of the limit 100 38% 10% 50% 90% 1% -', 'share, disturbed too 101 33% 10% 50% 90% 0% -',
              'share that computing allows 50 50% 50% 50% 50% 50% -',
              'share / what computing allows 50 0.39 0.10 0.50 0.90 0.02 -',
              'PyTorch / poolgrad 50 0.74 0.18 0.98 1.78 0.02 25',
              'PyTorch / poolgrad, warm below 4 MB 20 2.74 3.00 3.00 3.00 0.50 1',
              'average rows 70 62% 31% p.31 1.23 -', 'max gather 30 12% 1% p.1 0.23 -',
              'avg_pool2d 70 62% 31% p.31 1.23 -',
              'f32 33 39% 3% p.3 0.77 -', 'f16 34 37% 1% p.1 0.68 -', 'bf16 33 38% 2% p.2 0.79 -',
              'planar 75 37% 1% p.1 0.74 -', 'channels last 25 41% 4% p.4 - -',
              'below 4 MB 20 8% 1% p.1 0.15 -', '4 to 32 MB 30 34% 21% p.21 0.68 -',
              '32 MB and more 50 74% 51% p.51 1.47 -',
              'f16 as f32 33 41% 82% -41', 'bf16 as f32 33 38% 76% -38', 'channels last as planar 25 41% 20% +20',
              *(f'{percent}% p.{percent} again {line_of(percent)}' for percent in range(1, 6)),
              f'0.02 p.1 again {line_of(1)}', f'0.50 p.7 again {line_of(7)}']
    problems = [f'"{line}" is not printed' for line in wanted if line not in rows]
    for unwanted in ('p.6 again', 'noisy', 'scatter', 'oneDNN / poolgrad'):
        if any(unwanted in row for row in rows):
            problems.append(f'"{unwanted}" is printed')
    return problems + ([text] if problems else [])


def check_curves(results, path):
    curves.write_svg(path, PEERS, ['a <header>', 'of two lines'], results)
    elements = list(xml.etree.ElementTree.parse(path).iter())
    found = {element.get('class'): [float(point.split(',')[1]) for point in element.get('points').split()]
             for element in elements if element.tag.endswith('polyline')}
    problems = []
    if {name: len(heights) for name, heights in found.items()} != {'curve poolgrad': 100, 'curve PyTorch': 50}:
        problems.append(f'the curves are {found}')
    problems += [f'{name} goes down' for name, heights in found.items() if heights != sorted(heights, reverse=True)]
    # A share of 1 lies on the line of the limit, and half of it half as high above the ground.
    if abs(found['curve poolgrad'][-1] - curves.y(1)) > 0.1 or abs(found['curve PyTorch'][0] - curves.y(0.5)) > 0.1:
        problems.append(f'the curves end at {found["curve poolgrad"][-1]} and begin at {found["curve PyTorch"][0]}')
    words = [element.text for element in elements if element.tag.endswith('text')]
    for text in ('a <header>', 'of two lines', 'poolgrad, 100 problems', 'PyTorch, 50 problems'):
        problems += [] if text in words else [f'the picture does not say "{text}"']
    styles = ''.join(element.text for element in elements if element.tag.endswith('style'))
    problems += [f'{peer} has no colour on one of the grounds' for peer in ('poolgrad', 'PyTorch', 'oneDNN', 'cuDNN')
                 if styles.count(f'.{peer} ') != 2]
    return problems


def check_csv(results, path):
    report.write_csv(path, PEERS, results)
    with open(path, encoding='utf-8') as file:
        rows = {(row['row'], row['kind']): row for row in csv.DictReader(file)}
    row = rows['p.25', 'cold']
    found = [row[name] for name in ('us', 'share', 'pytorch_ratio', 'onednn_ratio', 'method', 'problem')]
    wanted = ['400.000', '0.250', '0.500', '', 'gather', line_of(25)]
    return [] if found == wanted and len(rows) == 263 else [f'{len(rows)} rows, p.25 is {found}']


# What a page may say of them, and what check_means.py answers when it says something else.
CLAIMS = '''
On 50 of each of the seeds
7, 8 it reaches 38 % of the limit (geometric mean of 100 problems; 10th percentile 10 %, lowest 1.0),
in f16 37 % (geometric
mean of 34).

<!-- check
"50 of each of the seeds 7, 8": said in random
"reaches 38 % of the limit (geometric mean of 100 problems; 10th percentile 10 %, lowest 1.0)": geomean, count, p10, min of share in random
"in f16 37 % (geometric mean of 34)": geomean, count of share in random, where type is f16
-->
'''


def means(folder, *options):
    done = subprocess.run([sys.executable, ROOT / 'tools/check_means.py', *options, folder], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding='utf-8')
    return done.returncode, done.stdout


def check_page(results, folder):
    """What --markdown writes agrees with itself; a wrong cell or sentence is found; --fix puts sentences right."""
    page, readme = folder / 'docs/page.md', folder / 'README.md'
    page.parent.mkdir()
    readme.write_text('nothing\n', encoding='utf-8')
    marks = '<!-- bench random: begin -->\nbefore\n<!-- bench random: end -->\n'
    page.write_text(f'# Page\n\n{marks}{CLAIMS}', encoding='utf-8')
    distribution.write_markdown(page, PEERS, ['- the header: 50 of each of the seeds 7, 8'], results, ['A note.'])
    right = page.read_text(encoding='utf-8')
    code, printed = means(folder)
    problems = [] if code == 0 else [f'the page does not agree with itself: {printed}']
    if 'old' in right or '- the header' not in right or 'A note.' not in right or right.count('| p.') < 100:
        problems.append('the page lacks something')
    for pattern, becomes, complaint in (
            (r'\| share of the limit +\| +100 \| +38%', '| share of the limit | 100 | 48%', 'its problems have 37.'),
            (r'\| 0\.74 \| +0\.18', '| 0.74 | 0.28', '10th perc. is 0.28'),
            (r'(\| f16 +\| +)34', r'\g<1>35', 'problems is 35'),
            (r'32 MB and more( \| +50 \| +)74%', r'32 MB and more\g<1>77%', 'its problems have 74'),
            (r'(avg_pool2d[^\n]*)1\.23', r'\g<1>1.33', 'PyTorch is 1.33'),
            (r'(\| share / what computing allows +\| +50 \| +)0\.39', r'\g<1>0.49', 'its problems have 0.38'),
            (r'(\| share that computing allows +\| +50 \| +)50%', r'\g<1>51%', 'its problems have 50'),
            (r'-41 \|', '-31 |', 'points is -31, its problems have -41'),
            (r'(f16 as f32 +\| +)33', r'\g<1>34', 'problems is 34'),
            (r'(channels last as planar [^\n]*)20%', r'\g<1>25%', 'relative is 25%'),
            (r'(\| p\.99 [^\n]*) 99\.0%', r'\g<1> 11.0%', 'its problems have'),
            ('reaches 38', 'reaches 39', 'the geomean is 37'),
            ('seeds 7, 8": said', 'seeds 7, 9": said', 'the run of random does not say'),
            ('seeds\n7, 8', 'seeds\n7, 9', 'the text does not say'),
            ('percentile 10 %', 'percentile 12 %', 'the p10 is 10'),
            ('is f16\n', 'is f17\n', 'no type is f17'),
            ('in f16 37 % \\(', 'in f16 57 % (', 'says 57')):
        wrong = re.sub(pattern, becomes, right)
        page.write_text(wrong, encoding='utf-8')
        code, printed = means(folder)
        if wrong == right or code == 0 or complaint not in printed:
            problems.append(f'"{becomes}" passes: {printed}')
    wrong = right
    for words, others in (('38 % of the limit (', '31 % of the limit ('), ('in f16 37', 'in f16 99'),
                          ('seeds\n7, 8', 'seeds\n5, 6'), ('seeds 7, 8": said', 'seeds 5, 6": said')):
        wrong = wrong.replace(words, others)
    page.write_text(wrong, encoding='utf-8')
    if means(folder, '--fix')[0] != 0 or page.read_text(encoding='utf-8') != right:
        problems.append('--fix does not restore the page')
    return problems


def check_cuda(path):
    """A GPU has other peers and marks; comparisons that do not count are no numbers."""
    results = [report.Result('mp2.1', 'max_pool2d f32 i64 in=1 nhwc', 'cold', 64 << 20, 20.0, 10.0,
                             {'PyTorch': 30.0, 'determ.': report.NONE, 'cuDNN': 10.0, 'atomics': 1.0}, method='tiles'),
               report.Result('mp2.2', 'max_pool2d f16 i32 in=1', 'cold', 64 << 20, 20.0, 5.0, {'PyTorch': 50.0},
                             counted=False, method='tiles')]
    distribution.write_markdown(path, report.CUDA_PEERS, ['- a GPU'], results, [])
    rows = squeezed(path.read_text(encoding='utf-8'))
    wanted = ['<!-- bench random cuda: begin -->', '<!-- table random cuda -->',
              'share of the limit 2 35% 25% 25% 50% 25% -',
              'PyTorch / poolgrad 1 1.50 1.50 1.50 1.50 1.50 0', 'cuDNN / poolgrad 1 0.50 0.50 0.50 0.50 0.50 1',
              'mp2.1 `max_pool2d f32 i64 in=1 nhwc` 67,108,864 20.00 50.0% 1.500 0.500 tiles',
              'mp2.2 `max_pool2d f16 i32 in=1` 67,108,864 20.00 25.0% (2.500) - tiles',
              'Not in the ratios, since poolgrad reads int32 indices there and the others more: 1 problems.']
    return [f'"{line}" is not in the page of a GPU' for line in wanted if line not in rows]


def check_directions(folder):
    """Forward rows have their own marks, means and notes; marks that no run has filled are no table."""
    page, readme = folder / 'docs/page.md', folder / 'README.md'
    readme.write_text('nothing\n', encoding='utf-8')
    names = ('bench', 'bench forward', 'bench forward cuda')
    page.write_text('\n'.join(f'<!-- {name}: begin -->\nbefore\n<!-- {name}: end -->' for name in names).replace(
        'cuda: begin -->\nbefore', 'cuda: begin -->') + """

The forward is 2.00 times as fast (geometric mean of 2 rows).

<!-- check
"2.00 times as fast (geometric mean of 2 rows)": geomean, count of ratio in bench forward
-->
""", encoding='utf-8')
    results = [report.Result('mp2.a', 'max_pool2d f32 in=1', 'cold', 1000, 10.0, 5.0, {'PyTorch': 40.0}),
               report.Result('f.mp2.a', 'max_pool2d_forward f32 in=1', 'cold', 1000, 10.0, 8.0, {'PyTorch': 20.0}),
               report.Result('f.mp2.b', 'max_pool2d_forward f32 in=1', 'cold', 1000, 10.0, 8.0, {'PyTorch': 20.0})]
    report.write_markdown(page, PEERS, ['- the header'], results, ['mp2.a: backward note.', 'For both.'])
    text = page.read_text(encoding='utf-8')
    back, forward = (text.split(f'{name}: begin')[1].split(f'{name}: end')[0] for name in names[:2])
    problems = [f'"{words}" is not among {"forward" if part is forward else "backward"} rows' for words, part in (
        ('backward note', back), ('For both', back), ('For both', forward), ('mean 50% of 1 cold rows', back),
        ('mean 80% of 2 cold rows', forward), ('mean 2.00 of 2 rows', forward)) if words not in part]
    if 'backward note' in forward or 'f.mp2' in back or '| mp2.a' in forward or 'before' in text:
        problems.append('the directions are mixed')
    code, printed = means(folder)
    problems += [] if code == 0 else [f'the page of both directions: {printed}']
    for right, wrong in (('2.00 of 2 rows, lowest', '3.00 of 2 rows, lowest'), ('is 2.00 times', 'is 2.50 times')):
        page.write_text(text.replace(right, wrong), encoding='utf-8')
        problems += [f'"{wrong}" passes'] if means(folder)[0] == 0 or right not in text else []
    summary = report.summaries(PEERS, results)
    if summary[0] != 'Backward rows:' or 'Forward rows:' not in summary or report.summaries(PEERS, results[1:]) != \
            report.summary(PEERS, results[1:]):
        problems.append(f'the summaries are {summary}')
    return problems


def check_filter():
    """Texts that a name must have or must not have."""
    problems = []
    for words, wanted in (('', ['mp2.a', 'f.mp2.a', 'f.ap2.b']), ('f.', ['f.mp2.a', 'f.ap2.b']), ('-f.', ['mp2.a']),
                          ('mp2,-f.', ['mp2.a']), ('f.mp2,f.ap2', ['f.mp2.a', 'f.ap2.b'])):
        options = types.SimpleNamespace(filter=words)
        found = [name for name in ('mp2.a', 'f.mp2.a', 'f.ap2.b') if bench.is_chosen(options, name)]
        problems += [] if found == wanted else [f'--filter {words} chooses {found}']
    return problems


def check_counts():
    """Kernels of one problem are added up; 132 multiprocessors at 1 GHz issue 528 instructions in a nanosecond."""
    def kernel(name, instructions='528,000', moved='7'):
        return {'Kernel Name': name, 'smsp__inst_executed.sum': instructions, 'dram__bytes.sum': moved,
                'sm__cycles_elapsed.avg.per_second': '1,000,000,000'}
    units = {'Kernel Name': '', 'smsp__inst_executed.sum': 'inst', 'dram__bytes.sum': 'byte'}
    mark = kernel('void count_poison<unsigned int>(...)')
    found = counts.sums([units, kernel('a'), kernel('b'), mark, kernel('a', '1056'), mark, mark], 132)
    return [] if found == [(2.0, 14.0), (0.002, 7.0), (0.0, 0.0)] else [f'the counts are {found}']


def check_commands():
    """What repeats a run keeps its seeds, and what repeats one of its problems does not need them."""
    sys.argv = ['bench.py', '--build', 'b', '--quick', '--random', '3', '--seed=7,8', '--paired', '--svg', 'f',
                '--operators', 'backward', '--filter', 'mp2']
    problems = []
    for found, wanted in ((bench.command(), 'make bench ARGS="--quick --random 3 --seed=7,8 --paired --operators '
                                            'backward --filter mp2"'),
                          (bench.command('max_pool2d f32'), 'make bench ARGS="--quick --problem \'max_pool2d f32\'"')):
        problems += [] if found == wanted else [f'"{found}" is not "{wanted}"']
    options = bench.parse()
    rows = draw.rows_of_seeds(options.random, options.seed)
    if bench.drawn(options, rows) != ('- 6 random problems: 3 of each of the seeds 7, 8, operators backward, those with mp2 '
                                      'in their names'):
        problems.append(f'the header says "{bench.drawn(options, rows)}"')
    said = report.remarks({'PyTorch mean': ['a', 'b', 'a']})
    return problems + ([] if len(said) == 1 and said[0].endswith(': a, b.') else [f'the remark is {said}'])


def main():
    results = made_up()
    with tempfile.TemporaryDirectory(prefix='poolgrad-curves-') as name:
        folder = pathlib.Path(name)
        problems = check_text(results) + check_curves(results, folder / 'curves.svg')
        problems += check_csv(results, folder / 'rows.csv') + check_page(results, folder)
        problems += check_cuda(folder / 'cuda.md') + check_counts() + check_commands()
        problems += check_directions(folder) + check_filter()
    print('\n'.join(problems) or 'the distribution of 100 results is right')
    return 1 if problems else 0


sys.exit(main())
