#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_abi.py --include DIR --abi ABI.JSON [--cxx COMPILER]

Compares our public headers with the recorded interface: the type of every function, the value of
every constant, the size of every type that both sides declare. The types are mangled C++ names as
LP64 Linux compilers write them.

Exit: 0 all agree, 1 a mismatch or an acl function the record does not know, 77 no record here.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

# Functions we declare on purpose although the record lacks them.
NOT_RECORDED = frozenset()

COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)
IDENTIFIER = re.compile(r'\b[A-Za-z_]\w*\b')
# A declared name is followed by its parameters; a function-pointer type's name by ")".
FUNCTION = re.compile(r'\b(acl\w*)\s*\(')


def strip_comments(text):
    return COMMENT.sub(' ', text)


def read_headers(include):
    """Returns header names, the identifiers in them, and the functions they declare."""
    names, identifiers, functions = [], set(), set()
    for path in sorted(include.rglob('*.h')):
        text = strip_comments(path.read_text())
        names.append(path.relative_to(include).as_posix())
        identifiers |= set(IDENTIFIER.findall(text))
        code = re.sub(r'^[ \t]*#(?:[^\n\\]|\\.)*', '', text, flags=re.M | re.S)
        functions |= set(FUNCTION.findall(code))
    return names, identifiers, functions


def write_probe(headers, functions, constants, types):
    lines = ['#include <cstdio>', '#include <typeinfo>']
    lines += [f'#include "{name}"' for name in headers]
    lines.append('int main() {')
    for name in functions:
        lines.append(f'  std::printf("F {name} %s\\n", typeid(decltype(&{name})).name());')
    for name in constants:
        lines.append(f'  std::printf("C {name} %lld\\n", static_cast<long long>({name}));')
    for name in types:
        lines.append(f'  std::printf("T {name} %zu\\n", sizeof({name}));')
    lines += ['  return 0;', '}', '']
    return '\n'.join(lines)


def run_probe(source, include, cxx):
    """Returns {(kind, name): value}, all strings."""
    with tempfile.TemporaryDirectory(prefix='poolgrad-abi-') as folder:
        probe = pathlib.Path(folder, 'probe.cpp')
        program = pathlib.Path(folder, 'probe')
        probe.write_text(source)
        command = [cxx, '-std=c++11', '-Wno-deprecated-declarations', '-I', str(include),
                   str(probe), '-o', str(program)]
        subprocess.run(command, check=True)
        printed = subprocess.run([str(program)], check=True, stdout=subprocess.PIPE,
                                 universal_newlines=True).stdout
    found = {}
    for line in printed.splitlines():
        kind, name, value = line.split(' ', 2)
        found[kind, name] = value
    return found


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0])
    parser.add_argument('--include', type=pathlib.Path, required=True)
    parser.add_argument('--abi', type=pathlib.Path, required=True)
    parser.add_argument('--cxx', default='g++')
    arguments = parser.parse_args()

    if not arguments.abi.is_file():
        print(f'skipped: no record of the interface at {arguments.abi}')
        return 77
    record = json.loads(arguments.abi.read_text())
    headers, identifiers, declared = read_headers(arguments.include)

    parts = [('F', 'functions', sorted(set(record['functions']) & declared)),
             ('C', 'constants', sorted(set(record['constants']) & identifiers)),
             ('T', 'structs', sorted(set(record['structs']) & identifiers))]
    if not all(names for _, _, names in parts):
        print(f'FAILED: {arguments.include} declares nothing to compare')
        return 1

    source = write_probe(headers, *(names for _, _, names in parts))
    try:
        found = run_probe(source, arguments.include, arguments.cxx)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f'FAILED: the probe does not compile or run: {error}')
        return 1

    wrong = 0
    for kind, section, names in parts:
        for name in names:
            ours, theirs = found[kind, name], str(record[section][name])
            if ours != theirs:
                wrong += 1
                print(f'MISMATCH {section} {name}: ours {ours}, recorded {theirs}')
        print(f'{section}: {len(names)} compared, {len(record[section])} recorded')

    unknown = sorted(declared - set(record['functions']) - NOT_RECORDED)
    for name in unknown:
        print(f'UNKNOWN function {name}: not recorded')
    if wrong or unknown:
        print(f'FAILED: {wrong} mismatches, {len(unknown)} unknown functions')
        return 1
    print('ok')
    return 0


if __name__ == '__main__':
    sys.exit(main())
