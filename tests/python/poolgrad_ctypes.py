# SPDX-License-Identifier: Apache-2.0
"""libpoolgrad.so from Python: tensors out of numpy arrays, operators as one call.

    need('numpy')                       # before "import numpy": finds a Python that has it
    library = Library('build/release/lib64/libpoolgrad.so')
    grad, out = library.tensor(array, 'FLOAT'), library.tensor(poison, 'FLOAT')
    library.run('aclnnAdaptiveAvgPool3dBackward', grad, self, out)
    out.read()
"""

import ctypes
import os
import shutil
import subprocess
import sys

try:
    import numpy
except ImportError:  # only need() works then
    numpy = None

DTYPES = {'FLOAT': 0, 'FLOAT16': 1, 'INT8': 2, 'INT32': 3, 'UINT8': 4, 'INT16': 6, 'UINT16': 7, 'INT64': 9, 'UINT64': 10,
          'DOUBLE': 11, 'COMPLEX64': 16, 'BF16': 27}
FORMATS = {'ND': 2, 'NCHW': 0, 'NHWC': 1, 'FRACTAL_NZ': 29, 'NCDHW': 30, 'NDHWC': 27, 'FRACTAL_Z_3D': 33, 'NCL': 47}
# numpy has no bfloat16: its bits travel as uint16.
STORAGE = {'FLOAT': 'f4', 'FLOAT16': 'f2', 'BF16': 'u2', 'DOUBLE': 'f8', 'INT8': 'i1', 'UINT8': 'u1', 'INT16': 'i2',
           'UINT16': 'u2', 'INT32': 'i4', 'INT64': 'i8'}

# What the first phase takes before its two results: a tensor, an array of ints ([]), or a number (its type).
SIGNATURES = {
    'aclnnAdaptiveMaxPool2dBackward': 'gradOutput self indices gradInput',
    'aclnnAdaptiveMaxPool3dBackward': 'gradOutput self indices gradInput',
    'aclnnAdaptiveAvgPool3dBackward': 'gradOutput self out',
    'aclnnMaxPool2dWithIndicesBackward':
        'gradOutput self indices kernelSize[] stride[] padding[] dilation[] ceilMode:bool gradInput',
    'aclnnAvgPool2dBackward': 'gradOutput self kernelSize[] stride[] padding[] ceilMode:bool countIncludePad:bool '
                              'divisorOverride:int64 cubeMathType:int8 gradInput',
    'aclnnAdaptiveAvgPool2dBackward': 'gradOutput self out',
    'aclnnAvgPool3dBackward': 'gradOutput self kernelSize[] stride[] padding[] ceilMode:bool countIncludePad:bool '
                              'divisorOverride:int64 output',
    'aclnnMaxPool2dWithMaskBackward':
        'gradOutput self indices kernelSize[] stride[] padding[] dilation[] ceilMode:bool gradInput',
    'aclnnMaxPool3dWithArgmaxBackward':
        'gradOutput self indices kernelSize[] stride[] padding[] dilation[] ceilMode:bool gradInput',
    'aclnnAdaptiveAvgPool2d': 'self outputSize[] out',
    'aclnnAdaptiveAvgPool3d': 'self outputSize[] out',
    'aclnnAdaptiveMaxPool2d': 'self outputSize[] outputOut indicesOut',
    'aclnnAdaptiveMaxPool3d': 'self outputSize[] outputOut indicesOut',
    'aclnnAvgPool2d': 'self kernelSize[] strides[] paddings[] ceilMode:bool countIncludePad:bool divisorOverride:int64 '
                      'cubeMathType:int8 out',
    'aclnnAvgPool3d': 'self kernelSize[] stride[] padding[] ceilMode:bool countIncludePad:bool divisorOverride:int64 out',
    'aclnnMaxPool':
        'self kernelShape[] strides[] autoPad:int64 pads[] dilations[] ceilMode:int64 out',
    'aclnnMaxPool2dWithIndices': 'self kernelSize[] stride[] padding[] dilation[] ceilMode:bool out indices',
    'aclnnMaxPool2dWithMask': 'self kernelSize[] stride[] padding[] dilation[] ceilMode:bool out indices',
    'aclnnMaxPool3dWithArgmax': 'self kernelSize[] stride[] padding[] dilation[] ceilMode:bool out indices',
}


