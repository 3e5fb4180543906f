# SPDX-License-Identifier: Apache-2.0
"""What a run leaves: a table as it goes, and on wish CSV, SVG and a part of a Markdown page."""

import csv
import dataclasses
import html
import math
import pathlib
import re
from typing import Optional

PEERS = ('PyTorch', 'oneDNN')
WIDTHS = (24, 10, 7, 10, 7, 11, 8, 11, 8)
HEADINGS = ('row', 'us', 'GB/s', 'limit us', 'share', 'PyTorch us', 'ratio', 'oneDNN us', 'ratio')


@dataclasses.dataclass
class Result:
    name: str
    line: str
    kind: str  # cold, warm, lone or queued
    floor: int  # bytes
    us: float
    limit_us: Optional[float] = None
    peers_us: dict = dataclasses.field(default_factory=dict)
    calls: int = 0
    spread: float = 0.0  # third quartile over first, of ours
    noisy: set = dataclasses.field(default_factory=set)  # contestants whose times mean little

    @property
    def title(self):
        return self.name if self.kind == 'cold' else f'{self.name} {self.kind}'

    @property
    def share(self):
        return self.limit_us / self.us if self.limit_us else None

    def ratio(self, peer):
        return self.peers_us[peer] / self.us if peer in self.peers_us else None


    def sound(self, who):
        return not any(name.startswith((who, 'poolgrad')) for name in self.noisy)


def show(value, form):
    return '-' if value is None else format(value, form)


def digits(us, noisy):
    return ('~' if noisy else '') + show(us, '.2f' if us is not None and us < 100 else ',.0f')


def cells(result):
    rate = result.floor / result.us / 1e3 if result.limit_us else None
    line = [result.title, digits(result.us, 'poolgrad' in result.noisy), show(rate, '.1f'),
            digits(result.limit_us, any(name.startswith('twin') for name in result.noisy)), show(result.share, '.0%')]
    for peer in PEERS:
        line += [digits(result.peers_us.get(peer), any(name.startswith(peer) for name in result.noisy)),
                 show(result.ratio(peer), '.2f')]
    return line


def table_line(values):
    first, *rest = values
    return '| ' + ' | '.join([first.ljust(WIDTHS[0]), *(v.rjust(w) for v, w in zip(rest, WIDTHS[1:]))]) + ' |'


def table_head():
    rule = '|' + '-' * (WIDTHS[0] + 2) + '|' + '|'.join('-' * (w + 1) + ':' for w in WIDTHS[1:]) + '|'
    return table_line(HEADINGS) + '\n' + rule


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def summary(results):
    """One sentence per peer: how many times as long it takes as the library."""
    lines = []
    shares = [r.share for r in results if r.share and r.kind == 'cold' and r.sound('twin')]
    if shares:
        lines.append(f'Share of the limit: geometric mean {geometric_mean(shares):.0%} of {len(shares)} cold rows, '
                     f'lowest {min(shares):.0%}.')
    for peer in PEERS:
        ratios = [r.ratio(peer) for r in results if r.ratio(peer) and r.kind != 'queued' and r.sound(peer)]
        if ratios:
            slower = sum(ratio < 1 for ratio in ratios)
            lines.append(f'{peer} / poolgrad: geometric mean {geometric_mean(ratios):.2f} of {len(ratios)} rows, '
                         f'lowest {min(ratios):.2f}; poolgrad is slower in {slower}.')
    return lines


def write_csv(path, results):
    with open(path, 'w', newline='', encoding='utf-8') as file:
        writer = csv.writer(file)
        writer.writerow(['row', 'kind', 'problem', 'floor_bytes', 'us', 'limit_us',
                         *(f'{peer.lower()}_us' for peer in PEERS), 'calls', 'spread', 'disturbed'])
        for r in results:
            writer.writerow([r.name, r.kind, r.line, r.floor, f'{r.us:.3f}', show(r.limit_us, '.3f').strip('-'),
                             *(show(r.peers_us.get(peer), '.3f').strip('-') for peer in PEERS), r.calls,
                             f'{r.spread:.3f}', ' '.join(sorted(r.noisy))])


def write_markdown(path, header, results, notes):
    """Replaces what stands between the two marks of the page, or makes a page."""
    text = [*header, '', table_head(), *(table_line(cells(r)) for r in results), '', *summary(results), *notes]
    begin, end = '<!-- bench: begin -->', '<!-- bench: end -->'
    block = f'{begin}\n' + '\n'.join(text) + f'\n{end}'
    page = pathlib.Path(path)
    old = page.read_text(encoding='utf-8') if page.exists() else ''
    if begin in old and end in old:
        block = re.sub(f'{re.escape(begin)}.*{re.escape(end)}', lambda _: block, old, flags=re.S)
    else:
        block = old + block + '\n'
    page.write_text(block, encoding='utf-8')


# --- SVG ----------------------------------------------------------------------------------------------

LEFT, WIDTH, STEP, TOP, MOST = 190, 560, 20, 64, 1.5
MARKS = {'PyTorch': '#c2410c', 'oneDNN': '#6d28d9'}


def write_svg(path, header, results):
    """Share of the limit as bars, the peers' share of the same limit as marks."""
    rows = [r for r in results if r.share]
    height = TOP + STEP * len(rows) + 30

    def x(share):
        return LEFT + WIDTH * min(share, MOST) / MOST

    def text(at, y, words, anchor='start', size=12):
        return f'<text x="{at:.1f}" y="{y}" font-size="{size}" text-anchor="{anchor}">{html.escape(words)}</text>'

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 60}" height="{height}" '
             'font-family="sans-serif" fill="#222">',
             f'<rect width="100%" height="{height}" fill="#fff"/>',
             text(10, 20, 'Share of the limit (reading and writing the same bytes); higher is better', size=14),
             text(10, 38, header, size=10),
             f'<rect x="{LEFT}" y="48" width="10" height="8" fill="#2563eb"/>',
             text(LEFT + 14, 56, 'poolgrad', size=10)]
    for place, (peer, colour) in enumerate(MARKS.items(), 1):
        lines += [f'<rect x="{LEFT + 80 * place}" y="47" width="4" height="10" fill="{colour}"/>',
                  text(LEFT + 80 * place + 8, 56, peer, size=10)]
    for percent in range(0, int(MOST * 100) + 1, 25):
        at = x(percent / 100)
        colour = '#222' if percent == 100 else '#ddd'
        lines += [f'<line x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{height - 26}" stroke="{colour}"/>',
                  text(at, height - 10, f'{percent} %', 'middle', 10)]
    for number, row in enumerate(rows):
        y = TOP + STEP * number + 4
        lines += [text(LEFT - 8, y + 10, row.title, 'end', 11),
                  f'<rect x="{LEFT}" y="{y}" width="{x(row.share) - LEFT:.1f}" height="12" fill="#2563eb"/>']
        if row.share > MOST:
            lines.append(text(LEFT + WIDTH + 4, y + 10, f'{row.share:.0%}', size=10))
        for peer, colour in MARKS.items():
            if peer in row.peers_us:
                at = x(row.limit_us / row.peers_us[peer])
                lines.append(f'<rect x="{at - 2:.1f}" y="{y - 2}" width="4" height="16" fill="{colour}"/>')
    pathlib.Path(path).write_text('\n'.join([*lines, '</svg>', '']), encoding='utf-8')
