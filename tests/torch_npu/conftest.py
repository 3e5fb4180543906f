# SPDX-License-Identifier: Apache-2.0
"""What all tests here share: the product that this run is for, and Python in a process of its own."""

import os
import re
import subprocess
import sys

import pytest
import torch
import torch_npu

# POOLGRAD_SOC counts for the whole process, so tools/test_npu.sh runs these tests once for each name.
IS_910B = torch.npu.get_device_name().startswith('Ascend910B')
VERSION = tuple(int(part) for part in torch.__version__.split('+')[0].split('.'))
# x[mask] = number is aclnnInplaceMaskedFillScalar in these versions of torch_npu, and in the others aclnnIndexPutImpl.
MASKS_ARE_FILLED = (2, 7) <= VERSION < (2, 8) or VERSION >= (2, 14)
# With an Ascend910B name these versions of torch_npu do not use aclnnNpuFormatCast, but an operator that CANN compiles.
FORMATS_ARE_COMPILED = IS_910B and (VERSION < (2, 7) or (2, 8) <= VERSION < (2, 10))
# What torch_npu itself says on stderr. Nothing else may be there.
REMARKS = [
    r'.*32 padding size, with memory allocation',
    r'.*ASCEND_HOME_PATH environment variable is not set',
    r'.*NPUQueue\.cpp',  # INFO lines about a queue that ran empty
    # of zeros_like, ones_like and others, with the line of Python that called them
    r'.*UserWarning: Cannot create tensor with intern?al format while allow_intern[ae]l_format=False.*(\n  .*)?$',
]
if VERSION < (2, 6):
    REMARKS.append(r'\[W GetCANNInfo\.cpp.*Driver Version: ')  # of copies between devices: there is no driver here
REMARK = re.compile('|'.join(f'^(?:{remark}).*\n?' for remark in REMARKS), re.MULTILINE)


# With an Ascend950 name torch_npu finds out by itself which function is missing, with an Ascend910B name it asks CANN's
# operator compiler, which refuses.
NO_OPERATOR = 'only the aclnn operators of aclnnop/ exist' if IS_910B else 'aclnn{} or aclnn{}GetWorkspaceSize not found'


def no_operator(name):
    return NO_OPERATOR.format(name, name)


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
                              text=True, errors='backslashreplace', timeout=120, env={**os.environ, **variables})
        assert done.returncode == status, done.stdout + done.stderr
        if stderr is None:
            assert not REMARK.sub('', done.stderr), done.stderr
        else:
            assert stderr in done.stderr, done.stderr
        return done.stdout
    return run


def pytest_report_header():
    return f'torch {torch.__version__}, torch_npu {torch_npu.__version__}, {torch.npu.get_device_name()}'
