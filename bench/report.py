# SPDX-License-Identifier: Apache-2.0
"""What a run leaves: a table as it goes, and on wish CSV, SVG and a part of a Markdown page."""

import csv
import dataclasses
import html
import math
import pathlib
import re
import sys
from typing import Optional

# The columns behind our own: who, and whether our time is compared with theirs.
CPU_PEERS = {'PyTorch': True, 'oneDNN': True}
CUDA_PEERS = {'PyTorch': True, 'determ.': False, 'cuDNN': True, 'atomics': False}
NONE = math.inf  # the time of what a peer refuses to compute that way
# What a page says of the rows in which one of these forms was the peer's fastest.
REMARKS = {'PyTorch mean': 'PyTorch\'s time is that of mean, or of its backward',
           'PyTorch copied': 'PyTorch\'s operator writes planar memory only, and its time includes a copy'}


@dataclasses.dataclass
class Result:
    name: str
    line: str
    kind: str  # cold, warm, lone or queued; on a GPU cold, graph, stream or host
    floor: int  # bytes
    us: float
    limit_us: Optional[float] = None
    peers_us: dict = dataclasses.field(default_factory=dict)
    calls: int = 0
    spread: float = 0.0  # third quartile over first, of ours
    noisy: set = dataclasses.field(default_factory=set)  # contestants whose times mean little
    counted: bool = True  # in the means of ratios
    method: str = ''  # by which poolgrad computed it

    @property
    def is_forward(self):
        return self.line.split()[0].endswith('_forward')

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


class Progress:
    """One line that is written over; without a text it goes away."""

    def __init__(self):
        self.where = ''

    def __call__(self, text=''):
        if sys.stderr.isatty():
            print(f'\r\033[K{self.where} {text}' if text else '\r\033[K', end='', file=sys.stderr, flush=True)
        elif text.endswith('preparing'):  # a log gets a line per row
            print(f'{self.where} {text}', file=sys.stderr, flush=True)


def show(value, form):
    return '-' if value is None else 'none' if value == NONE else format(value, form)


def digits(us, noisy):
    return ('~' if noisy else '') + show(us, '.2f' if us is not None and us < 100 else ',.0f')


def cells(peers, result):
    rate = result.floor / result.us / 1e3 if result.limit_us else None
    line = [result.title, digits(result.us, 'poolgrad' in result.noisy), show(rate, '.1f'),
            digits(result.limit_us, any(name.startswith('twin') for name in result.noisy)), show(result.share, '.0%')]
    for peer, compared in peers.items():
        line.append(digits(result.peers_us.get(peer), any(name.startswith(peer) for name in result.noisy)))
        line += [show(result.ratio(peer), '.2f')] if compared else []
    return line + [result.method]


def widths(peers):
    return [24, 10, 7, 10, 7] + [w for compared in peers.values() for w in ((11, 8) if compared else (11,))] + [13]


def table_line(peers, values):
    first, *rest = (value.rjust(width) for value, width in zip(values, widths(peers)))
    return '| ' + ' | '.join([values[0].ljust(len(first)), *rest]) + ' |'


def table_head(peers):
    headings = ['row', 'us', 'GB/s', 'limit us', 'share']
    for peer, compared in peers.items():
        headings += [f'{peer} us', 'ratio'] if compared else [f'{peer} us']
    headings.append('method')
    first, *rest = widths(peers)
    rule = '|' + '-' * (first + 2) + '|' + '|'.join('-' * (w + 1) + ':' for w in rest) + '|'
    return table_line(peers, headings) + '\n' + rule


def disagreement(row, peer, difference):
    return f'{row}: {peer} is left out, since it differs by {difference:.2g} of the largest value.'


def remarks(found):
    """found: the names of rows for each form that needs a remark."""
    return [f'{REMARKS[form]}: {", ".join(dict.fromkeys(names))}.' for form, names in found.items()]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def with_share(results):
    """Those whose share of the limit counts."""
    return [r for r in results if r.share and r.kind == 'cold' and r.sound('twin')]


def with_ratio(results, peer):
    """Those whose comparison with the peer counts."""
    return [r for r in results if r.ratio(peer) and r.counted and r.sound(peer)]


