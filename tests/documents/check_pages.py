#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_pages.py --build DIR [--cc COMPILER] [PAGE ...]

Does what README.md and the pages in docs/ tell a reader to do, against an installed tree:

    ```c                    compiles without a warning
    ```c title="pool.c"     the same, and becomes that file in the page's own folder
    ```cmake title="..."    likewise becomes a file
    ```text                 is what the program before it (a block with main) prints
    ```console              its commands, lines that begin with "$ ", are run in that folder; the lines
                            below each are what it prints

In what is printed "…" stands for anything in a line, and alone for any number of lines. Commands of programs
that are not installed (gdb, valgrind) are left out, and said to be.

Exit: 0 all pages are right, 1 one is not.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FENCE = re.compile(r'^```(\w+)?(.*)$')
WARNINGS = ['-std=c11', '-Wall', '-Wextra', '-Werror']


def blocks_of(text):
    """(line, language, title, lines) of each fenced block."""
    found, block = [], None
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if fence and block is None:
            title = re.search(r'title="([^"]+)"', fence.group(2))
            block = (number, fence.group(1) or '', title.group(1) if title else None, [])
        elif fence:
            found.append(block)
            block = None
        elif block is not None:
            block[3].append(line)
    return found


def matches(expected, printed):
    pattern = ''
    for line in expected:
        pattern += r'(?:.*\n)*?' if line.strip() == '…' else '.*'.join(map(re.escape, line.split('…'))) + '\n'
    return re.fullmatch(pattern, printed + ('\n' if printed and not printed.endswith('\n') else '')) is not None


def run(command, folder, environment):
    done = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120)
    return done.returncode, done.stdout.decode('utf-8', 'replace')


def commands_in(lines):
    """(command, lines it prints) of a console block; a command that ends in a backslash goes on."""
    found = []
    for line in lines:
        if line.startswith('$ '):
            found.append((line[2:], []))
        elif found and found[-1][0].endswith('\\'):
            found[-1] = (found[-1][0][:-1] + line.strip(), [])
        elif found:
            found[-1][1].append(line)
    return found


class Page:
    def __init__(self, path, folder, environment):
        self.path, self.folder, self.environment = path, folder, environment
        self.problems, self.left_out, self.done, self.program = [], [], 0, None
        folder.mkdir()

    def complain(self, line, what):
        self.problems.append(f'{self.path}:{line}: {what}')

    def check(self):
        for line, language, title, lines in blocks_of(self.path.read_text(encoding='utf-8')):
            if language == 'c':
                self.c(line, title, lines)
            elif title:
                (self.folder / title).write_text('\n'.join(lines) + '\n', encoding='utf-8')
            elif language == 'text' and self.program:
                self.printed(line, lines)
            elif language == 'console':
                self.console(line, lines)

    def c(self, line, title, lines):
        text = '\n'.join(lines) + '\n'
        source = self.folder / (title or f'line_{line}.c')
        source.write_text(text, encoding='utf-8')
        include = f'-I{self.environment["ASCEND_HOME_PATH"]}/include'
        code, printed = run(['cc', *WARNINGS, include, '-c', source.name, '-o', f'{source.name}.o'], self.folder,
                            self.environment)
        self.done += 1
        if code != 0:
            self.complain(line, f'the C block does not compile\n{printed}')
        self.program = (line, source) if code == 0 and not title and re.search(r'\bmain\s*\(', text) else None

    def printed(self, line, expected):
        start, source = self.program
        self.program, home = None, self.environment['ASCEND_HOME_PATH']
        code, printed = run(['cc', f'{source.name}.o', f'-L{home}/lib64', '-lascendcl', '-lnnopbase', '-lopapi', '-o',
                             source.stem], self.folder, self.environment)
        if code != 0:
            return self.complain(start, f'the program does not link\n{printed}')
        code, printed = run([f'./{source.stem}'], self.folder, self.environment)
        self.done += 1
        if code != 0:
            self.complain(start, f'the program ends with {code}\n{printed}')
        elif not matches(expected, printed):
            self.complain(line, f'the program prints\n{printed}')

    def console(self, line, lines):
        for command, expected in commands_in(lines):
            tool = next(word for word in command.split() if not re.match(r'\w+=', word))
            if not tool.startswith('./') and not shutil.which(tool, path=self.environment['PATH']):
                self.left_out.append(f'{self.path.name}:{line}: {tool} is not installed, left out: {command}')
                continue
            _, printed = run(['bash', '-c', command], self.folder, self.environment)
            self.done += 1
            if not matches(expected, printed):
                self.complain(line, f'"{command}" prints\n{printed}')


def environment_of(build, folder, compiler):
    """That of a shell which has sourced set_env.sh of a fresh installation, with cc as the compiler asked for."""
    prefix = folder / 'prefix'
    installed = subprocess.run(['cmake', '--install', str(build), '--prefix', str(prefix)], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    if installed.returncode != 0:
        sys.exit(f'cannot install {build}\n{installed.stdout.decode()}')
    (folder / 'bin').mkdir()
    (folder / 'bin/cc').write_text(f'#!/bin/sh\nexec {compiler} "$@"\n')
    (folder / 'bin/cc').chmod(0o755)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(('POOLGRAD_', 'ASCEND_'))}
    clean.update(PATH=f'{folder}/bin:{clean["PATH"]}', LC_ALL='C.UTF-8', DEBUGINFOD_URLS='')
    shown = subprocess.run(['bash', '-c', f'. "{prefix}/set_env.sh" && env -0'], env=clean, stdout=subprocess.PIPE,
                           check=True)
    return dict(entry.split('=', 1) for entry in shown.stdout.decode().split('\0') if '=' in entry)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0])
    parser.add_argument('--build', type=pathlib.Path, required=True)
    parser.add_argument('--cc', default='cc')
    parser.add_argument('pages', nargs='*', type=pathlib.Path)
    arguments = parser.parse_args()
    paths = arguments.pages or [ROOT / 'README.md', *sorted((ROOT / 'docs').rglob('*.md'))]
    done, failed, compiler = 0, False, shutil.which(arguments.cc) or arguments.cc
    with tempfile.TemporaryDirectory(prefix='poolgrad-pages-') as name:
        folder = pathlib.Path(name)
        environment = environment_of(arguments.build.resolve(), folder, compiler)
        for number, path in enumerate(paths):
            page = Page(path, folder / f'page_{number}', environment)
            page.check()
            done, failed = done + page.done, failed or bool(page.problems)
            print(*page.problems, *page.left_out, sep='\n', end='\n' if page.problems or page.left_out else '')
    print(f'{done} programs and commands of {len(paths)} pages {"were tried" if failed else "do what the pages say"}')
    return 1 if failed or not done else 0


if __name__ == '__main__':
    sys.exit(main())
