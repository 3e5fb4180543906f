#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recomputes the means, ranges and counts that README.md and docs/ state from the tables beside them.

A page says in a comment what a sentence of the same section is computed from:

    <!-- check
    "geometric mean 4.5 of 23 rows": geomean, count of ratio in sixteen
    "7 to 13 times": min, max of 1 thr. us / 16 thr. us in sixteen, rows mp2.* -*.nhwc
    -->

The quoted words must stand in the section, and each number in them must be what its function gives. A table is
named by a comment above it, <!-- table sixteen -->, or by the marks that the benchmark writes (bench, bench cuda,
bench forward, bench forward cuda); between marks that no run has filled there is no table.
Of two columns with one name the second is called "ratio#2". Rows are shell patterns, "-" leaves rows out; without
them all rows that have a number in the column. <!-- copy of bench: us, share, ratio --> above a table says that its
rows, whose first cell holds the row's name in backticks, are taken from that table.

The problems of a random run are the tables "random" and "random cuda", those of a run of forward operators alone
"random forward" and "random forward cuda". Their rows can also be chosen by the groups of
bench/distribution.py, which are read from the problem:

    "61 % in halves (geometric mean of 40)": geomean, count of share in random, where type is f16

The summary that the benchmark writes above these problems is recomputed from them cell by cell. Words that are no
figure, such as seeds and versions, can be compared with what the benchmark wrote between its marks:

    "20 of each of the seeds 1, 2, 3": said in random

The means of cells that were rounded are not exact: a stated mean must lie in the interval that the cells allow.

python3 tools/check_means.py [--fix] [ROOT]
--fix writes the right numbers into the sentences that have a check, and the right cells into copies. Words that go with
the numbers, such as "slower", dates without a check and the names of rows, are left to a reader.
"""

import fnmatch
import math
import pathlib
import re
import sys
import types

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'bench'))
import distribution

NUMBER = re.compile(r'(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?!\d|th\b)')  # of "10th percentile" it is none
COMMENT = re.compile(r'<!--(.*?)-->', re.S)
CLAIM = re.compile(r'"(?P<words>[^"]+)":\s*(?P<functions>[\w, ]+?) of (?P<column>.+?) in (?P<table>[\w ]+?)'
                   r'(?:, rows (?P<rows>.+?))?(?:, where (?P<group>\w+) is (?P<member>.+))?$')
SAID = re.compile(r'"(?P<words>[^"]+)": said in (?P<table>[\w ]+)$')
COPY = re.compile(r'<!-- copy of ([\w ]+): (.+?) -->\n((?:\|.*\n)+)')
BENCH = r'bench(?: forward)?(?: cuda)?'
GENERATED = re.compile(r'<!-- (bench[\w ]*): begin -->.*?<!-- \1: end -->', re.S)
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

    def group(self, name, heading):
        """That the problem of a row belongs to."""
        row = self.rows[name]
        return distribution.GROUPS[heading](types.SimpleNamespace(
            line=row['problem'].strip('`'), floor=int(row['bytes'].replace(',', '')), method=row['method']))

    def members(self, names, heading, member):
        if heading not in distribution.GROUPS or 'problem' not in self.columns:
            raise ValueError(f'there are no groups called {heading}')
        found = [name for name in names if self.group(name, heading) == member]
        if not found:
            raise ValueError(f'no {heading} is {member}')
        return found

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
    match = re.fullmatch(r'([+-]?\d[\d,]*(?:\.(\d+))?)\s?%?', text.strip())
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


def percentile(bounds, percent):
    """As in bench/distribution.py."""
    return sorted(bounds, key=middle)[max(0, math.ceil(len(bounds) * percent / 100) - 1)]


FUNCTIONS = {
    'geomean': lambda bounds: geomean(bounds),
    'p10': lambda bounds: percentile(bounds, 10),
    'p50': lambda bounds: percentile(bounds, 50),
    'p90': lambda bounds: percentile(bounds, 90),
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
    for mark in re.finditer(rf'<!-- (?:table (?P<name>[\w ]+?)|(?P<bench>{BENCH}): begin) -->', text):
        lines, below = [], text[mark.end():]
        if mark.group('bench'):
            below = below.split(f'<!-- {mark.group("bench")}: end -->')[0]
        for line in below.splitlines():
            if line.startswith('|'):
                lines.append(line)
            elif lines:
                break
        if lines:
            found[mark.group('name') or mark.group('bench')] = Table(lines)
    return found


def plain(text):
    return ' '.join(text.split())


def blocks_of(text):
    """What the benchmark wrote above its tables, by the names of the tables."""
    marks = r'<!-- (?:bench (?=random))?(\w[\w ]*): begin -->(.*?)(?=<!--)'
    return {name: plain(body) for name, body in re.findall(marks, text, re.S)}


def check_said(claim, section, blocks):
    words, block = plain(claim['words']), blocks.get(claim['table'], '')
    problems = [] if words in section else [f'the text does not say "{words}"']
    return problems + ([] if words in block else [f'the run of {claim["table"]} does not say "{words}"'])


def read_claim(line, tables):
    """The words of a check's line, its functions and what they give; ValueError says what is wrong with it."""
    claim = CLAIM.match(line)
    if claim is None:
        raise ValueError(f'cannot read the check {line}')
    words, functions = plain(claim['words']), [name.strip() for name in claim['functions'].split(',')]
    if claim['table'] not in tables:
        raise ValueError(f'there is no table {claim["table"]}')
    table = tables[claim['table']]
    try:
        names = table.names(claim['rows'])
        if claim['group']:
            names = table.members(names, claim['group'], claim['member'])
        bounds = list(table.column(claim['column'], names).values())
    except ValueError as problem:
        raise ValueError(f'"{words}": {problem}') from problem
    numbers = NUMBER.findall(words)
    if len(numbers) != len(functions) or not bounds:
        raise ValueError(f'"{words}" has {len(numbers)} numbers for {len(functions)} functions of {len(bounds)} rows')
    unknown = [name for name in functions if name not in FUNCTIONS]
    if unknown:
        raise ValueError(f'"{words}": there is no function {unknown[0]}')
    return words, functions, [FUNCTIONS[function](bounds) for function in functions]


