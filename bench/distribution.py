# SPDX-License-Identifier: Apache-2.0
"""What a run of random problems leaves beside its rows: how shares and ratios are distributed, over all problems and
by groups of them, the worst problems with the commands that repeat them, and on wish a part of a Markdown page.
tools/check_means.py recomputes that part from its list of problems. curves.py draws."""

import math

import report

WORST = 5
PERCENTILES = (10, 50, 90)
SMALL, LARGE = 4 << 20, 32 << 20  # bytes, between the classes of sizes


def percentile(values, percent):
    """The least value that so many percent of them do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


# --- groups: of anything that has a line, floor bytes and a method ----------------------------------------------------

def element_type(problem):
    return problem.line.split()[1]


def layout(problem):
    last = {'nhwc', 'ndhwc', 'grad_in=permuted', 'self=permuted'}
    return 'channels last' if last & set(problem.line.split()) else 'planar'


def size(problem):
    return 'below 4 MB' if problem.floor < SMALL else '4 to 32 MB' if problem.floor < LARGE else '32 MB and more'


def operator(problem):
    return problem.line.split()[0]


def method(problem):
    """Methods of maxima and of averages, and of the two directions, share some names."""
    direction = ' forward' if operator(problem).endswith('_forward') else ''
    return f'{"max" if "max" in operator(problem) else "average"}{direction} {problem.method}'


GROUPS = {'type': element_type, 'layout': layout, 'bytes': size, 'operator': operator, 'method': method}
# Of groups in their table; others come in the order of their numbers of problems.
ORDER = ('f32', 'f16', 'bf16', 'f64', 'planar', 'channels last', 'below 4 MB', '4 to 32 MB', '32 MB and more')
# Groups that should be equally near to the limit: those in the second one can be the same problems (draw.relatives).
COMPARED = (('type', 'f16', 'f32'), ('type', 'bf16', 'f32'), ('layout', 'channels last', 'planar'))


# --- figures ----------------------------------------------------------------------------------------------------------

def compared(peers):
    return [peer for peer, counts in peers.items() if counts]


def ratios(results, peer, kind='cold'):
    """Of the problems of that kind whose comparison with the peer counts."""
    return [(r.ratio(peer), r) for r in report.with_ratio(results, peer) if r.kind == kind]


def bounds(results):
    """Of the problems whose bound is known: the share that computing allows, and how near to it they come."""
    known = {r.name: r.share for r in results if r.kind == 'bound' and r.sound('twin')}
    found = [(r, known[r.name]) for r in report.with_share(results) if r.name in known]
    return [(bound, r) for r, bound in found], [(r.share / bound, r) for r, bound in found]


def figures(peers, results):
    """What is distributed: a name, how a value is printed, and value and result of every problem that counts."""
    bound, near = bounds(results)
    found = [('share of the limit', '.0%', [(r.share, r) for r in report.with_share(results)]),
             ('share that computing allows', '.0%', bound), ('share / what computing allows', '.2f', near)]
    found += [(f'{peer} / poolgrad', '.2f', ratios(results, peer)) for peer in compared(peers)]
    found += [(f'{peer} / poolgrad, warm below 4 MB', '.2f', ratios(results, peer, 'warm')) for peer in compared(peers)]
    return [(name, form, values) for name, form, values in found if values]


def table(rows):
    """The first row is the head; all columns but the first are numbers."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for first, *rest in rows:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:]))]
        lines.append('| ' + ' | '.join(cells) + ' |')
    lines.insert(1, '|' + '-' * (widths[0] + 2) + '|' + '|'.join('-' * (width + 1) + ':' for width in widths[1:]) + '|')
    return lines


def percentiles(peers, results):
    """On a busy machine mostly long calls are disturbed, so the shares are shown with the disturbed ones as well."""
    rows = [['', 'problems', 'mean', *(f'{percent}th perc.' for percent in PERCENTILES), 'lowest', 'slower in']]
    found = [(name, form, [value for value, _ in pairs]) for name, form, pairs in figures(peers, results)]
    shares = [r.share for r in results if r.share and r.kind == 'cold']
    if len(shares) > len(report.with_share(results)):
        found.append(('share, disturbed too', '.0%', shares))
    for name, form, values in found:
        shown = [report.geometric_mean(values), *(percentile(values, percent) for percent in PERCENTILES), min(values)]
        slower = str(sum(round(value, 2) < 1 for value in values)) if ' / poolgrad' in name else '-'
        rows.append([name, str(len(values)), *(format(value, form) for value in shown), slower])
    return table(rows)


def worst(peers, results, repeat):
    """repeat(line): the command that measures this problem again."""
    lines = []
    for name, form, pairs in figures(peers, results):
        lines += ['', f'Lowest {name}:']
        for value, result in sorted(pairs, key=lambda pair: pair[0])[:WORST]:
            lines.append(f'{value:>6{form}}  {result.name:12} {repeat(result.line)}')
    return lines


