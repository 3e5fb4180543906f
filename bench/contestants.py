# SPDX-License-Identifier: Apache-2.0
"""Who computes a row: the library, its limit, and the peers. Each has a name and call(set, calls), the
microseconds per call; opening one that cannot compute the row raises Unable."""

import ctypes
import os
import time
import warnings

OPERATORS = ('max_pool2d', 'avg_pool2d', 'adaptive_max_pool2d', 'adaptive_max_pool3d', 'adaptive_avg_pool3d')
TYPES = ('f32', 'f16', 'bf16', 'f64')
TEXT = 512
GRAD_OUT, INDICES, GRAD_IN, WIDE_INDICES = range(4)


class Unable(Exception):
    pass


class Facts(ctypes.Structure):
    """struct bench_facts of native.h."""
    _fields_ = [(name, ctypes.c_int64) for name in ('op', 'type', 'index_bytes', 'spatial', 'ceil', 'include_pad',
                                                    'divisor')]
    _fields_ += [(name, ctypes.c_int64 * 2) for name in ('kernel', 'stride', 'pad', 'dilation')]
    _fields_ += [(name, ctypes.c_int64 * 5) for name in ('into', 'out', 'grad_out_step', 'index_step', 'grad_in_step')]
    _fields_ += [(name, ctypes.c_int64) for name in ('grad_out_elements', 'index_elements', 'grad_in_elements',
                                                     'read_bytes', 'write_bytes', 'sets')]

    @property
    def operator(self):
        return OPERATORS[self.op]

    @property
    def floor(self):
        return self.read_bytes + self.write_bytes

    @property
    def element_bytes(self):
        return self.write_bytes // self.grad_in_elements


def load(path, functions):
    library = ctypes.CDLL(os.path.abspath(path))
    for name, result, *parameters in functions:
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    return library


class Native:
    """native.c."""

    def __init__(self, folder):
        pointer, number, wide, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_char_p
        self.so = load(os.path.join(folder, 'libbench_native.so'), (
            ('bench_facts_of', number, text, pointer, text),
            ('bench_open', pointer, text, wide, number, number, text),
            ('bench_close', None, pointer),
            ('bench_address', pointer, pointer, wide, number),
            ('bench_field', None, pointer, pointer),
            ('bench_call', ctypes.c_double, pointer, wide, number, number, text),
            ('bench_enqueue', number, pointer, wide),
            ('bench_method', text, pointer, number),
            ('bench_set_method', None, pointer, number),
            ('bench_stream', pointer, pointer),
            ('bench_host', ctypes.c_double, pointer, wide, number, text),
            ('bench_twin', ctypes.c_double, pointer, wide, number, number, number),
            ('bench_can_stream', number),
            ('bench_poison', None, pointer, wide),
            ('bench_unwritten', wide, pointer, wide),
            ('bench_keep', None, pointer, wide),
            ('bench_difference', ctypes.c_double, pointer, wide)))

    def facts(self, line):
        facts, why = Facts(), ctypes.create_string_buffer(TEXT)
        if self.so.bench_facts_of(line.encode(), ctypes.byref(facts), why) != 0:
            raise ValueError(f'{line}: {why.value.decode()}')
        return facts


class Row:
    """A problem and its sets of buffers, which every contestant uses in turn."""

    def __init__(self, native, line, sets, threads, for_peers):
        self.so, self.threads, self.facts = native.so, threads, native.facts(line)
        self.facts.sets, self.turn = sets, 0
        why = ctypes.create_string_buffer(TEXT)
        self.handle = self.so.bench_open(line.encode(), sets, threads, for_peers, why)
        if not self.handle:
            raise Unable(why.value.decode())

    def close(self):
        self.so.bench_close(self.handle)

    def address(self, a_set, tensor):
        return self.so.bench_address(self.handle, a_set, tensor)

    def poison(self, a_set):
        self.so.bench_poison(self.handle, a_set)

    @property
    def methods(self):
        """The names of the methods that can compute it, best first."""
        names = []
        while name := self.so.bench_method(self.handle, len(names)):
            names.append(name.decode())
        return names

    def next_set(self):
        self.turn = (self.turn + 1) % self.facts.sets
        return self.turn


