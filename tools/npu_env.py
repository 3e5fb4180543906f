#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a virtual environment with PyTorch and Huawei's adapter for it: npu_env.py [version of torch].

The packages come from PyPI as they are. The environment is <cache>/poolgrad/npu-<version>, where <cache> is
XDG_CACHE_HOME or ~/.cache, and the last line on standard output is the path of its Python. An environment that is
complete is left as it is. Ends with 77 and a word where it cannot be made: without network, or without a Python that
the packages are made for.

PyPI's torch is linked with NVIDIA's libraries, 3 GB that nothing here would use. Stand-ins take their place in the
environment: libraries of the same names, made here from the names of the functions that torch asks for.

From 2.10 on torch's library for CUDA and torch_npu register options of the same names, and the process ends while
torch_npu is loaded. PyTorch's own builds for the CPU have no such library, but PyPI does not have those builds. Therefore
the options have other names in the environment's copy of that library, which does nothing where no GPU is.
"""

import fcntl
import os
import pathlib
import platform
import re
import shlex
import subprocess
import sys
import tempfile

# torch: torch_npu, minor versions of Python 3 with packages of both, more requirements, MB to download.
VERSIONS = {
    '2.1.0': ('2.1.0.post17', range(9, 12), ['numpy<2'], {'x86_64': 770, 'aarch64': 180}),
    '2.6.0': ('2.6.0.post5', range(9, 13), [], {'x86_64': 870, 'aarch64': 190}),
    '2.7.1': ('2.7.1.post11', range(9, 14), [], {'x86_64': 930, 'aarch64': 210}),
    '2.8.0': ('2.8.0.post5', range(9, 14), [], {'x86_64': 1000, 'aarch64': 210}),
    '2.9.1': ('2.9.1', range(10, 14), [], {'x86_64': 1010, 'aarch64': 210}),
    '2.14.0': ('2.14.0', range(10, 15), [], {'x86_64': 670, 'aarch64': 560}),
}
DEFAULT = '2.7.1'
# What importing them needs, and what the tests are run with; pip adds what these need.
PACKAGES = ['expecttest', 'filelock', 'fsspec', 'jinja2', 'networkx', 'numpy', 'packaging', 'pytest', 'pyyaml',
            'setuptools<81', 'sympy', 'typing_extensions']

STAND_IN = '''// A stand-in for {soname}: torch needs its functions in order to be loaded, and calls none of them where no GPU is.
#include <stdio.h>
#include <stdlib.h>

static void refuse(const char *name)
{{
    fprintf(stderr, "%s was called, but {soname} is a stand-in without any work in it (tools/npu_env.py)\\n", name);
    abort();
}}
#define REFUSES(name) \\
    void name(void);  \\
    void name(void) {{ refuse(#name); }}

'''
# Functions that torch does call: while it is loaded, and to find out that there is no GPU, for its profiler too.
ANSWERS = {
    '__cudaRegisterFatBinary': 'void **__cudaRegisterFatBinary(void *image) { static void *handle; (void)image; return &handle; }',
    'cudaGetDeviceCount': 'int cudaGetDeviceCount(int *count) { *count = 0; return 100; } // cudaErrorNoDevice',
    'cudaGetLastError': 'int cudaGetLastError(void) { return 0; }',
    'cudaGetErrorString': 'const char *cudaGetErrorString(int code) { (void)code; return "no CUDA device"; }',
    'cuptiSubscribe': 'int cuptiSubscribe(void) { return 15; } // CUPTI_ERROR_NOT_INITIALIZED',
    'cuptiGetResultString': 'int cuptiGetResultString(int code, const char **text) { (void)code; *text = "no CUDA device"; return 0; }',
    'cudaDriverGetVersion': 'int cudaDriverGetVersion(int *version) { *version = 0; return 0; }',
}
# How pinned_reserve_segment_size_mb and per_process_memory_fraction begin, which both register. Compilers keep texts in
# pieces of 16 bytes.
OPTIONS = b'pinned_reserve_s', b'per_process_memo'
SILENT = re.compile(r'__cuda(Register\w+|UnregisterFatBinary|InitModule)$')


def say(text):
    print(f'npu_env: {text}', file=sys.stderr, flush=True)


def skip(why):
    print(f'skipped: npu_env: {why}', file=sys.stderr)
    sys.exit(77)


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def find_python(minors):
    """A Python that there are packages for, this one first, with what makes virtual environments."""
    asks = 'import ensurepip, sys, venv; print(sys.version_info[1], sys.implementation.name)'
    for name in [sys.executable, *(f'python3.{minor}' for minor in minors)]:
        try:
            found = subprocess.run([name, '-c', asks], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError:
            continue
        if found.returncode == 0 and found.stdout.split() in [[str(minor), 'cpython'] for minor in minors]:
            return name
    return skip(f'no CPython 3.{minors[0]} to 3.{minors[-1]} with venv is here, for which there are packages')


def make_environment(folder, version):
    """Installs the packages, unless that was done before."""
    adapter, minors, more, sizes = VERSIONS[version]
    pinned = [f'torch=={version}', f'torch_npu=={adapter}']
    others = [package for package in PACKAGES if re.split('[<=]', more[0] if more else '')[0] != package] + more
    wanted = '\n'.join([*pinned, *others]) + '\n'
    made_for = folder / 'made-for.txt'
    if made_for.exists() and made_for.read_text(encoding='utf-8') == wanted:
        return
    if platform.machine() not in sizes:
        skip(f'torch_npu has no packages for {platform.machine()}')
    python = find_python(minors)
    size = sizes[platform.machine()]
    say(f'downloads torch {version} and torch_npu {adapter} from PyPI, {size} MB that take twice as much in {folder}')
    subprocess.run([python, '-m', 'venv', '--clear', folder], check=True)
    pip = [folder / 'bin/python', '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--retries', '2',
           '--only-binary', ':all:']
    # Without what they depend on: NVIDIA's libraries, and a torch "+cpu" that PyPI does not have.
    for packages in others, ['--no-deps', *pinned]:
        if subprocess.run([*pip, *packages], stdout=sys.stderr).returncode != 0:
            skip(f'torch_npu {adapter} cannot be installed from PyPI; pip says why')
    made_for.write_text(wanted, encoding='utf-8')


def dynamic(library):
    """The libraries that one needs, and where it looks for them."""
    text = output('readelf', '-dW', library)
    paths = re.findall(r'\((?:RPATH|RUNPATH)\).*\[(.*)\]', text)
    return re.findall(r'\(NEEDED\).*\[(.*)\]', text), [path for line in paths for path in line.split(':')]


def is_nvidia(name):
    """Of a library or a function; names of LAPACK, which end with _, may begin alike."""
    return re.match(r'(lib)?(cu|nv|nccl)', name) is not None and not name.endswith('_')


def undefined(library):
    """(name, version) of the functions that one needs of others; the version is empty where there is none."""
    text = output('nm', '-D', '--undefined-only', '--with-symbol-versions', library)
    return set(re.findall(r'^ +U ([^@\s]+)(?:@(\S+))?$', text, re.MULTILINE))


def asked_of_nvidia(libraries):
    """{soname: {version: names}}: what torch's libraries ask of each of NVIDIA's."""
    asked = {}
    for library in libraries:
        missing = [soname for soname in dynamic(library)[0] if is_nvidia(soname)]
        if not missing:
            continue
        owner, soname = {}, ''
        for match in re.finditer(r'File: (\S+)|Name: (\S+)', output('readelf', '-VW', library)):
            soname = match[1] or soname
            owner[match[2]] = soname
        for soname in missing:
            asked.setdefault(soname, {})
        for name, version in undefined(library):
            # Some of NVIDIA's libraries have no versions. The loader takes a name without one from any library.
            soname = owner.get(version) if version else missing[0]
            if soname in missing and (version or is_nvidia(name)):
                asked[soname].setdefault(version, set()).add(name)
    return asked


def function(name):
    if name in ANSWERS:
        return ANSWERS[name]
    return f'int {name}(void) {{ return 0; }}' if SILENT.match(name) else f'REFUSES({name})'


def compile_stand_in(folder, soname, versions):
    names = sorted(set().union(*versions.values()))
    with tempfile.TemporaryDirectory() as work:
        source, script = pathlib.Path(work, 'stand_in.c'), pathlib.Path(work, 'versions')
        source.write_text(STAND_IN.format(soname=soname) + '\n'.join(map(function, names)) + '\n', encoding='utf-8')
        named = {version: names for version, names in versions.items() if version}
        script.write_text(''.join(f'{version} {{ global: {"; ".join(sorted(names))}; }};\n'
                                  for version, names in sorted(named.items())), encoding='utf-8')
        subprocess.run([*shlex.split(os.environ.get('CC') or 'cc'), '-w', '-fno-builtin', '-shared', '-fPIC', '-o',
                        folder / soname, source, f'-Wl,-soname,{soname}',
                        *([f'-Wl,--version-script={script}'] if named else [])], check=True)


def part_options(torch, adapter):
    """Renames torch's options that torch_npu has too."""
    used = (adapter / 'libtorch_npu.so').read_bytes()
    for library in torch.glob('libc10_cuda.so'):
        before = after = library.read_bytes()
        for option in OPTIONS:
            after = after.replace(option, option.upper()) if option in used else after
        if after != before:
            renamed = library.with_suffix('.new')
            renamed.write_bytes(after)
            renamed.replace(library)


