#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_abi.py --include DIR [--facts FILE]

Compares the public headers with the facts of CANN's interface in cann_abi.txt: the type of every
function, the value of every constant, the size of every type. Each name must be on both sides.
The compilers are those in CC and CXX. C is enough; where CXX names a C++ compiler, an enum in
place of an int is seen too, which C takes for the same.

Exit: 0 all agree, 1 something differs.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FACTS = pathlib.Path(__file__).with_name('cann_abi.txt')
FACT = {
    'function': re.compile(r'[\w* ]*?\b((?:acl|Hccl)\w+)\((.*)\)'),
    'constant': re.compile(r'(\w+) = (-?\d+)'),
    'size': re.compile(r'sizeof (\w+) = (\d+)'),
}
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)
# A declared name is followed by its parameters; a function-pointer type's name by ")".
FUNCTION = re.compile(r'\b((?:acl|Hccl)\w*)\s*\(')
MACRO = re.compile(r'^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+[-(]?\d', re.M)
CONSTANT = re.compile(r'\b(?:static const|constexpr) \w+ (\w+) =')
TYPE = re.compile(r'\btypedef\s+(enum|struct|union)\b[^{;]*\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}\s*(\w+)\s*;')


def read_facts(path):
    """Returns {kind: {name: (line number, text, value)}}; a function's value is its text."""
    facts = {kind: {} for kind in FACT}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line or line.startswith('#'):
            continue
        for kind, pattern in FACT.items():
            match = pattern.fullmatch(line)
            if match:
                facts[kind][match[1]] = (number, line, line if kind == 'function' else int(match[2]))
                break
        else:
            sys.exit(f'{path}:{number}: not a fact: {line}')
    return facts


def read_headers(include):
    """Returns the headers' names and {kind: the names that they declare}; our own poolgrad.h aside."""
    headers, declared = [], {kind: set() for kind in FACT}
    for path in sorted(include.rglob('*.h')):
        name = path.relative_to(include).as_posix()
        if name == 'poolgrad.h':
            continue
        headers.append(name)
        text = COMMENT.sub(' ', path.read_text())
        code = re.sub(r'^[ \t]*#(?:[^\n\\]|\\.)*', '', text, flags=re.M | re.S)
        declared['function'] |= set(FUNCTION.findall(code))
        declared['constant'] |= set(MACRO.findall(text)) | set(CONSTANT.findall(code))
        for kind, body, type_name in TYPE.findall(code):
            declared['size'].add(type_name)
            if kind == 'enum':
                declared['constant'] |= set(re.findall(r'(?:^|,)\s*(\w+)', body))
    return headers, declared


def missing_names(facts, declared, path):
    """A sentence for every name that only one side has."""
    for kind, names in declared.items():
        for name in sorted(set(facts[kind]) - names):
            yield f'{path}:{facts[kind][name][0]}: no header declares {name}, or not as a {kind} that can be read'
        for name in sorted(names - set(facts[kind])):
            yield f'{path}: has no line for the {kind} {name} that a header declares'


def write_probe(headers, facts, path):
    """C that does not compile where a function's type differs, and prints what else differs."""
    lines = ['#include <stdbool.h>', '#include <stdio.h>']
    lines += [f'#include "{name}"' for name in headers]
    lines += ['#ifdef __cplusplus', 'extern "C" {', '#endif']
    for number, text, _ in facts['function'].values():
        lines += [f'#line {number} "{path}"', f'{text};']
    lines += ['#ifdef __cplusplus', '}', '#endif']
    lines += ['static int wrong;',
              'static void compare(int line, const char *name, long long ours, long long cann) {',
              '  if (ours == cann) return;',
              f'  printf("{path}:%d: %s is %lld in our headers\\n", line, name, ours);',
              '  wrong = 1;', '}', 'int main(void) {']
    for name, (number, _, value) in facts['constant'].items():
        lines += [f'#line {number} "{path}"', f'  compare({number}, "{name}", (long long)({name}), {value}LL);']
    for name, (number, _, value) in facts['size'].items():
        lines += [f'#line {number} "{path}"', f'  compare({number}, "sizeof {name}", (long long)sizeof({name}), {value}LL);']
    return '\n'.join(lines + ['  return wrong;', '}', ''])


def run_probe(source, include):
    """Returns what the compilers or the program complain of."""
    cc, cxx = os.environ.get('CC') or 'cc', os.environ.get('CXX')
    with tempfile.TemporaryDirectory(prefix='poolgrad-abi-') as folder:
        probe, program = pathlib.Path(folder, 'probe.c'), pathlib.Path(folder, 'probe')
        probe.write_text(source)
        commands = [[cc, '-std=c11', f'-I{include}', str(probe), '-o', str(program)], [str(program)]]
        if cxx:
            commands.append([cxx, '-std=c++11', f'-I{include}', '-fsyntax-only', '-x', 'c++', str(probe)])
        for command in commands:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8', check=False)
            if done.returncode != 0:
                return done.stdout.splitlines() or [f'{command[0]} ended with status {done.returncode}']
    return []


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0])
    parser.add_argument('--include', type=pathlib.Path, required=True)
    parser.add_argument('--facts', type=pathlib.Path, default=FACTS)
    arguments = parser.parse_args()

    facts = read_facts(arguments.facts)
    headers, declared = read_headers(arguments.include)
    problems = list(missing_names(facts, declared, arguments.facts))
    for kind in FACT:  # what is missing has been told
        facts[kind] = {name: fact for name, fact in facts[kind].items() if name in declared[kind]}
    problems += run_probe(write_probe(headers, facts, arguments.facts), arguments.include)
    for problem in problems:
        print(problem)
    if problems:
        print(f'FAILED: {arguments.include} differs from the facts in {arguments.facts}')
        return 1
    print('ok:', ', '.join(f'{len(facts[kind])} {kind}s' for kind in FACT))
    return 0


if __name__ == '__main__':
    sys.exit(main())
