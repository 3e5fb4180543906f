#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_documents.py (--build DIR | --extract DIR) --shared DIR

Takes the sample programs out of the operators' documents, compiles them unmodified against an
installed tree, runs them and compares the numbers they print with the known answers. With --extract
it only puts them there.

The compiler is the one in CXX.

Exit: 0 all agree, 1 a program fails or prints something else, 77 no documents or no C++ compiler
here.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

LIBRARIES = {
    'umbrella': ['-lascendcl', '-lnnopbase', '-lopapi'],
    'split': ['-lopapi_nn', '-lopapi_math', '-lacl_rt'],
}
# Document number: what its program prints, and how many lines it leaves on stderr. Document 000
# passes index 6 for a plane of 4 cells: the gradient is dropped, with a warning. 001 has no program.
EXPECTED = {
    '000': ([0.0] * 4, 1),
    '002': ([half / 2 for half in range(1, 9) for _ in range(2)], 0),
    '003': ([0.4757 if i == 0 else 0.1726 if i == 6 else 0.0 for i in range(12)], 0),
    '004': ([0.0625] * 256, 0),
}
RESULT = re.compile(r'result\[(\d+)\] is: (\S+)')


def program_in(text):
    """The fenced block that holds main(); the last fence of a document may be left open."""
    blocks, block = [], None
    for line in text.splitlines():
        if line.lstrip().startswith('```'):
            blocks += [block] if block is not None else []
            block = [] if block is None else None
        elif block is not None:
            block.append(line)
    blocks += [block] if block is not None else []
    programs = ['\n'.join(lines) + '\n' for lines in blocks if re.search(r'\bmain\s*\(', '\n'.join(lines))]
    return programs[-1] if programs else None


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding='utf-8', **options)


def problem_with(done, expected, warnings):
    """What is wrong with a finished program, or None."""
    if done.returncode != 0:
        return f'exit status {done.returncode}\n{done.stdout}{done.stderr}'
    lines = done.stderr.splitlines()
    if len(lines) != warnings:
        return f'{len(lines)} lines on stderr, expected {warnings}\n{done.stderr}'
    printed = RESULT.findall(done.stdout)
    if [int(i) for i, _ in printed] != list(range(len(expected))):
        return f'printed {len(printed)} results, expected {len(expected)}\n{done.stdout}'
    for (i, found), value in zip(printed, expected):
        if float(found) != round(value, 6):  # the programs print six decimals
            return f'result[{i}] is {found}, expected {value:.6f}'
    return None


def check(number, text, prefix, folder, cxx):
    """Compiles and runs one document's program with each set of libraries; returns the problems."""
    program = program_in(text)
    if number not in EXPECTED:
        return [] if program is None else ['has a program whose answer is not known here']
    if program is None:
        return ['has no program']
    source = folder / f'{number}.cpp'
    source.write_text(program, encoding='utf-8')
    environment = {**os.environ, 'LD_LIBRARY_PATH': str(prefix / 'lib64')}
    for name in ('POOLGRAD_SOC', 'POOLGRAD_INDEX_CHECK', 'POOLGRAD_DEVICES'):
        environment.pop(name, None)
    problems = []
    for name, libraries in LIBRARIES.items():
        binary = folder / f'{number}_{name}'
        built = run([cxx, '-std=c++11', str(source), f'-I{prefix}/include', f'-L{prefix}/lib64', *libraries,
                     '-o', str(binary)])
        if built.returncode != 0:
            problems.append(f'({name}) does not compile\n{built.stderr}')
            continue
        problem = problem_with(run([str(binary)], env=environment, timeout=60), *EXPECTED[number])
        problems += [f'({name}) {problem}'] if problem else []
    return problems


def extract(documents, folder):
    for path in documents:
        program = program_in(path.read_text(encoding='utf-8'))
        if program is not None:
            (folder / f'{path.name[:3]}.cpp').write_text(program, encoding='utf-8')
    return 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument('--build', type=pathlib.Path)
    what.add_argument('--extract', type=pathlib.Path)
    parser.add_argument('--shared', type=pathlib.Path, required=True)
    arguments = parser.parse_args()

    documents = sorted((arguments.shared / 'seeds').glob('*.txt'))
    if not documents:
        print(f'skipped: the vendor\'s documents are not at {arguments.shared / "seeds"}')
        return 77
    if arguments.extract:
        return extract(documents, arguments.extract)
    cxx = os.environ.get('CXX', 'c++')
    if not shutil.which(cxx):
        print('skipped: no C++ compiler here (Debian: g++)')
        return 77
    failed = sorted(set(EXPECTED) - {path.name[:3] for path in documents})
    for number in failed:
        print(f'FAILED {number}: the document is missing')

    with tempfile.TemporaryDirectory(prefix='poolgrad-documents-') as name:
        folder = pathlib.Path(name)
        prefix = folder / 'prefix'
        installed = run(['cmake', '--install', str(arguments.build), '--prefix', str(prefix)])
        if installed.returncode != 0:
            print(f'FAILED: cannot install {arguments.build}\n{installed.stderr}')
            return 1
        for path in documents:
            number = path.name[:3]
            problems = check(number, path.read_text(encoding='utf-8'), prefix, folder, cxx)
            for problem in problems:
                print(f'FAILED {path.name}: {problem}')
            if problems:
                failed.append(number)
            else:
                print(f'{number} {"ok" if number in EXPECTED else "has no program"}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
