#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the documentation site in build/site: make docs.

The pages are the README, docs/ and the other Markdown files of the root, as they are. README.md becomes the start
page and docs/ the root of the site, so their links are rewritten; files of the source that pages link to (headers,
examples) are copied beside them. MkDocs does the rest, in its strict mode, in which a broken link is an error.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ROOT / 'build/site-pages'
VENV = ROOT / 'build/docs-venv'
REQUIREMENTS = ROOT / 'tools/docs-requirements.txt'
LINK = re.compile(r'(!?\[[^\]]*\]\()([^)#\s]+)((?:#[^)\s]*)?\))')
# Wide tables scroll by themselves; words of code in them may break anywhere rather than widen the page.
STYLE = '''.md-grid { max-width: 72rem; }
.md-typeset code { overflow-wrap: anywhere; }
.md-typeset table:not([class]) { font-size: .68rem; }
.md-typeset table:not([class]) th, .md-typeset table:not([class]) td { min-width: 3rem; padding: .6em .9em; }
.md-typeset table:not([class]) td:last-child:not(:only-child) { min-width: 6rem; }
'''


def site_path(path):
    """Where a file of the repository lies in the site."""
    path = path.relative_to(ROOT)
    if path == pathlib.Path('README.md'):
        return pathlib.Path('index.md')
    return path.relative_to('docs') if path.parts[0] == 'docs' else path


def page(path):
    """The text of a page with the links that the site needs, and the other files that it links to."""
    others = set()

    def moved(match):
        target = match.group(2)
        if '://' in target or target.startswith('mailto:'):
            return match.group(0)
        found = (path.parent / target).resolve()
        if not found.is_file():
            sys.exit(f'{path.relative_to(ROOT)} links to {target}, which is not a file')
        if found.suffix != '.md':
            others.add(found)
        way = os.path.relpath(site_path(found), site_path(path).parent)
        return f'{match.group(1)}{pathlib.PurePath(way).as_posix()}{match.group(3)}'

    text = re.sub(r'<!--.*?-->\n?', '', path.read_text(encoding='utf-8'), flags=re.S)
    return LINK.sub(moved, text), others


def lay_out():
    shutil.rmtree(PAGES, ignore_errors=True)
    copied = set()
    for path in [*ROOT.glob('*.md'), *(ROOT / 'docs').rglob('*.md')]:
        text, others = page(path)
        copied |= others
        target = PAGES / site_path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding='utf-8')
    for path in copied:
        (PAGES / site_path(path)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, PAGES / site_path(path))
    (PAGES / 'site.css').write_text(STYLE, encoding='utf-8')


def mkdocs():
    """MkDocs in an environment of its own, made anew when the list of packages has changed."""
    program, made_for = VENV / 'bin/mkdocs', VENV / 'made-for.txt'
    wanted = REQUIREMENTS.read_text(encoding='utf-8')
    if not program.exists() or not made_for.exists() or made_for.read_text(encoding='utf-8') != wanted:
        packages = sum(not line.startswith('#') for line in wanted.splitlines())
        print(f'docs: installing {packages} Python packages into {VENV.relative_to(ROOT)} (160 MB)', flush=True)
        venv.create(VENV, with_pip=True, clear=True)
        pip = [VENV / 'bin/pip', 'install', '--progress-bar', 'off', '--disable-pip-version-check', '-r', REQUIREMENTS]
        if subprocess.run(pip).returncode != 0:
            print(f'skipped: docs: {REQUIREMENTS.relative_to(ROOT)} cannot be installed from PyPI')
            sys.exit(77)
        made_for.write_text(wanted, encoding='utf-8')
    return program


def main():
    lay_out()
    environment = {**os.environ, 'NO_MKDOCS_2_WARNING': '1', 'DISABLE_MKDOCS_2_WARNING': 'true'}
    done = subprocess.run([mkdocs(), 'build', '--quiet', '--clean', '--strict', '--config-file', ROOT / 'mkdocs.yml'],
                          env=environment)
    if done.returncode == 0:
        print('docs: build/site/index.html')
    return done.returncode


sys.exit(main())
