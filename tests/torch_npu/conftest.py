# SPDX-License-Identifier: Apache-2.0
"""What all tests here share: the product that this run is for, and Python in a process of its own."""

import os
import subprocess
import sys

import pytest
import torch
import torch_npu

# POOLGRAD_SOC counts for the whole process, so tools/test_npu.sh runs these tests once for each name.
IS_910B = torch.npu.get_device_name().startswith('Ascend910B')
VERSION = tuple(int(part) for part in torch.__version__.split('+')[0].split('.'))
# What torch_npu itself says about every environment. Nothing else may be on stderr.
REMARKS = ('32 padding size, with memory allocation', 'ASCEND_HOME_PATH environment variable is not set')


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(20261119)


@pytest.fixture(autouse=True)
def no_error_is_left():
    """What a test has queued fails in that test."""
    yield
    torch.npu.synchronize()


@pytest.fixture
def is_910b():
    return IS_910B


@pytest.fixture
def python():
    """Runs a program in a process of its own: python(text, NAME=value ...) gives what it prints. It must end with 0,
    with nothing on stderr, unless status and stderr say otherwise."""
    def run(program, *arguments, status=0, stderr=None, **variables):
        done = subprocess.run([sys.executable, '-c', program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=120, env={**os.environ, **variables})
        said = [line for line in done.stderr.splitlines() if not any(remark in line for remark in REMARKS)]
        assert done.returncode == status, done.stdout + done.stderr
        if stderr is None:
            assert not said, done.stderr
        else:
            assert stderr in done.stderr, done.stderr
        return done.stdout
    return run


def pytest_report_header():
    return f'torch {torch.__version__}, torch_npu {torch_npu.__version__}, {torch.npu.get_device_name()}'
