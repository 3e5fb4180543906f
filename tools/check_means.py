#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recomputes the means, ranges and counts that README.md and docs/ state from the tables beside them.

A page says in a comment what a sentence of the same section is computed from:

    <!-- check
    "geometric mean 4.5 of 23 rows": geomean, count of ratio in sixteen
    "7 to 13 times": min, max of 1 thr. us / 16 thr. us in sixteen, rows mp2.* -*.nhwc
    -->

The quoted words must stand in the section, and each number in them must be what its function gives. A table is
named by a comment above it, <!-- table sixteen -->, or by the marks that the benchmark writes (bench, bench cuda).
Of two columns with one name the second is called "ratio#2". Rows are shell patterns, "-" leaves rows out; without
them all rows that have a number in the column. <!-- copy of bench: us, share, ratio --> above a table says that its
rows, whose first cell holds the row's name in backticks, are taken from that table.

The means of cells that were rounded are not exact: a stated mean must lie in the interval that the cells allow.

python3 tools/check_means.py [ROOT]
"""

import fnmatch
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NUMBER = re.compile(r'\d[\d,]*(?:\.\d+)?')
COMMENT = re.compile(r'<!--(.*?)-->', re.S)
CLAIM = re.compile(r'"(?P<words>[^"]+)":\s*(?P<functions>[\w, ]+?) of (?P<column>.+?) in (?P<table>[\w ]+?)'
                   r'(?:, rows (?P<rows>.+))?$')
GENERATED_SHARE = re.compile(r'Share of the limit: geometric mean (\d+)% of (\d+) cold rows, lowest (\d+)% \((.+?)\)\.')
GENERATED_RATIO = re.compile(r'(\w+) / poolgrad: geometric mean ([\d.]+) of (\d+) rows, lowest ([\d.]+) \((.+?)\); '
                             r'poolgrad is slower in (\d+)\.')
GENERATED_LEFT_OUT = re.compile(r'Not in the means of ratios: (.+?)\.$', re.M)


class Table:
    """Rows by name; a cell that is no number is left out wherever numbers are wanted."""

    def __init__(self, lines):
        cells = [[cell.strip() for cell in line.strip().strip('|').split('|')] for line in lines]
        self.columns, seen = [], {}
        for name in cells[0]:
            seen[name] = seen.get(name, 0) + 1
            self.columns.append(name if seen[name] == 1 else f'{name}#{seen[name]}')
        self.rows = {row[0]: dict(zip(self.columns, row)) for row in cells[2:]}

    def column(self, expression, names):
        """Intervals [low, high] that the cells of a column, or of one divided by another, may stand for."""
        parts = [part.strip() for part in expression.split(' / ')]
        for part in parts:
            if part not in self.columns:
                raise ValueError(f'there is no column "{part}", only {", ".join(self.columns)}')
        found = {}
        for name in names:
            intervals = [interval(self.rows[name][part]) for part in parts]
            if None in intervals:
                continue
            low, high = intervals[0]
            for below, above in intervals[1:]:
                low, high = low / above, high / below
            found[name] = (low, high)
        return found

    def names(self, patterns):
        if not patterns:
            return list(self.rows)
        wanted = [p for p in patterns.split() if not p.startswith('-')] or ['*']
        unwanted = [p[1:] for p in patterns.split() if p.startswith('-')]
        for pattern in wanted:
            if not any(fnmatch.fnmatchcase(name, pattern) for name in self.rows):
                raise ValueError(f'no row is called {pattern}')
        return [name for name in self.rows if any(fnmatch.fnmatchcase(name, p) for p in wanted)
                and not any(fnmatch.fnmatchcase(name, p) for p in unwanted)]


def interval(text):
    """What a printed number may have been before it was rounded; None if it is none. "~" marks a disturbed one."""
    match = re.fullmatch(r'(\d[\d,]*(?:\.(\d+))?)\s?%?', text.strip())
    if match is None:
        return None
    value, half = float(match.group(1).replace(',', '')), 0.5 * 10 ** -len(match.group(2) or '')
    return value - half, value + half


def middle(bounds):
    return (bounds[0] + bounds[1]) / 2


def geomean(bounds):
    def mean(side):
        return math.exp(sum(math.log(max(bound[side], 1e-9)) for bound in bounds) / len(bounds))
    return mean(0), mean(1)


FUNCTIONS = {
    'geomean': lambda bounds: geomean(bounds),
    'min': lambda bounds: min(bounds, key=middle),
    'max': lambda bounds: max(bounds, key=middle),
    'count': lambda bounds: (len(bounds), len(bounds)),
    'slower': lambda bounds: (sum(middle(b) < 1 for b in bounds),) * 2,
}


def agrees(stated, computed):
    """Whether some number in the interval is printed as this one is."""
    low, high = interval(stated)
    slack = 1e-9 * max(1.0, abs(high))
    return computed[0] <= high + slack and computed[1] >= low - slack


def tables_of(text):
    """The named tables of a page."""
    found = {}
    for mark in re.finditer(r'<!-- (?:table (?P<name>[\w ]+?)|(?P<bench>bench(?: cuda)?): begin) -->', text):
        lines = []
        for line in text[mark.end():].splitlines():
            if line.startswith('|'):
                lines.append(line)
            elif lines:
                break
        found[mark.group('name') or mark.group('bench')] = Table(lines)
    return found


def plain(text):
    return ' '.join(text.split())


def check_claim(line, section, tables):
    """The problems of one line of a check, and the words it answers for."""
    claim = CLAIM.match(line)
    if claim is None:
        return [f'cannot read the check {line}'], ''
    words, functions = plain(claim['words']), [name.strip() for name in claim['functions'].split(',')]
    if claim['table'] not in tables:
        return [f'there is no table {claim["table"]}'], words
    table = tables[claim['table']]
    try:
        bounds = list(table.column(claim['column'], table.names(claim['rows'])).values())
    except ValueError as problem:
        return [f'"{words}": {problem}'], words
    numbers, problems = NUMBER.findall(words), []
    if words not in section:
        problems.append(f'the text does not say "{words}"')
    if len(numbers) != len(functions) or not bounds:
        problems.append(f'"{words}" has {len(numbers)} numbers for {len(functions)} functions of {len(bounds)} rows')
        return problems, words
    if 'geomean' in functions and 'count' not in functions:
        problems.append(f'"{words}" has a mean and does not say of how many rows')
    for stated, function in zip(numbers, functions):
        computed = FUNCTIONS[function](bounds)
        if not agrees(stated, computed):
            problems.append(f'"{words}" says {stated}, the {function} is {middle(computed):.4g}')
    return problems, words


def check_generated(text):
    """The sentences that the benchmark writes below its tables."""
    problems = []
    for block in re.finditer(r'<!-- (bench(?: cuda)?): begin -->(.*?)<!-- \1: end -->', text, re.S):
        table, body = tables_of(text)[block.group(1)], block.group(2)
        left_out = GENERATED_LEFT_OUT.search(body)
        left_out = [name.strip() for name in left_out.group(1).split(',')] if left_out else []

        def quiet(names, other):
            return [n for n in names if '~' not in table.rows[n]['us'] + table.rows[n][other]]

        def compare(sentence, column, names, mean, count, least, where, slower=None):
            bounds = table.column(column, names)
            lowest = min(bounds, key=lambda name: middle(bounds[name]))
            values = list(bounds.values())
            right = (agrees(mean, geomean(values)) and int(count) == len(values) and agrees(least, bounds[lowest])
                     and agrees(least, bounds.get(where, (-1, -1)))
                     and (slower is None or int(slower) == FUNCTIONS['slower'](values)[0]))
            if not right:
                problems.append(f'"{sentence}": the table has {middle(geomean(values)):.3g} of {len(values)} rows, '
                                f'lowest {middle(bounds[lowest]):.3g} ({lowest})')

        for match in GENERATED_SHARE.finditer(body):
            compare(match.group(0), 'share', quiet([n for n in table.rows if ' ' not in n], 'limit us'), *match.groups())
        for match in GENERATED_RATIO.finditer(body):
            peer, *rest = match.groups()
            compare(match.group(0), table.columns[table.columns.index(f'{peer} us') + 1],
                    quiet([n for n in table.rows if n not in left_out], f'{peer} us'), *rest)
    return problems


def check_copies(text, tables):
    """Tables that say their rows are another's."""
    problems = []
    for mark in re.finditer(r'<!-- copy of ([\w ]+): (.+?) -->\n((?:\|.*\n)+)', text):
        source, columns = tables[mark.group(1)], [name.strip() for name in mark.group(2).split(',')]
        for line in mark.group(3).splitlines()[2:]:
            first, *cells = [cell.strip() for cell in line.strip('|').split('|')]
            name = re.search(r'`([^`]+)`', first)
            row = source.rows.get(name.group(1)) if name else None
            if row is None:
                problems.append(f'"{first}" names no row of {mark.group(1)}')
                continue
            problems += [f'{name.group(1)}: {column} is {cell}, in its table {row[column]}'
                         for cell, column in zip(cells, columns) if cell != row[column]]
    return problems