def group_table(peers, results, heading):
    """How often each group occurs, how near its problems come to the limit, and each peer's mean ratio in it."""
    group_of, sound, members = GROUPS[heading], report.with_share(results), {}
    for result in sound:
        members.setdefault(group_of(result), []).append(result)
    rows = [[heading, 'problems', 'share', 'lowest', 'in', *compared(peers)]]
    for name in sorted(members, key=lambda name: (ORDER.index(name) if name in ORDER else -len(members[name]), name)):
        group = members[name]
        least = min(group, key=lambda member: member.share)
        means = []
        for peer in compared(peers):
            values = [ratio for ratio, r in ratios(results, peer) if group_of(r) == name]
            means.append(f'{report.geometric_mean(values):.2f}' if values else '-')
        mean = report.geometric_mean([member.share for member in group])
        rows.append([name, str(len(group)), f'{mean:.0%}', f'{least.share:.0%}', least.name, *means])
    return table(rows)


def pairs(results):
    """Groups that should be equal, each problem beside its relative: the mean shares of both, and their difference."""
    relatives = {(r.name, r.kind): r for r in results if r.share and r.sound('twin')}
    rows = [['pairs', 'problems', 'share', 'relative', 'points']]
    for heading, one, other in COMPARED:
        found = [(r.share, relatives[r.name, f'as {other}'].share) for r in report.with_share(results)
                 if GROUPS[heading](r) == one and (r.name, f'as {other}') in relatives]
        if found:
            mine, theirs = (report.geometric_mean(shares) for shares in zip(*found))
            points = f'{100 * (mine - theirs):+.0f}'
            rows.append([f'{one} as {other}', str(len(found)), f'{mine:.0%}', f'{theirs:.0%}', points])
    return ['', *table(rows)] if len(rows) > 1 else []


def left_out(peers, results):
    """Comparisons that were measured and do not count."""
    count = sum(any(r.ratio(peer) for peer in compared(peers)) and not r.counted for r in results if r.kind == 'cold')
    why = 'Not in the ratios, since poolgrad reads int32 indices there and the others more'
    return ['', f'{why}: {count} problems.'] if count else []


def tables(peers, results):
    lines = [*percentiles(peers, results), *left_out(peers, results), *pairs(results)]
    for heading in GROUPS:
        lines += ['', *group_table(peers, results, heading)]
    return lines


def summary(peers, results, repeat):
    return [*tables(peers, results), *worst(peers, results, repeat)]


# --- Markdown ---------------------------------------------------------------------------------------------------------

def cell(value, form, sound, counted=True):
    """A number that counts; else one that is no number to a reader of tables."""
    text = report.show(value, form)
    return text if value is None else f'~{text}' if not sound else text if counted else f'({text})'


def problem_list(peers, results):
    """A line for each problem: cold, the relatives' shares, warm. It has a digit more than the means made of it."""
    others = {(r.name, r.kind): r for r in results if r.kind != 'cold'}
    kinds = [kind for kind in ('bound', 'as f32', 'as planar') if any(kind == of for _, of in others)]
    warm = any(kind == 'warm' for _, kind in others)
    heads = ['row', 'problem', 'bytes', 'us', 'share', *kinds, *(f'{peer} ratio' for peer in compared(peers))]
    heads += [f'{peer} warm' for peer in compared(peers)] if warm else []
    lines = ['| ' + ' | '.join([*heads, 'method']) + ' |', '|---|---|' + '---:|' * (len(heads) - 2) + '---|']
    for r in (r for r in results if r.kind == 'cold'):
        cells = [r.name, f'`{r.line}`', f'{r.floor:,}', report.digits(r.us, 'poolgrad' in r.noisy),
                 cell(r.share, '.1%', r.sound('twin'))]
        relatives = [others.get((r.name, kind)) for kind in kinds]
        cells += [cell(other.share, '.1%', other.sound('twin')) if other else '-' for other in relatives]
        cells += [cell(r.ratio(peer), '.3f', r.sound(peer), r.counted) for peer in compared(peers)]
        if warm:
            again = others.get((r.name, 'warm'))
            cells += [cell(again.ratio(peer), '.3f', again.sound(peer)) if again else '-' for peer in compared(peers)]
        lines.append('| ' + ' | '.join([*cells, r.method]) + ' |')
    return lines


def write_markdown(path, peers, header, results, notes):
    words = ['random', *(['forward'] if all(r.is_forward for r in results) else [])]
    name = ' '.join(words + (['cuda'] if peers is report.CUDA_PEERS else []))
    count = sum(r.kind == 'cold' for r in results)
    text = [*header, '', *tables(peers, results), '', *notes, '',
            '<details markdown>', f'<summary>All {count} problems</summary>', '',
            f'<!-- table {name} -->', *problem_list(peers, results), '', '</details>']
    report.put_between_marks(path, f'bench {name}', text)