def make_stand_ins(torch):
    """In the first of the folders below site-packages/nvidia in which torch looks for them."""
    _, places = dynamic(torch / 'libtorch_global_deps.so')
    places = [place for place in places if '/nvidia/' in place]
    if not places:
        return  # a torch for the CPU alone
    folder = pathlib.Path(os.path.normpath(places[0].replace('$ORIGIN', str(torch))))
    made_by = folder / 'made-by.txt'
    recipe = pathlib.Path(__file__).read_text(encoding='utf-8')
    if made_by.exists() and made_by.read_text(encoding='utf-8') == recipe:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for soname, versions in asked_of_nvidia(sorted(torch.glob('*.so*'))).items():
        compile_stand_in(folder, soname, versions)
    made_by.write_text(recipe, encoding='utf-8')


def main():
    version = sys.argv[1] if len(sys.argv) > 1 else DEFAULT
    if len(sys.argv) > 2 or version not in VERSIONS:
        print(f'npu_env: the version of torch is one of {", ".join(VERSIONS)}', file=sys.stderr)
        return 2
    cache = pathlib.Path(os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache', 'poolgrad')
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f'npu-{version}'
    with open(cache / f'npu-{version}.lock', 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        make_environment(folder, version)
        purelib = 'import sysconfig; print(sysconfig.get_path("purelib"))'
        packages = pathlib.Path(output(folder / 'bin/python', '-c', purelib).strip())
        make_stand_ins(packages / 'torch/lib')
        part_options(packages / 'torch/lib', packages / 'torch_npu/lib')
    print(folder / 'bin/python')
    return 0


sys.exit(main())