class Ours:
    """The library; method: the number of the method, best first, that computes the row."""
    name = 'poolgrad'

    def __init__(self, row, depth=1, method=0):
        self.row, self.depth, self.method, self.why = row, depth, method, ctypes.create_string_buffer(TEXT)

    def call(self, a_set, calls):
        self.row.so.bench_set_method(self.row.handle, self.method)
        us = self.row.so.bench_call(self.row.handle, a_set, calls, self.depth, self.why)
        if us < 0:
            raise Unable(self.why.value.decode())
        return us


class Twin:
    def __init__(self, row, threads, streaming):
        self.row, self.threads, self.streaming = row, threads, streaming
        self.name = f'twin {threads} {"streaming" if streaming else "ordinary"}'

    def call(self, a_set, calls):
        return self.row.so.bench_twin(self.row.handle, a_set, calls, self.threads, self.streaming)


def twins(row, small):
    """All forms of the limit; the best one counts. Small rows may be faster without a second thread."""
    threads = {row.threads, 1} if small else {row.threads}
    streaming = (0, 1) if row.so.bench_can_stream() else (0,)
    return [Twin(row, count, kind) for count in sorted(threads) for kind in streaming]


# --- PyTorch ----------------------------------------------------------------------------------------

# What is put between the common first and last arguments.
ATEN = {
    'max_pool2d': 'max_pool2d_with_indices_backward(grad, like, {kernel}, {stride}, {pad}, {dilation}, {ceil}, index',
    'avg_pool2d': 'avg_pool2d_backward(grad, like, {kernel}, {stride}, {pad}, {ceil}, {include_pad}, {divisor}',
    'adaptive_max_pool2d': 'adaptive_max_pool2d_backward(grad, like, index',
    'adaptive_max_pool3d': 'adaptive_max_pool3d_backward(grad, like, index',
    'adaptive_avg_pool3d': 'adaptive_avg_pool3d_backward(grad, like',
}
LOOP = '''
def loop(grad: Tensor, like: Tensor, index: Tensor, out: Tensor, planar: Tensor, calls: int):
    for _ in range(calls):
        {}
'''


