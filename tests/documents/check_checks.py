#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_checks.py --build DIR: plants mistakes into copies of the pages, each of which its check has to notice."""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PERFORMANCE, README = 'docs/performance.md', 'README.md'

# What is planted: the page, a pattern, what its first match becomes, and a part of what the check must say. Numbers that
# a new run of the benchmark changes are not in them.
MEANS = [
    (PERFORMANCE, r'4\.5 times as long', '4.6 times as long', 'the text does not say'),
    (PERFORMANCE, r'"4\.5 times as long \(geometric', '"4.6 times as long (geometric', 'the geomean is 4.48'),
    (PERFORMANCE, r'\| 2\.7 \|', '| 0.7 |', 'says 1.6, the min is 0.7'),
    (PERFORMANCE, r'geometric mean \d+% of (\d+) cold', r'geometric mean 1% of \1 cold', ' rows, lowest'),
    (PERFORMANCE, r'(poolgrad: geometric mean [\d.]+) of (\d+) rows', r'\1 of 1\2 rows', ' rows, lowest'),
    (PERFORMANCE, '## Sixteen cores', 'The geometric mean is 7.\n\n## Sixteen cores', 'nothing computes'),
    (PERFORMANCE, r'": min, max of (.*) in bench', r'": geomean, max of \1 in bench', 'does not say of how many rows'),
    (PERFORMANCE, 'of ratio in sixteen', 'of speed in sixteen', 'there is no column'),
    (README, r'(`\) \| )[\d,.]+ ', r'\g<1>0.01 ', 'in its table'),
    (PERFORMANCE, r'(\| share of the limit +\| +)\d+', r'\g<1>1', 'share of the limit: problems is 1,'),
    (PERFORMANCE, r'(\| channels last +\| +\d+ \| +)\d+%', r'\g<1>1%', 'channels last: share is 1%,'),
    (PERFORMANCE, r'(\| channels last as planar .*\| +)[+-]\d+ \|', r'\g<1>+99 |', 'points is +99, its problems have'),
    (README, r'"reaches \d+ % of the limit \(', '"reaches 1 % of the limit (', 'the geomean is'),
]
LINKS = [
    (README, r'docs/tutorial\.md\)', 'docs/tutorials.md)', 'not a file of the project'),
    (README, r'runtime\.md#strict-mode', 'runtime.md#strict', 'no such heading'),
    ('docs/faq.md', r'\(runtime\.md#in-general\)', '(/runtime.md)', 'not a file of the project'),
]
SENTENCES = [
    ('docs/ops/max_pool.md', 'autoPad is 1', 'autoPad was 1', 'says "autoPad was 1, allowed is 0"'),
    ('docs/ops/max_pool.md', 'const int64_t autoPad', 'int64_t autoPad', 'not that of the header'),
    ('docs/ops/avg_pool3d.md', r'Status aclnnAvgPool3d\(', 'Status aclnnPool3d(', 'no page in docs/ops shows'),
]
REFUSALS = [
    ('docs/ops/max_pool.md', r'161002 \| autoPad', '161001 | autoPad', "the library says (161002, 'autoPad is 1"),
    ('docs/ops/max_pool.md', r'(\| 161002 \| autoPad.*\n)(\| 161002 \| pads is.*\n)', r'\2\1', "says (161002, 'autoPad"),
]
PROGRAM = '''```c
#include <stdio.h>
int main(void) {
  puts("right");
  return 0;
}
```

```text
right
```

```console
$ echo one; echo two
one
…
```
'''
PAGES = [
    ('page.md', r'puts\("right"\);', 'puts("wrong");', 'the program prints\nwrong'),
    ('page.md', r'puts\("right"\);', 'put("right");', 'does not compile'),
    ('page.md', r'int main\(void\) {', r'int main(void) {\n  int unused;', 'does not compile'),
    ('page.md', 'return 0', 'return 3', 'ends with 3'),
    ('page.md', 'echo one;', 'echo three;', 'prints\nthree'),
]


def noticed(name, folder, planted, command):
    """Whether the check is content with the pages as they are and complains of each planted mistake."""
    def run():
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8')
        return done.returncode, done.stdout
    code, printed = run()
    problems = [] if code == 0 else [f'{name}: complains of nothing\n{printed}']
    for page, pattern, becomes, complaint in planted:
        path = folder / page
        before = path.read_text(encoding='utf-8')
        after = re.sub(pattern, becomes, before, count=1)
        if after == before:
            problems.append(f'{name}: {page} does not have "{pattern}" any more')
            continue
        path.write_text(after, encoding='utf-8')
        code, printed = run()
        path.write_text(before, encoding='utf-8')
        if code == 0 or complaint not in printed:
            problems.append(f'{name}: "{becomes}" in {page} passes\n{printed}')
    return problems


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('--build', required=True)
    build = parser.parse_args().build
    with tempfile.TemporaryDirectory(prefix='poolgrad-checks-') as name:
        folder = pathlib.Path(name)
        for part in ('docs', 'include', 'examples', 'bench', 'src'):
            shutil.copytree(ROOT / part, folder / part)
        for path in ROOT.glob('*.md'):
            shutil.copy(path, folder)
        (folder / 'page').mkdir()
        (folder / 'page/page.md').write_text(PROGRAM, encoding='utf-8')
        python, pages = sys.executable, ROOT / 'tests/documents/check_pages.py'
        problems = noticed('means', folder, MEANS, [python, ROOT / 'tools/check_means.py', folder])
        problems += noticed('links', folder, LINKS, [python, ROOT / 'tools/check_links.py', folder])
        problems += noticed('sentences', folder, SENTENCES,
                            [python, ROOT / 'tests/documents/check_sentences.py', folder])
        problems += noticed('refusals', folder, REFUSALS,
                            [python, ROOT / 'tests/documents/check_refusals.py', '--library',
                             pathlib.Path(build) / 'lib64/libpoolgrad.so', folder / 'docs/ops/max_pool.md'])
        problems += noticed('pages', folder / 'page', PAGES,
                            [python, pages, '--build', build, folder / 'page/page.md'])
    planted = sum(map(len, (MEANS, LINKS, SENTENCES, REFUSALS, PAGES)))
    print('\n'.join(problems) or f'{planted} planted mistakes were noticed')
    return 1 if problems else 0


sys.exit(main())
