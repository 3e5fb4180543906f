#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_checks.py --build DIR: plants mistakes into copies of the pages, each of which its check has to notice."""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PERFORMANCE, README = 'docs/performance.md', 'README.md'

# What is planted: the page, the text, what it becomes, and a part of what the check must say.
MEANS = [
    (PERFORMANCE, '4.5 times as long', '4.6 times as long', 'the text does not say'),
    (PERFORMANCE, '"4.5 times as long (geometric', '"4.6 times as long (geometric', 'the geomean is 4.48'),
    (PERFORMANCE, '| 2.7 |', '| 0.7 |', 'says 1.6, the min is 0.7'),
    (PERFORMANCE, 'geometric mean 58% of 58 cold', 'geometric mean 61% of 58 cold', 'of 58 rows'),
    (PERFORMANCE, 'geometric mean 2.68 of 57 rows', 'geometric mean 2.68 of 61 rows', 'of 57 rows'),
    (PERFORMANCE, '## Sixteen cores', 'The geometric mean is 7.\n\n## Sixteen cores', 'nothing computes'),
    (PERFORMANCE, '"reach 70 to 79 %": min, max', '"reach 70 to 79 %": geomean, max', 'does not say of how many rows'),
    (PERFORMANCE, 'of ratio in sixteen', 'of speed in sixteen', 'there is no column'),
    (README, '| 9,276 |', '| 9,267 |', 'in its table 9,276'),
]
LINKS = [
    (README, 'docs/tutorial.md)', 'docs/tutorials.md)', 'not a file of the project'),
    (README, 'runtime.md#strict-mode', 'runtime.md#strict', 'no such heading'),
    ('docs/faq.md', '(runtime.md#in-general)', '(/runtime.md)', 'not a file of the project'),
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
    ('page.md', 'puts("right");', 'puts("wrong");', 'the program prints\nwrong'),
    ('page.md', 'puts("right");', 'put("right");', 'does not compile'),
    ('page.md', 'int main(void) {', 'int main(void) {\n  int unused;', 'does not compile'),
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
    for page, text, becomes, complaint in planted:
        path = folder / page
        before = path.read_text(encoding='utf-8')
        if text not in before:
            problems.append(f'{name}: {page} does not have "{text}" any more')
            continue
        path.write_text(before.replace(text, becomes, 1), encoding='utf-8')
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
        for part in ('docs', 'include', 'examples', 'bench'):
            shutil.copytree(ROOT / part, folder / part)
        for path in ROOT.glob('*.md'):
            shutil.copy(path, folder)
        (folder / 'page').mkdir()
        (folder / 'page/page.md').write_text(PROGRAM, encoding='utf-8')
        python, pages = sys.executable, ROOT / 'tests/documents/check_pages.py'
        problems = noticed('means', folder, MEANS, [python, ROOT / 'tools/check_means.py', folder])
        problems += noticed('links', folder, LINKS, [python, ROOT / 'tools/check_links.py', folder])
        problems += noticed('pages', folder / 'page', PAGES,
                            [python, pages, '--build', build, folder / 'page/page.md'])
    print('\n'.join(problems) or f'{len(MEANS) + len(LINKS) + len(PAGES)} planted mistakes were noticed')
    return 1 if problems else 0


sys.exit(main())
