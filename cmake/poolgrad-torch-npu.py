#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets PyTorch's adapter torch_npu find poolgrad without any environment variable.

    poolgrad-torch-npu install [--python PYTHON]    puts poolgrad's libraries beside torch_npu
    poolgrad-torch-npu remove  [--python PYTHON]    takes them away again
    poolgrad-torch-npu status  [--python PYTHON]    says what is there

PYTHON is the interpreter whose torch_npu is meant; without it, the python3 that is found first.

The libraries of torch_npu look for CANN's in site-packages/torch_npu.libs before they look anywhere else, those of older
versions in site-packages/torch_npu/lib, where they lie themselves. In that folder each of CANN's names becomes a symbolic
link to the one library of this tree. Links and not copies: an update of the tree counts at once, all names are one library,
and a link says whose it is.

Because that folder comes before LD_LIBRARY_PATH, links in it would hide a real CANN. Where one is found, nothing is done.

Exit status: 0 done, or (status) installed; 1 refused, or (status) not installed; 2 wrong usage.
"""

import argparse
import mmap
import os
import pathlib
import re
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parent.parent
LIBRARY = TREE / 'lib64/libpoolgrad.so.0'
PLUGIN = TREE / 'lib64/libpoolgrad_cuda.so'  # is looked for beside the library, as the loader found it
VARIABLES = ('ASCEND_HOME_PATH', 'ASCEND_TOOLKIT_HOME', 'ASCEND_NNAE_HOME', 'ASCEND_NNRT_HOME')
# Nothing is imported: with CANN's libraries missing, that would fail. A folder of the current directory does not count.
FIND = '''
import importlib.util, sys
sys.path = [place for place in sys.path if place]
spec = importlib.util.find_spec("torch_npu")
print(spec.origin if spec is not None and spec.origin else "")
'''


class Refused(Exception):
    pass


def is_poolgrad(library):
    try:
        return b'poolgrad_version' in library.read_bytes()
    except OSError:
        return False


def is_ours(path):
    """A link that was made here tells it by its target, which may be gone."""
    if path.is_symlink() and re.match(r'libpoolgrad(_cuda)?\.so', os.path.basename(os.readlink(path))):
        return True
    return path.is_file() and is_poolgrad(path)


def wanted():
    """{name: target} of the links."""
    if not LIBRARY.exists():
        raise Refused(f'there is no {LIBRARY}: this command works from the tree that poolgrad was installed into')
    library = LIBRARY.resolve()
    names = {path.name: LIBRARY for path in LIBRARY.parent.iterdir() if path.is_symlink() and path.resolve() == library}
    if PLUGIN.exists():
        names[PLUGIN.name] = PLUGIN
    return names


def folder_of(python):
    """Where the torch_npu of an interpreter looks for libraries."""
    try:
        found = subprocess.run([python, '-c', FIND], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except OSError as error:
        raise Refused(f'{python} cannot be run: {error.strerror}') from error
    if found.returncode != 0:
        raise Refused(f'{python} failed: {(found.stderr.strip().splitlines() or ["without a word"])[-1]}')
    if not found.stdout.strip():
        raise Refused(f'{python} has no torch_npu (pip install torch_npu; --python names another interpreter)')
    package = pathlib.Path(found.stdout.strip()).parent
    adapter = package / 'lib/libtorch_npu.so'
    if not adapter.exists():
        raise Refused(f'there is no {adapter}: the torch_npu of {python} is not one that is known here')
    with open(adapter, 'rb') as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        is_older = content.find(b'/torch_npu.libs') < 0
    return package / 'lib' if is_older else package.parent / 'torch_npu.libs'


def places_of_cann():
    """All files that a CANN's libascendcl.so might be."""
    for name in VARIABLES:
        root = pathlib.Path(os.environ.get(name) or '/nonexistent')
        for pattern in ('lib64', '*/lib64'):
            yield from root.glob(f'{pattern}/libascendcl.so')
    for folder in (os.environ.get('LD_LIBRARY_PATH') or '').split(':'):
        if folder:
            yield pathlib.Path(folder, 'libascendcl.so')
    for root in pathlib.Path('/usr/local/Ascend'), pathlib.Path.home() / 'Ascend':
        for depth in range(1, 4):  # cann/lib64, ascend-toolkit/latest/lib64, ascend-toolkit/latest/runtime/lib64
            yield from root.glob('*/' * depth + 'lib64/libascendcl.so')
    for root in pathlib.Path('/usr'), pathlib.Path('/usr/local'):
        for pattern in ('lib', 'lib64', 'lib/*-linux-gnu'):
            yield from root.glob(f'{pattern}/libascendcl.so')


def check_no_cann():
    for library in places_of_cann():
        if library.is_file() and not is_poolgrad(library):
            raise Refused(f'a CANN is installed here: {library} is not poolgrad\'s. torch_npu would find poolgrad before '
                          'it; nothing was changed')


def install(folder):
    links = wanted()
    check_no_cann()
    for name in links:
        path = folder / name
        if (path.exists() or path.is_symlink()) and not is_ours(path):
            raise Refused(f'{path} is there and is not poolgrad\'s; nothing was changed')
    folder.mkdir(exist_ok=True)
    for name, target in links.items():
        staged = folder / f'.{name}.new'
        staged.unlink(missing_ok=True)
        staged.symlink_to(target)
        staged.replace(folder / name)
    print(f'torch_npu finds poolgrad of {TREE} now, by {len(links)} links in {folder}')


def ours_in(folder):
    return sorted(path for path in folder.iterdir() if is_ours(path)) if folder.is_dir() else []


def remove(folder):
    removed = ours_in(folder)
    for path in removed:
        path.unlink()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    print(f'{len(removed)} links removed from {folder}' if removed else f'there is nothing of poolgrad in {folder}')


def status(folder):
    """What is wrong, for the reader; nothing is wrong where the links of this tree are complete."""
    found = {path.name: path for path in ours_in(folder)}
    if not found:
        raise Refused(f'not installed: there is nothing of poolgrad in {folder}')
    library = found.get('libascendcl.so')
    tree = library.parent if library is None or not library.is_symlink() else pathlib.Path(os.readlink(library)).parent
    broken = sorted(name for name, path in found.items() if not path.exists())
    if broken:
        raise Refused(f'broken: {folder / broken[0]} leads to {os.readlink(folder / broken[0])}, which is not there; '
                      'run install again')
    missing = sorted(set(wanted()) - set(found))
    if missing:
        raise Refused(f'not complete: {", ".join(missing)} not in {folder}; run install again')
    print(f'installed: torch_npu finds poolgrad in {tree}, by {len(found)} links in {folder}')


def main():
    parser = argparse.ArgumentParser(prog='poolgrad-torch-npu', description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=('install', 'remove', 'status'))
    parser.add_argument('--python', default=sys.executable or 'python3', metavar='PYTHON')
    arguments = parser.parse_args()
    try:
        {'install': install, 'remove': remove, 'status': status}[arguments.what](folder_of(arguments.python))
    except Refused as refusal:
        print(f'poolgrad-torch-npu: {refusal}', file=sys.stderr)
        return 1
    except OSError as error:
        print(f'poolgrad-torch-npu: {error.filename}: {error.strerror}', file=sys.stderr)
        return 1
    return 0


sys.exit(main())
