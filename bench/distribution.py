# SPDX-License-Identifier: Apache-2.0
"""What a run of random problems leaves beside its rows: how shares and ratios are distributed, the worst problems with
the commands that repeat them, the methods, and on wish a curve."""

import html
import math
import pathlib

import report

WORST = 5
PERCENTILES = (10, 50, 90)


def percentile(values, percent):
    """The least value that so many percent of them do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def figures(peers, results):
    """What is distributed: a name, how a value is printed, and value and result of every problem that counts."""
    found = [('share of the limit', '.0%', [(r.share, r) for r in report.with_share(results)])]
    for peer in (peer for peer, compared in peers.items() if compared):
        found.append((f'{peer} / poolgrad', '.2f', [(r.ratio(peer), r) for r in report.with_ratio(results, peer)]))
    return [(name, form, values) for name, form, values in found if values]


def table(widths, rows):
    """The first row is the head; all columns but the first are numbers."""
    lines = []
    for cells in rows:
        first, *rest = (cell.rjust(width) for cell, width in zip(cells, widths))
        lines.append('| ' + ' | '.join([cells[0].ljust(len(first)), *rest]) + ' |')
    lines.insert(1, '|' + '-' * (widths[0] + 2) + '|' + '|'.join('-' * (width + 1) + ':' for width in widths[1:]) + '|')
    return lines


def percentiles(peers, results):
    """On a busy machine mostly long calls are disturbed, so the shares are shown with the disturbed ones as well."""
    rows = [['', 'problems', 'mean', *(f'{percent}th perc.' for percent in PERCENTILES), 'lowest']]
    found = [(name, form, [value for value, _ in pairs]) for name, form, pairs in figures(peers, results)]
    shares = [r.share for r in results if r.share]
    if len(shares) > len(report.with_share(results)):
        found.append(('share, disturbed too', '.0%', shares))
    for name, form, values in found:
        shown = [report.geometric_mean(values), *(percentile(values, percent) for percent in PERCENTILES), min(values)]
        rows.append([name, str(len(values)), *(format(value, form) for value in shown)])
    return table([20, 8, 8, 10, 10, 10, 8], rows)


def worst(peers, results, repeat):
    """repeat(line): the command that measures this problem again."""
    lines = []
    for name, form, pairs in figures(peers, results):
        lines += ['', f'Lowest {name}:']
        for value, result in sorted(pairs, key=lambda pair: pair[0])[:WORST]:
            lines.append(f'{value:>6{form}}  {result.name:8} {repeat(result.line)}')
    return lines


def method(result):
    """Methods of maxima and of averages share some names."""
    return f'{"max" if "max" in result.line.split()[0] else "average"} {result.method}'


def operator(result):
    return result.line.split()[0]


def groups(results, heading, group_of):
    """How often each group occurs, and how near its problems come to the limit."""
    found = {}
    for result in report.with_share(results):
        found.setdefault(group_of(result), []).append(result)
    rows = [[heading, 'problems', 'share', 'lowest', 'in']]
    for name, members in sorted(found.items(), key=lambda group: -len(group[1])):
        least = min(members, key=lambda member: member.share)
        mean = report.geometric_mean([member.share for member in members])
        rows.append([name, str(len(members)), f'{mean:.0%}', f'{least.share:.0%}', least.name])
    return table([24, 8, 8, 8, 9], rows)


def summary(peers, results, repeat):
    return [*percentiles(peers, results), *worst(peers, results, repeat), '',
            *groups(results, 'method', method), '', *groups(results, 'operator', operator)]


# --- SVG ----------------------------------------------------------------------------------------------

LEFT, TOP, WIDTH, HEIGHT = 60, 64, 620, 360


def curves(peers, results):
    """Shares of the limit in ascending order, ours and the peers'; a peer's of those problems that it computes."""
    sound = report.with_share(results)
    found = {'poolgrad': [r.share for r in sound]}
    for peer in (peer for peer in peers if peer in report.MARKS):
        found[peer] = [r.limit_us / r.peers_us[peer] for r in sound if r.ratio(peer) and r.sound(peer)]
    return {name: sorted(shares) for name, shares in found.items() if shares}


def write_svg(path, peers, header, results):
    """Over each fraction of the problems, the share of the limit that all those to the right reach."""
    def x(fraction):
        return LEFT + WIDTH * fraction

    def y(share):
        return TOP + HEIGHT * (1 - min(share, report.MOST) / report.MOST)

    def text(at, below, words, anchor='start', size=10):
        place = f'x="{at:.1f}" y="{below:.1f}" font-size="{size}" text-anchor="{anchor}"'
        return f'<text {place}>{html.escape(words)}</text>'

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 30}" height="{TOP + HEIGHT + 44}" '
             'font-family="sans-serif" fill="#222">', '<rect width="100%" height="100%" fill="#fff"/>',
             text(10, 20, 'Share of the limit over random problems, worst first; higher is better', size=14),
             text(10, 38, header), text(x(0.5), TOP + HEIGHT + 34, 'fraction of the problems', 'middle')]
    for percent in range(0, int(report.MOST * 100) + 1, 25):
        at, colour = y(percent / 100), '#222' if percent == 100 else '#ddd'
        lines += [f'<line x1="{LEFT}" y1="{at:.1f}" x2="{x(1)}" y2="{at:.1f}" stroke="{colour}"/>',
                  text(LEFT - 6, at + 4, f'{percent} %', 'end')]
    lines += [text(x(percent / 100), TOP + HEIGHT + 16, f'{percent} %', 'middle') for percent in range(0, 101, 10)]
    for place, (name, shares) in enumerate(curves(peers, results).items()):
        colour = report.MARKS.get(name, '#2563eb')
        points = ' '.join(f'{x((i + 0.5) / len(shares)):.1f},{y(share):.1f}' for i, share in enumerate(shares))
        lines += [f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>',
                  f'<rect x="{LEFT + 160 * place}" y="49" width="10" height="4" fill="{colour}"/>',
                  text(LEFT + 160 * place + 14, 56, f'{name} ({len(shares)} problems)')]
    pathlib.Path(path).write_text('\n'.join([*lines, '</svg>', '']), encoding='utf-8')
