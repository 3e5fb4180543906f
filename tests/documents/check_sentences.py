#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_sentences.py [ROOT]: the pages of the operators against headers and sources.

    every operator that a header declares has a page, which shows its prototypes as the header has them
    every sentence in a table of errors can be one of the library's: it fits a format string in src/

In a sentence "…" stands for anything, and a note "(...)" behind it is the page's own. A cell that begins with a link
is not a sentence.

Exit: 0 all pages are right, 1 one is not.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
ROOT = ROOT if len(sys.argv) > 1 else ROOT.parents[2]
LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
CONVERSION = re.compile(r'%[-+ #0]*[\d*]*(?:\.[\d*]+)?(?:hh|h|ll|l|z|j|t)?[a-zA-Z]')
ROW = re.compile(r'^\| (\d{6}) \| (.*) \|$', re.M)
NOTE = re.compile(r' \((?:then|3 axes|an empty|only for|with|the executor|Ascend)[^()]*\)$')
DECLARATION = re.compile(r'\baclnnStatus\s+(aclnn\w+)\(([^;]*)\);')


def literals():
    """The strings of the sources, without the name of the function that most sentences begin with."""
    for path in (ROOT / 'src').rglob('*.[ch]'):
        for literal in LITERALS.findall(path.read_text(encoding='utf-8')):
            yield ''.join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', literal)).removeprefix('%s: ')


def formats():
    """A regular expression for each sentence of the sources: a %s is one word, or several that stand in a string."""
    found = set(literals())
    phrases = '|'.join(sorted(re.escape(text) for text in found if re.search('[A-Za-z]', text) and '%' not in text))
    word, number = rf'(?:\S*|\w+ \S+, |{phrases})', r'-?[\da-fx.]+'
    for text in sorted(found):
        if len(re.findall('[a-z]', CONVERSION.sub('', text))) >= 8:
            kinds = [word if kind.endswith('s') else number for kind in CONVERSION.findall(text)] + ['']
            parts = CONVERSION.split(text)
            yield re.compile(''.join(re.escape(part) + kind for part, kind in zip(parts, kinds)))


def sentences(text):
    """Those of a page's tables, without the notes, "…" filled in with a number."""
    for code, cell in ROW.findall(text):
        if not cell.startswith('['):
            yield code, NOTE.sub('', cell).replace('…', '7')


def prototypes(text):
    """The arguments of each function in the text, blanks evened out."""
    return {name: re.sub(r'\s+', ' ', arguments.strip()) for name, arguments in DECLARATION.findall(text)}


def main():
    patterns, problems, count = list(formats()), [], 0
    pages = {path: path.read_text(encoding='utf-8') for path in sorted((ROOT / 'docs/ops').glob('*.md'))}
    shown = {}
    for path, text in pages.items():
        shown.update({name: (path, arguments) for name, arguments in prototypes(text).items()})
        for code, sentence in sentences(text):
            count += 1
            if not any(pattern.fullmatch(sentence) for pattern in patterns):
                problems.append(f'{path.relative_to(ROOT)}: nothing in src/ says "{sentence}" ({code})')
    declared = {}
    for header in (ROOT / 'include/aclnnop').glob('aclnn_*.h'):
        declared.update(prototypes(header.read_text(encoding='utf-8')))
    for name, arguments in sorted(declared.items()):
        if name not in shown:
            problems.append(f'no page in docs/ops shows the prototype of {name}')
        elif shown[name][1] != arguments:
            problems.append(f'{shown[name][0].relative_to(ROOT)}: the prototype of {name} is not that of the header')
    print('\n'.join(problems) or f'{len(declared)} prototypes and {count} sentences of {len(pages)} pages are right')
    return 1 if problems or not declared or not count else 0


sys.exit(main())