def check_claim(line, section, tables):
    """The problems of one line of a check, and the words it answers for."""
    try:
        words, functions, computed = read_claim(line, tables)
    except ValueError as problem:
        return [str(problem)], ''
    problems = [] if words in section else [f'the text does not say "{words}"']
    if 'geomean' in functions and 'count' not in functions:
        problems.append(f'"{words}" has a mean and does not say of how many rows')
    for stated, function, value in zip(NUMBER.findall(words), functions, computed):
        if not agrees(stated, value):
            problems.append(f'"{words}" says {stated}, the {function} is {middle(value):.4g}')
    return problems, words


def claims(section):
    """The lines of its checks."""
    found = []
    for comment in COMMENT.findall(section):
        first, *lines = comment.strip().splitlines() or ['']
        found += [line.strip() for line in lines if first == 'check' and line.strip()]
    return found


def sections(text):
    return re.split(r'^(?=#)', text, flags=re.M)


def check_generated(text):
    """The sentences that the benchmark writes below its tables."""
    problems = []
    for block in re.finditer(rf'<!-- ({BENCH}): begin -->(.*?)<!-- \1: end -->', text, re.S):
        if not block.group(2).strip():
            continue  # no run has been put there yet
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
            cold = [name for name in table.rows if ' ' not in name]
            compare(match.group(0), 'share', quiet(cold, 'limit us'), *match.groups())
        for match in GENERATED_RATIO.finditer(body):
            peer, *rest = match.groups()
            compare(match.group(0), table.columns[table.columns.index(f'{peer} us') + 1],
                    quiet([n for n in table.rows if n not in left_out], f'{peer} us'), *rest)
    return problems


def tables_in(text):
    """All tables of a text, without names."""
    return [Table(lines.splitlines()) for lines in re.findall(r'(?:^\|.*\n)+', text, re.M)]


