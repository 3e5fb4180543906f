# SPDX-License-Identifier: Apache-2.0
"""The share of the limit over random problems, worst first: an SVG with a curve for the library and for each peer."""

import html
import pathlib

import report

LEFT, TOP, WIDTH, HEIGHT, RIGHT, BOTTOM = 56, 112, 620, 330, 30, 52
MOST = 1.5  # share; what is above lies on the upper edge
# A page may be light or dark: the picture brings its own ground, and follows the reader's choice where it is told.
STYLE = '''text { font-family: sans-serif; fill: #222; }
.ground { fill: #fff; } .grid { stroke: #ddd; } .limit { stroke: #222; }
.curve { fill: none; stroke-width: 2; stroke-linejoin: round; }
.poolgrad { stroke: #2563eb; } .PyTorch { stroke: #c2410c; stroke-dasharray: 8 3; }
.oneDNN { stroke: #7c3aed; stroke-dasharray: 2 3; } .cuDNN { stroke: #15803d; stroke-dasharray: 2 3; }
'''
DARK = '''text { fill: #e5e7eb; }
.ground { fill: #0d1117; } .grid { stroke: #30363d; } .limit { stroke: #e5e7eb; }
.poolgrad { stroke: #60a5fa; } .PyTorch { stroke: #fb923c; } .oneDNN { stroke: #c4b5fd; } .cuDNN { stroke: #4ade80; }
'''


def curves(peers, results):
    """Shares of the limit in ascending order, ours and the peers'; a peer's of those problems that it computes."""
    sound = report.with_share(results)
    found = {'poolgrad': [r.share for r in sound]}
    for peer in (peer for peer, compared in peers.items() if compared):
        found[peer] = [r.limit_us / r.peers_us[peer] for r in sound if r.ratio(peer) and r.counted and r.sound(peer)]
    return {name: sorted(shares) for name, shares in found.items() if shares}


def x(fraction):
    return LEFT + WIDTH * fraction


def y(share):
    return TOP + HEIGHT * (1 - min(share, MOST) / MOST)


def text(at, below, words, anchor='start', font=11):
    return f'<text x="{at:.1f}" y="{below:.1f}" font-size="{font}" text-anchor="{anchor}">{html.escape(words)}</text>'


def line(kind, x1, y1, x2, y2):
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def grid():
    lines = []
    for percent in range(0, int(MOST * 100) + 1, 25):
        at = y(percent / 100)
        lines += [line('limit' if percent == 100 else 'grid', LEFT, at, x(1), at),
                  text(LEFT - 6, at + 4, f'{percent} %{"+" if percent == 100 * MOST else ""}', 'end')]
    for percent in range(0, 101, 10):
        lines += [line('grid', x(percent / 100), y(0), x(percent / 100), y(0) + 4),
                  text(x(percent / 100), y(0) + 17, f'{percent} %', 'middle')]
    return lines + [text(x(0) + 6, y(1) - 5, 'the limit'),
                    text(x(0.5), y(0) + 38, 'fraction of the problems, each contestant\'s worst ones first', 'middle')]


def drawn(found):
    """Each curve, and its place in the legend."""
    lines = []
    for place, (name, shares) in enumerate(found.items()):
        points = ' '.join(f'{x((i + 0.5) / len(shares)):.1f},{y(share):.1f}' for i, share in enumerate(shares))
        at = LEFT + 215 * place
        lines += [f'<polyline class="curve {name}" points="{points}"/>',
                  f'<line class="curve {name}" x1="{at}" y1="{TOP - 22}" x2="{at + 24}" y2="{TOP - 22}"/>',
                  text(at + 30, TOP - 18, f'{name}, {len(shares)} problem{"s" if len(shares) > 1 else ""}')]
    return lines


def write_svg(path, peers, header, results):
    """Over each fraction of the problems, the share of the limit that all those to the right reach. header: lines."""
    width, height = LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM
    place = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {place}>',
             f'<style>{STYLE}@media (prefers-color-scheme: dark) {{\n{DARK}}}</style>',
             '<rect class="ground" width="100%" height="100%"/>',
             text(10, 22, 'Share of the limit on random problems; higher is better', font=15),
             *(text(10, 40 + 14 * number, words, font=10) for number, words in enumerate(header)),
             *grid(), *drawn(curves(peers, results)), '</svg>', '']
    pathlib.Path(path).write_text('\n'.join(lines), encoding='utf-8')
