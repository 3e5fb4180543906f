# SPDX-License-Identifier: Apache-2.0
"""poolgrad-torch-npu: torch_npu without any environment variable. Everything happens to a copy of torch_npu in a folder of
its own, which Python finds before the one of the environment."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest
import torch_npu
from conftest import REMARK, VERSION

TREE = pathlib.Path(os.environ['ASCEND_HOME_PATH'])
FOREIGN = b'\x7fELF somebody else\'s'
POOL = '''
import torch, torch_npu
x = torch.randn(2, 3, 9, 9)
y = x.npu().requires_grad_()
torch.nn.functional.max_pool2d(y, 3, 2).sum().backward()
x.requires_grad_()
torch.nn.functional.max_pool2d(x, 3, 2).sum().backward()
assert torch.equal(y.grad.cpu(), x.grad)
print(torch_npu.__file__)
'''


class Adapter:
    """The copy, and programs that see nothing of the tree in their environment."""

    def __init__(self, folder, home):
        self.package = folder / 'torch_npu'
        shutil.copytree(pathlib.Path(torch_npu.__file__).parent, self.package, copy_function=os.link)  # takes no room
        # Wheels before 2.7 look where their own libraries are.
        self.libraries = self.package / 'lib' if VERSION < (2, 7) else folder / 'torch_npu.libs'
        self.own = set(self.names())
        self.home = home
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(('ASCEND_', 'POOLGRAD_', 'LD_LIBRARY_PATH'))}
        self.environment.update(PYTHONPATH=str(folder), HOME=str(home))
        if VERSION < (2, 7):
            self.environment['POOLGRAD_SOC'] = 'Ascend910B1'  # they do not know the name that counts without it

    def names(self):
        return sorted(path.name for path in self.libraries.glob('*'))

    def run(self, *command, status=0, **variables):
        """What it prints on both files."""
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors='backslashreplace', env={**self.environment, **variables}, cwd='/', timeout=120)
        assert done.returncode == status, done.stdout
        return REMARK.sub('', done.stdout)

    def command(self, what, status=0, **variables):
        return self.run(TREE / 'bin/poolgrad-torch-npu', what, '--python', sys.executable, status=status, **variables)


@pytest.fixture
def adapter(tmp_path):
    with tempfile.TemporaryDirectory(dir=sys.prefix) as folder:  # links need the file system of the environment
        yield Adapter(pathlib.Path(folder), tmp_path)


def test_install_and_remove(adapter):
    assert 'not installed' in adapter.command('status', status=1)
    assert 'there is nothing of poolgrad' in adapter.command('remove')
    assert 'libhccl.so' in adapter.run(sys.executable, '-c', 'import torch, torch_npu', status=1)

    assert f'finds poolgrad of {TREE}' in adapter.command('install')
    assert f'finds poolgrad in {TREE}/lib64' in adapter.command('status')
    assert adapter.run(sys.executable, '-c', POOL).splitlines()[-1] == str(adapter.package / '__init__.py')
    first = adapter.names()
    adapter.command('install')  # once more changes nothing
    assert adapter.names() == first and 'libascendcl.so' in first

    (adapter.libraries / 'libgraph.so').unlink()
    assert 'not complete: libgraph.so' in adapter.command('status', status=1)
    (adapter.libraries / 'libgraph.so').symlink_to('/nonexistent/libpoolgrad.so.0')
    assert 'broken' in adapter.command('status', status=1)

    assert 'links removed' in adapter.command('remove')
    assert set(adapter.names()) == adapter.own
    assert 'not installed' in adapter.command('status', status=1)


@pytest.mark.parametrize('place', ['Ascend/cann/lib64', 'Ascend/ascend-toolkit/latest/lib64', 'variable/lib64',
                                   'search path'])
def test_a_real_cann(adapter, place):
    """Any library of that name that is not poolgrad's."""
    library = adapter.home / place / 'libascendcl.so'
    library.parent.mkdir(parents=True)
    library.write_bytes(FOREIGN)
    variables = {'variable/lib64': dict(ASCEND_HOME_PATH=str(adapter.home / 'variable')),
                 'search path': dict(LD_LIBRARY_PATH=f'/nowhere:{library.parent}')}.get(place, {})
    said = adapter.command('install', status=1, **variables)
    assert f'a CANN is installed here: {library}' in said and 'nothing was changed' in said
    assert set(adapter.names()) == adapter.own


def test_a_library_in_the_way(adapter):
    adapter.libraries.mkdir(exist_ok=True)
    other = adapter.libraries / 'libascendcl.so'
    other.write_bytes(FOREIGN)
    assert f'{other} is there and is not poolgrad\'s' in adapter.command('install', status=1)
    adapter.command('remove')
    assert set(adapter.names()) == adapter.own | {'libascendcl.so'} and other.read_bytes() == FOREIGN


def test_wrong_usage(adapter):
    command = TREE / 'bin/poolgrad-torch-npu'
    adapter.run(command, 'put', status=2)
    assert 'cannot be run' in adapter.run(command, 'install', '--python', '/nonexistent/python', status=1)
    shutil.rmtree(adapter.package)
    adapter.run(sys.executable, '-m', 'venv', '--without-pip', adapter.home / 'empty')
    assert 'has no torch_npu' in adapter.run(command, 'install', '--python', adapter.home / 'empty/bin/python', status=1)