def check_random(text, tables):
    """The summaries that the benchmark writes above random problems."""
    problems = []
    marks = r'<!-- bench (random(?: forward)?(?: cuda)?): begin -->(.*?)<!-- bench \1: end -->'
    for block in re.finditer(marks, text, re.S):
        if not block.group(2).strip():
            continue  # no run has been put there yet
        source, body = tables[block.group(1)], block.group(2)
        found = tables_in(body.split('<details')[0])
        for heading in ['', *distribution.GROUPS]:
            if not any(table.columns[0] == heading for table in found):
                problems.append(f'{block.group(1)}: there is no table "{heading}"')
        for table in found:
            for name, row in table.rows.items():
                wanted = {'': figures, 'pairs': pair}.get(table.columns[0], group_row)(source, name, table.columns)
                problems += [f'{name}: {column} is {row[column]}, its problems have {show(value)}'
                             for column, value in wanted.items() if not cell_agrees(row[column], value)]
    return problems


def figures(source, name, _):
    """The row of the summary with that name."""
    if name == 'share, disturbed too':
        bounds = [interval(row['share'].lstrip('~')) for row in source.rows.values() if row['share'] != '-']
    elif name == 'share of the limit':
        bounds = list(source.column('share', source.rows).values())
    elif name == 'share / what computing allows':
        bounds = list(source.column('share / bound', source.rows).values())
    elif name == 'share that computing allows':
        bounds = list(source.column('bound', source.column('share', source.rows)).values())
    else:
        peer, kind = name.split(' / ')[0], 'warm' if 'warm' in name else 'ratio'
        bounds = list(source.column(f'{peer} {kind}', source.rows).values())
    wanted = {'problems': 'count', 'mean': 'geomean', '10th perc.': 'p10', '50th perc.': 'p50', '90th perc.': 'p90',
              'lowest': 'min'}
    found = {column: FUNCTIONS[function](bounds) for column, function in wanted.items()}
    return {**found, 'slower in': FUNCTIONS['slower'](bounds)} if ' / poolgrad' in name else found


def group_row(source, name, columns):
    """The row of a group; columns: those of its table, the first one says what kind of group it is."""
    names = source.members(source.rows, columns[0], name)
    shares = list(source.column('share', names).values())
    found = {'problems': FUNCTIONS['count'](shares), 'share': geomean(shares), 'lowest': FUNCTIONS['min'](shares)}
    for peer in columns[5:]:
        ratios = list(source.column(f'{peer} ratio', names).values())
        found[peer] = geomean(ratios) if ratios else None
    return found


def pair(source, name, _):
    """The row of a group whose problems were also timed in another type or layout."""
    one, other = name.split(' as ')
    heading = next(heading for heading, *members in distribution.COMPARED if members == [one, other])
    names = source.members(source.rows, heading, one)
    shares, others = source.column('share', names), source.column(f'as {other}', names)
    both = [name for name in names if name in shares and name in others]
    mine, theirs = (geomean([found[name] for name in both]) for found in (shares, others))
    return {'problems': (len(both),) * 2, 'share': mine, 'relative': theirs,
            'points': (mine[0] - theirs[1], mine[1] - theirs[0])}


def cell_agrees(text, value):
    return text == '-' if value is None else interval(text) is not None and agrees(text, value)


def show(value):
    return 'none' if value is None else f'{middle(value):.4g}'


def check_copies(text, tables):
    """Tables that say their rows are another's."""
    problems = []
    for mark in COPY.finditer(text):
        for line in mark.group(3).splitlines()[2:]:
            name, right = copied(line, mark, tables)
            if right is None:
                problems.append(f'"{name}" names no row of {mark.group(1)}')
            elif line != right:
                problems.append(f'{name}: "{line}", in its table "{right}"')
    return problems


