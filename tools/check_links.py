#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the relative links and anchors of the Markdown files, and that README.md leads to every page."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r'!?\[[^\]]*\]\(([^)\s]+)\)')
CODE = re.compile(r'^```.*?^```|`[^`\n]*`', re.S | re.M)
HEADING = re.compile(r'^#+\s+(.*?)\s*#*$', re.M)
COMMENT = re.compile(r'<!--.*?-->', re.S)


def anchors(text):
    """Those of a page's headings that a hosting site and MkDocs both give."""
    titles = HEADING.findall(re.sub(r'^```.*?^```', '', text, flags=re.S | re.M))
    plain = [re.sub(r'[^\w\s-]', '', re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', title)).strip().lower() for title in titles]
    hosted = {re.sub(r'\s', '-', title) for title in plain}
    return hosted & {re.sub(r'[-\s]+', '-', title) for title in plain}


def links(text):
    return LINK.findall(COMMENT.sub('', CODE.sub('', text)))


def check(path, texts, root):
    """The problems of one page, and the pages that it links to."""
    problems, targets = [], set()
    for link in links(texts[path]):
        if '://' in link or link.startswith('mailto:'):
            continue
        name, _, anchor = link.partition('#')
        target = (path.parent / name).resolve() if name else path
        if not target.is_file() or root not in target.parents:
            problems.append(f'{path.relative_to(root)} links to {link}, which is not a file of the project')
        elif anchor and anchor not in anchors(texts.get(target, '')):
            problems.append(f'{path.relative_to(root)} links to {link}, and there is no such heading')
        targets.add(target)
    return problems, targets


def main():
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    paths = [*root.glob('*.md'), *(root / 'docs').rglob('*.md')]
    texts = {path: path.read_text(encoding='utf-8') for path in paths}
    problems, reached, count = [], {}, 0
    for path in sorted(paths):
        found, reached[path] = check(path, texts, root)
        problems += found
        count += len(links(texts[path]))
    seen, to_see = set(), [root / 'README.md']
    while to_see:
        path = to_see.pop()
        if path in reached and path not in seen:
            seen.add(path)
            to_see += reached[path]
    problems += [f'no way leads from README.md to {path.relative_to(root)}' for path in sorted(set(paths) - seen)]
    print('\n'.join(problems) if problems else f'links ok: {count} links of {len(paths)} pages')
    return 1 if problems or not count else 0


sys.exit(main())