class Torch:
    """Timed around a scripted loop: no interpreted Python within. The form 'mean' is what autograd runs for a pool over
    everything. The form 'copied' is for operators that read indices and write gradients as if they were planar,
    whatever strides they have: it gets planar indices, as their forward would leave them, and copies its planar result
    to where the row wants it."""

    def __init__(self, torch, row, form=''):
        self.name, self.row, self.form = f'PyTorch {form}'.strip(), row, form
        self.torch, self.tensors = torch, {}
        facts = row.facts
        windows = {name: list(getattr(facts, name)) for name in ('kernel', 'stride', 'pad', 'dilation')}
        step = 'torch.ops.aten.' + ATEN[facts.operator].format(
            **windows, ceil=bool(facts.ceil), include_pad=bool(facts.include_pad), divisor=facts.divisor or None)
        step += ', grad_input=planar)\n        out.copy_(planar)' if form == 'copied' else ', grad_input=out)'
        if form == 'mean':
            step = f'torch.div(grad.expand(out.size()), {facts.into[2] * facts.into[3] * facts.into[4]}.0, out=out)'
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            self.loop = torch.jit.CompilationUnit(LOOP.format(step)).loop
        try:
            self.call(0, 1)
        except RuntimeError as error:
            raise Unable(str(error).strip().splitlines()[-1]) from error
        if form == 'copied':  # not between timed calls: it would bring the indices into the caches
            for a_set in range(facts.sets):
                self.tensors_of(a_set)

    def otherwise(self):
        """How else it can be asked, where its result is wrong."""
        planar = self.tensors_of(0)[3].is_contiguous()
        return [] if planar or self.form else [Torch(self.torch, self.row, 'copied')]

    def tensor(self, address, dtype, elements, size, step):
        torch, facts = self.torch, self.row.facts
        axes = (0, 1, 2, 3, 4) if facts.spatial == 3 else (0, 1, 3, 4)
        bytes_each = torch.empty(0, dtype=dtype).element_size()
        memory = (ctypes.c_char * (elements * bytes_each)).from_address(address)
        flat = torch.frombuffer(memory, dtype=dtype)
        return flat.as_strided([size[i] for i in axes], [step[i] for i in axes])

    def tensors_of(self, a_set):
        torch, facts, row = self.torch, self.row.facts, self.row
        if a_set not in self.tensors:
            dtype = {'f32': torch.float32, 'f16': torch.float16, 'bf16': torch.bfloat16,
                     'f64': torch.float64}[TYPES[facts.type]]
            grad = self.tensor(row.address(a_set, GRAD_OUT), dtype, facts.grad_out_elements, facts.out,
                               facts.grad_out_step)
            out = self.tensor(row.address(a_set, GRAD_IN), dtype, facts.grad_in_elements, facts.into,
                              facts.grad_in_step)
            index = grad
            if 'max' in facts.operator:  # it knows int64 only
                kind = INDICES if facts.index_bytes == 8 else WIDE_INDICES
                index = self.tensor(row.address(a_set, kind), torch.int64, facts.index_elements, facts.out,
                                    facts.index_step)
            planar = out
            if self.form == 'copied':  # one for all sets
                index = index.contiguous()
                planar = self.tensors[0][4] if self.tensors else torch.empty(out.size(), dtype=dtype)
            self.tensors[a_set] = grad, torch.empty_like(out), index, out, planar
        return self.tensors[a_set]

    def call(self, a_set, calls):
        tensors = self.tensors_of(a_set)
        with self.torch.no_grad():
            start = time.perf_counter()
            self.loop(*tensors, calls)
            return (time.perf_counter() - start) * 1e6 / calls


def torch_forms(torch, row):
    facts = row.facts
    forms = [Torch(torch, row)]
    if facts.operator == 'adaptive_avg_pool3d' and list(facts.out[2:]) == [1, 1, 1]:
        forms.append(Torch(torch, row, 'mean'))
    return forms


# --- oneDNN -----------------------------------------------------------------------------------------

class OneDnn:
    name = 'oneDNN'

    def otherwise(self):
        return []

    @staticmethod
    def library(folder):
        pointer, number, wide = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
        return load(os.path.join(folder, 'libbench_onednn.so'), (
            ('onednn_version', ctypes.c_char_p),
            ('onednn_open', pointer, pointer, pointer, number, ctypes.c_char_p),
            ('onednn_close', None, pointer),
            ('onednn_call', ctypes.c_double, pointer, wide, pointer, pointer, number)))

    def __init__(self, so, row):
        self.so, self.row, self.handle = so, row, None
        if 'adaptive' in row.facts.operator:
            raise Unable('no such operator')
        field = None
        if 'max' in row.facts.operator:
            field = ctypes.create_string_buffer(row.facts.write_bytes)
            row.so.bench_field(row.handle, field)
        why = ctypes.create_string_buffer(TEXT)
        self.handle = so.onednn_open(ctypes.byref(row.facts), field, row.threads, why)
        if not self.handle:
            raise Unable(why.value.decode())

    def close(self):
        self.so.onednn_close(self.handle)

    def call(self, a_set, calls):
        return self.so.onednn_call(self.handle, a_set, self.row.address(a_set, GRAD_OUT),
                                   self.row.address(a_set, GRAD_IN), calls)