def arguments_of(operator):
    """The names of what an operator's first phase takes, in order, each with its type for ctypes."""
    numbers = {'bool': ctypes.c_bool, 'int8': ctypes.c_int8, 'int64': ctypes.c_int64}
    for word in SIGNATURES[operator].split():
        name, _, number = word.removesuffix('[]').partition(':')
        yield name, numbers.get(number, ctypes.c_void_p)


TO_DEVICE, TO_HOST = 1, 2  # aclrtMemcpyKind


def need(*modules):
    """Goes on if this Python has the modules, else starts over in one that has, else exits with 77."""
    probe = 'import importlib.util as u, sys; sys.exit(any(u.find_spec(m) is None for m in sys.argv[1:]))'
    for python in (sys.executable, '/usr/bin/python3', shutil.which('python3')):
        if python and subprocess.run([python, '-c', probe, *modules], check=False).returncode == 0:
            if python != sys.executable:
                os.execv(python, [python, *sys.argv])
            return
    print(f'skipped: no Python here has {" and ".join(modules)} (Debian: {" ".join("python3-" + m for m in modules)})')
    sys.exit(77)


def to_bf16(values):
    """The bits of values rounded to nearest even."""
    bits = numpy.ascontiguousarray(values, 'f4').view('u4')
    rounded = ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype('u2')
    return numpy.where(numpy.isnan(values), numpy.uint16(0x7fc0), rounded)


def from_bf16(bits):
    return (bits.astype('u4') << 16).view('f4')


def store(values, dtype):
    """The array as the library wants it in memory."""
    return to_bf16(values) if dtype == 'BF16' else values.astype(STORAGE[dtype])


def load(stored, dtype):
    return from_bf16(stored) if dtype == 'BF16' else stored


def wrong(found, wanted, absolute, dtype):
    """Marks the cells of found that are too far from wanted, the exact sums: 4 ulp of fp32 on the sum
    of the terms' absolute values (fp64 for DOUBLE), and one ulp of the rounded result for half types."""
    allowed = absolute * 2.0 ** (-50 if dtype == 'DOUBLE' else -21)
    if dtype in ('FLOAT16', 'BF16'):
        digits, smallest = {'FLOAT16': (11, -24), 'BF16': (8, -133)}[dtype]
        with numpy.errstate(over='ignore'):
            wanted = load(store(wanted, dtype), dtype).astype('f8')
        allowed = allowed + numpy.ldexp(1.0, numpy.maximum(numpy.frexp(wanted)[1] - digits, smallest))
    found = found.astype('f8')
    with numpy.errstate(invalid='ignore'):
        near = numpy.isfinite(wanted) & (numpy.abs(found - wanted) <= allowed)
    return ~(near | (found == wanted) | (numpy.isnan(found) & numpy.isnan(wanted)))