def copied(line, mark, tables):
    """The name of the row that a line copies, and the line as it should be; None if there is no such row."""
    columns = [column.strip() for column in mark.group(2).split(',')]
    first = line.strip('|').split('|')[0].strip()
    name = re.search(r'`([^`]+)`', first)
    row = tables[mark.group(1)].rows.get(name.group(1)) if name else None
    if row is None:
        return first, None
    return name.group(1), '| ' + ' | '.join([first, *(row[column] for column in columns)]) + ' |'


# --- fixing -----------------------------------------------------------------------------------------------------------

def like(stated, value):
    """The value, printed as the stated number is."""
    decimals = len(stated.partition('.')[2])
    return format(middle(value), f'{"," if "," in stated else ""}.{decimals}f')


def right_numbers(line, tables, blocks):
    """The words of a check, a pattern of their numbers, and what these should be; none where nothing tells."""
    said = SAID.match(line)
    if said is None:
        words, _, computed = read_claim(line, tables)
        return words, NUMBER, [like(stated, value) for stated, value in zip(NUMBER.findall(words), computed)]
    words, digits = plain(said['words']), re.compile(r'\d+')
    found = re.search(r'\d+'.join(map(re.escape, digits.split(words))), blocks.get(said['table'], ''))
    return words, digits, digits.findall(found.group(0) if found else words)


def fix_section(section, tables, blocks):
    """With the right numbers in its checks and in the sentences that they answer for."""
    for line in claims(section):
        try:
            words, pattern, numbers = right_numbers(line, tables, blocks)
        except ValueError:
            continue  # the check will say so

        def replace(said, pattern=pattern, numbers=numbers):
            right = iter(numbers)
            return pattern.sub(lambda _: next(right), said.group(0))
        # The sentence may be broken into lines where the check is not.
        section = re.sub(r'\s+'.join(map(re.escape, words.split())), replace, section)
    return section


def fix_page(text, tables, blocks):
    def fix_copy(mark):
        lines = mark.group(3).splitlines()
        right = [copied(line, mark, tables)[1] or line for line in lines[2:]]
        return mark.group(0)[:mark.start(3) - mark.start()] + '\n'.join([*lines[:2], *right]) + '\n'
    return COPY.sub(fix_copy, ''.join(fix_section(section, tables, blocks) for section in sections(text)))


# --- pages ------------------------------------------------------------------------------------------------------------

def check_page(text, tables, blocks):
    problems = check_generated(text) + check_random(text, tables) + check_copies(text, tables)
    for section in sections(text):
        said = plain(COMMENT.sub(' ', GENERATED.sub(' ', section)))
        answered = []
        for line in claims(section):
            if SAID.match(line):
                problems += check_said(SAID.match(line), said, blocks)
                continue
            found, words = check_claim(line, said, tables)
            problems += found
            answered.append(words)
        for words in answered:
            said = said.replace(words, ' ')
        for loose in re.finditer(r'.{0,40}\bgeometric mean\b.{0,40}', said):
            problems.append(f'nothing computes "{loose.group(0).strip()}"')
    return problems, sum(len(NUMBER.findall(words)) for words in re.findall(r'^"([^"]+)":', text, re.M))


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != '--fix']
    root = pathlib.Path(arguments[0]).resolve() if arguments else ROOT
    pages = [root / 'README.md', *sorted((root / 'docs').rglob('*.md'))]
    texts = {page: page.read_text(encoding='utf-8') for page in pages}
    tables, blocks = {}, {}
    for text in texts.values():
        tables.update(tables_of(text))
        blocks.update(blocks_of(text))
    failed, numbers = False, 0
    for page, text in texts.items():
        fixed = fix_page(text, tables, blocks) if '--fix' in sys.argv else text
        if fixed != text:
            text = fixed
            page.write_text(text, encoding='utf-8')
            print(f'{page.relative_to(root)}: fixed')
        problems, count = check_page(text, tables, blocks)
        numbers += count
        for problem in problems:
            failed = True
            print(f'{page.relative_to(root)}: {problem}')
    if not failed:
        print(f'means ok: {numbers} numbers follow from {len(tables)} tables')
    return 1 if failed or not numbers else 0


sys.exit(main())