def summary(peers, results):
    """One sentence per peer: how many times as long it takes as the library; then the rows that these leave out.
    tools/check_means.py recomputes these sentences from the table."""
    lines = []
    shares = {r.name: r.share for r in with_share(results)}
    if shares:
        least = min(shares, key=shares.get)
        lines.append(f'Share of the limit: geometric mean {geometric_mean(shares.values()):.0%} of {len(shares)} cold '
                     f'rows, lowest {shares[least]:.0%} ({least}).')
    for peer in (peer for peer, compared in peers.items() if compared):
        ratios = {r.title: r.ratio(peer) for r in with_ratio(results, peer)}
        if ratios:
            slower, least = sum(round(ratio, 2) < 1 for ratio in ratios.values()), min(ratios, key=ratios.get)
            lines.append(f'{peer} / poolgrad: geometric mean {geometric_mean(ratios.values()):.2f} of {len(ratios)} '
                         f'rows, lowest {ratios[least]:.2f} ({least}); poolgrad is slower in {slower}.')
    compared = [peer for peer, compared in peers.items() if compared]
    left_out = [r.title for r in results if any(r.ratio(peer) for peer in compared) and not r.counted]
    if left_out:
        lines.append(f'Not in the means of ratios: {", ".join(left_out)}.')
    return lines


def write_csv(path, peers, results):
    with open(path, 'w', newline='', encoding='utf-8') as file:
        writer = csv.writer(file)
        names = [peer.lower().strip('.') for peer in peers]
        writer.writerow(['row', 'kind', 'problem', 'floor_bytes', 'us', 'limit_us', *(f'{name}_us' for name in names),
                         'share', *(f'{name}_ratio' for name in names), 'calls', 'spread', 'disturbed', 'method'])
        for r in results:
            numbers = [r.us, r.limit_us, *(r.peers_us.get(peer) for peer in peers),
                       r.share, *(r.ratio(peer) for peer in peers)]
            writer.writerow([r.name, r.kind, r.line, r.floor, *(show(number, '.3f').strip('-') for number in numbers),
                             r.calls, f'{r.spread:.3f}', ' '.join(sorted(r.noisy)), r.method])


def directions(results):
    """Backward and forward results, where there are such: they have tables and means of their own."""
    found = [[r for r in results if r.is_forward == forward] for forward in (False, True)]
    return [part for part in found if part]


def summaries(peers, results):
    """The sentences for each direction, below its name where there are both."""
    parts = directions(results)
    names = ['forward' if part[0].is_forward else 'backward' for part in parts] if len(parts) > 1 else ['']
    return [line for name, part in zip(names, parts)
            for line in [*([f'{name.capitalize()} rows:'] if name else []), *summary(peers, part)]]


def write_markdown(path, peers, header, results, notes):
    """Forward operators and a GPU have their own marks. A note that begins with a row's name goes where the row is."""
    for part in directions(results):
        others = {r.name for r in results} - {r.name for r in part}
        text = [*header, '', table_head(peers), *(table_line(peers, cells(peers, r)) for r in part), '',
                *summary(peers, part), *(note for note in notes if note.split(':')[0] not in others)]
        words = ['bench', *(['forward'] if part[0].is_forward else []), *(['cuda'] if peers is CUDA_PEERS else [])]
        put_between_marks(path, ' '.join(words), text)


def put_between_marks(path, mark, lines):
    """Replaces what stands between the two marks of the page; a page without them gets them at its end."""
    begin, end = f'<!-- {mark}: begin -->', f'<!-- {mark}: end -->'
    block = f'{begin}\n' + '\n'.join(lines) + f'\n{end}'
    page = pathlib.Path(path)
    old = page.read_text(encoding='utf-8') if page.exists() else ''
    if begin in old and end in old:
        block = re.sub(f'{re.escape(begin)}.*{re.escape(end)}', lambda _: block, old, flags=re.S)
    else:
        block = old + block + '\n'
    page.write_text(block, encoding='utf-8')


# --- SVG ----------------------------------------------------------------------------------------------

LEFT, WIDTH, STEP, TOP, MOST = 190, 560, 20, 64, 1.5
MARKS = {'PyTorch': '#c2410c', 'oneDNN': '#6d28d9', 'cuDNN': '#15803d'}


def write_svg(path, peers, header, results):
    """Share of the limit as bars, the peers' share of the same limit as marks."""
    rows = [r for r in results if r.share]
    height = TOP + STEP * len(rows) + 30
    marks = {peer: colour for peer, colour in MARKS.items() if peer in peers}

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
    for place, (peer, colour) in enumerate(marks.items(), 1):
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
        for peer, colour in marks.items():
            if peer in row.peers_us:
                at = x(row.limit_us / row.peers_us[peer])
                lines.append(f'<rect x="{at - 2:.1f}" y="{y - 2}" width="4" height="16" fill="{colour}"/>')
    pathlib.Path(path).write_text('\n'.join([*lines, '</svg>', '']), encoding='utf-8')