class Tensor:
    """Device memory and the view of it that an operator is given."""

    def __init__(self, library, values, dtype, tensor_format='ND', layout=None):
        """layout: the order of the axes in memory, slowest first; None leaves them in order."""
        order = list(layout or range(values.ndim))
        back = [order.index(axis) for axis in range(values.ndim)]
        self.library, self.dtype, self.back = library, dtype, back
        self.host = numpy.ascontiguousarray(store(values, dtype).transpose(order))
        view = self.host.transpose(back)
        strides = [stride // view.itemsize for stride in view.strides]
        self.address = library.allocate(self.host.nbytes)
        library.copy(self.address, self.host.ctypes.data, self.host.nbytes, TO_DEVICE)
        self.handle = library.describe(view.shape, dtype, tensor_format, strides, self.address)

    def read(self):
        """The values (BF16 as fp32), in the order of the view's axes."""
        self.library.copy(self.host.ctypes.data, self.address, self.host.nbytes, TO_HOST)
        return load(self.host, self.dtype).transpose(self.back)

    def free(self):
        self.library.expect(self.library.so.aclDestroyTensor(self.handle))
        self.library.expect(self.library.so.aclrtFree(self.address))


class Library:
    def __init__(self, path):
        self.so = ctypes.CDLL(os.path.abspath(path))
        pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        for name, result, parameters in (
                ('aclInit', number, [ctypes.c_char_p]),
                ('aclGetRecentErrMsg', ctypes.c_char_p, []),
                ('aclrtSetDevice', number, [number]),
                ('aclrtCreateStream', number, [pointer]),
                ('aclrtSynchronizeStream', number, [pointer]),
                ('aclrtMalloc', number, [pointer, size, number]),
                ('aclrtFree', number, [pointer]),
                ('aclrtMemcpy', number, [pointer, size, pointer, size, number]),
                ('aclCreateTensor', pointer, [pointer, ctypes.c_uint64, number, pointer, ctypes.c_int64, number,
                                              pointer, ctypes.c_uint64, pointer]),
                ('aclDestroyTensor', number, [pointer]),
                ('aclCreateIntArray', pointer, [pointer, ctypes.c_uint64]),
                ('aclDestroyIntArray', number, [pointer]),
                ('aclDestroyAclOpExecutor', number, [pointer])):
            self.declare(name, result, parameters)
        for name in SIGNATURES:
            parameters = [kind for _, kind in arguments_of(name)]
            self.declare(name + 'GetWorkspaceSize', number, [*parameters, pointer, pointer])
            self.declare(name, number, [pointer, ctypes.c_uint64, pointer, pointer])
        self.expect(self.so.aclInit(None))
        self.expect(self.so.aclrtSetDevice(0))
        self.stream = pointer()
        self.expect(self.so.aclrtCreateStream(ctypes.byref(self.stream)))

    def declare(self, name, result, parameters):
        function = getattr(self.so, name)
        function.restype, function.argtypes = result, parameters

    def message(self):
        return (self.so.aclGetRecentErrMsg() or b'').decode().strip()

    def expect(self, status):
        if status != 0:
            raise RuntimeError(f'status {status}: {self.message()}')

    def allocate(self, count):
        address = ctypes.c_void_p()
        self.expect(self.so.aclrtMalloc(ctypes.byref(address), max(count, 1), 0))
        return address.value

    def copy(self, to, source, count, direction):
        if count:
            self.expect(self.so.aclrtMemcpy(to, count, source, count, direction))

    def describe(self, shape, dtype, tensor_format, strides=None, address=None):
        """An aclTensor; address None is enough for plan()."""
        dims = (ctypes.c_int64 * len(shape))(*shape)
        steps = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
        return self.so.aclCreateTensor(dims, len(shape), DTYPES[dtype], steps, 0, FORMATS[tensor_format], dims,
                                       len(shape), address)

    def tensor(self, values, dtype, tensor_format='ND', layout=None):
        return Tensor(self, values, dtype, tensor_format, layout)

    def plan(self, operator, arguments):
        """The first phase; an argument is a Tensor or a handle, a list (aclIntArray), a number or None.
        Returns status, workspace size, executor."""
        passed, arrays = [], []
        for value in arguments:
            if isinstance(value, list):
                value = self.so.aclCreateIntArray((ctypes.c_int64 * len(value))(*value), len(value))
                arrays.append(value)
            passed.append(value.handle if isinstance(value, Tensor) else value)
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        status = getattr(self.so, operator + 'GetWorkspaceSize')(*passed, ctypes.byref(size), ctypes.byref(executor))
        for array in arrays:
            self.so.aclDestroyIntArray(array)
        return status, size.value, executor

    def drop(self, executor):
        self.expect(self.so.aclDestroyAclOpExecutor(executor))

    def run(self, operator, *arguments):
        """Both phases, and the wait for the result."""
        status, size, executor = self.plan(operator, arguments)
        self.expect(status)
        workspace = self.allocate(size) if size else None
        self.expect(getattr(self.so, operator)(workspace, size, executor, self.stream))
        self.expect(self.so.aclrtSynchronizeStream(self.stream))
        if workspace:
            self.expect(self.so.aclrtFree(workspace))