def check_page(text, tables):
    problems = check_generated(text) + check_copies(text, tables)
    for section in re.split(r'^(?=#)', text, flags=re.M):
        said = plain(COMMENT.sub(' ', section))
        for generated in (GENERATED_SHARE, GENERATED_RATIO):
            said = generated.sub(' ', said)
        answered = []
        for comment in COMMENT.findall(section):
            if comment.split()[:1] != ['check']:
                continue
            for line in comment.strip().splitlines()[1:]:
                if line.strip():
                    found, words = check_claim(line.strip(), said, tables)
                    problems += found
                    answered.append(words)
        for words in answered:
            said = said.replace(words, ' ')
        for loose in re.finditer(r'.{0,40}\bgeometric mean\b.{0,40}', said):
            problems.append(f'nothing computes "{loose.group(0).strip()}"')
    return problems, sum(len(NUMBER.findall(words)) for words in re.findall(r'^"([^"]+)":', text, re.M))


def main():
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    pages = [root / 'README.md', *sorted((root / 'docs').rglob('*.md'))]
    texts = {page: page.read_text(encoding='utf-8') for page in pages}
    tables = {}
    for text in texts.values():
        tables.update(tables_of(text))
    failed, numbers = False, 0
    for page, text in texts.items():
        problems, count = check_page(text, tables)
        numbers += count
        for problem in problems:
            failed = True
            print(f'{page.relative_to(root)}: {problem}')
    if not failed:
        print(f'means ok: {numbers} numbers follow from {len(tables)} tables')
    return 1 if failed or not numbers else 0


sys.exit(main())
