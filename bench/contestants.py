# SPDX-License-Identifier: Apache-2.0
"""Who computes a row: the library, its limit, and the peers. Each has a name and call(set, calls), the
microseconds per call; opening one that cannot compute the row raises Unable."""

import ctypes
import os
import time
import warnings

TYPES = ('f32', 'f16', 'bf16', 'f64')
BYTES = {'f32': 4, 'f16': 2, 'bf16': 2, 'f64': 8}
TEXT = 512
OUTPUTS, INDICES, CELLS, WIDE_INDICES = range(4)


class Unable(Exception):
    pass


class Facts(ctypes.Structure):
    """struct bench_facts of native.h."""
    _fields_ = [(name, ctypes.c_int64) for name in ('forward', 'max', 'sliding', 'type', 'index_bytes', 'spatial',
                                                    'ceil', 'include_pad', 'divisor')]
    _fields_ += [(name, ctypes.c_int64 * 3) for name in ('kernel', 'stride', 'pad', 'dilation')]
    _fields_ += [(name, ctypes.c_int64 * 5) for name in ('into', 'out', 'in_step', 'out_step', 'index_step')]
    _fields_ += [(name, ctypes.c_int64) for name in ('in_elements', 'out_elements', 'index_elements', 'read_bytes',
                                                     'write_bytes', 'sets')]
    operator = ''  # its word in problem lines

    @property
    def kind(self):
        return TYPES[self.type]

    @property
    def floor(self):
        return self.read_bytes + self.write_bytes

    @property
    def element_bytes(self):
        return BYTES[self.kind]

    @property
    def result(self):
        """What is compared."""
        return OUTPUTS if self.forward else CELLS

    @property
    def result_name(self):
        return 'out' if self.forward else 'gradInput'

    @property
    def result_elements(self):
        return self.out_elements if self.forward else self.in_elements

    @property
    def is_global(self):
        """An average over everything, which PyTorch leaves to mean."""
        return 'adaptive_avg' in self.operator and list(self.out[2:]) == [1, 1, 1]

    def of_axes(self, sizes):
        """Of three values, those of the axes that there are."""
        return list(sizes)[3 - self.spatial:]


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
        facts.operator = line.split()[0]
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

# The operators of PyTorch: a name, the tensors and values that they take in this order, and the keywords of what they
# write. One without such a keyword returns memory of its own.
SLIDING_MAX, SLIDING_AVERAGE = 'kernel stride pad dilation ceil', 'kernel stride pad ceil include_pad divisor'
ATEN = {
    'max_pool2d': ('max_pool2d_with_indices_backward', f'read like {SLIDING_MAX} index', 'grad_input'),
    'max_pool2d_mask': ('max_pool2d_with_indices_backward', f'read like {SLIDING_MAX} index', 'grad_input'),
    'max_pool3d': ('max_pool3d_with_indices_backward', f'read like {SLIDING_MAX} index', 'grad_input'),
    'avg_pool2d': ('avg_pool2d_backward', f'read like {SLIDING_AVERAGE}', 'grad_input'),
    'avg_pool3d': ('avg_pool3d_backward', f'read like {SLIDING_AVERAGE}', 'grad_input'),
    'adaptive_max_pool2d': ('adaptive_max_pool2d_backward', 'read like index', 'grad_input'),
    'adaptive_max_pool3d': ('adaptive_max_pool3d_backward', 'read like index', 'grad_input'),
    'adaptive_avg_pool2d': ('_adaptive_avg_pool2d_backward', 'read like', ''),
    'adaptive_avg_pool3d': ('adaptive_avg_pool3d_backward', 'read like', 'grad_input'),
    'max_pool_forward': ('max_pool2d_with_indices', f'read {SLIDING_MAX}', 'out indices'),
    'max_pool2d_forward': ('max_pool2d_with_indices', f'read {SLIDING_MAX}', 'out indices'),
    'max_pool2d_mask_forward': ('max_pool2d_with_indices', f'read {SLIDING_MAX}', 'out indices'),
    'max_pool3d_forward': ('max_pool3d_with_indices', f'read {SLIDING_MAX}', 'out indices'),
    'avg_pool2d_forward': ('avg_pool2d', f'read {SLIDING_AVERAGE}', 'out'),
    'avg_pool3d_forward': ('avg_pool3d', f'read {SLIDING_AVERAGE}', 'out'),
    'adaptive_max_pool2d_forward': ('adaptive_max_pool2d', 'read outputs', 'out indices'),
    'adaptive_max_pool3d_forward': ('adaptive_max_pool3d', 'read outputs', 'out indices'),
    'adaptive_avg_pool2d_forward': ('adaptive_avg_pool2d', 'read outputs', 'out'),
    'adaptive_avg_pool3d_forward': ('adaptive_avg_pool3d', 'read outputs', 'out'),
}


def aten_values(facts):
    """The values among what an operator takes."""
    values = {name: facts.of_axes(getattr(facts, name)) for name in ('kernel', 'stride', 'pad', 'dilation')}
    return {**values, 'ceil': bool(facts.ceil), 'include_pad': bool(facts.include_pad),
            'divisor': facts.divisor or None, 'outputs': facts.of_axes(facts.out[2:])}


def torch_type(torch, facts):
    return {'f32': torch.float32, 'f16': torch.float16, 'bf16': torch.bfloat16, 'f64': torch.float64}[facts.kind]


LOOP = '''
def loop(read: Tensor, like: Tensor, index: Tensor, out: Tensor, planar: Tensor, calls: int) -> Tensor:
    made = out
    for _ in range(calls):
        {}
    return made
'''


class Torch:
    """Timed around a scripted loop: no interpreted Python within. The form 'mean' is what PyTorch itself runs for an
    average over everything, or for its backward. The form 'copied' is for operators that read indices and write results
    as if they were planar, whatever strides they have: a backward gets planar indices, as its forward would leave them,
    and a planar result is copied to where the row wants it."""

    def __init__(self, torch, row, form=''):
        self.name, self.row, self.form = f'PyTorch {form}'.strip(), row, form
        self.torch, self.tensors = torch, {}
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            self.loop = torch.jit.CompilationUnit(LOOP.format(self.step())).loop
        try:
            self.call(0, 1)
        except RuntimeError as error:
            raise Unable(str(error).strip().splitlines()[-1]) from error
        if form == 'copied':  # not between timed calls: it would bring the indices into the caches
            for a_set in range(row.facts.sets):
                self.tensors_of(a_set)

    def step(self):
        """A line of the loop."""
        facts = self.row.facts
        if self.form == 'mean':
            axes = list(range(2, 2 + facts.spatial))
            return (f'torch.mean(read, {axes}, True, out=out)' if facts.forward else
                    f'torch.div(read.expand(out.size()), {facts.into[2] * facts.into[3] * facts.into[4]}.0, out=out)')
        name, takes, writes = ATEN[facts.operator]
        values = aten_values(facts)
        words = [str(values.get(word, word)) for word in takes.split()]
        to = 'planar' if self.form == 'copied' else 'out'
        words += [f'{keyword}={"index" if keyword == "indices" else to}' for keyword in writes.split()]
        call = f'torch.ops.aten.{name}({", ".join(words)})'
        copied = '\n        out.copy_(planar)' if to == 'planar' else ''
        return call + copied if writes else f'made = {call}'

    def otherwise(self):
        """How else it can be asked, where its result is wrong."""
        planar = self.tensors_of(0)[3].is_contiguous()
        return [] if planar or self.form else [Torch(self.torch, self.row, 'copied')]

    def tensor(self, a_set, which):
        torch, facts = self.torch, self.row.facts
        of_cells = facts.into, facts.in_step, facts.in_elements
        of_outputs = facts.out, facts.out_step, facts.out_elements
        of_indices = facts.out, facts.index_step, facts.index_elements
        size, step, elements = {CELLS: of_cells, OUTPUTS: of_outputs}.get(which, of_indices)
        dtype = torch_type(torch, facts) if which in (CELLS, OUTPUTS) else torch.int64
        memory = (ctypes.c_char * (elements * dtype.itemsize)).from_address(self.row.address(a_set, which))
        axes = (0, 1, 2, 3, 4) if facts.spatial == 3 else (0, 1, 3, 4)
        flat = torch.frombuffer(memory, dtype=dtype)
        return flat.as_strided([size[i] for i in axes], [step[i] for i in axes])

    def tensors_of(self, a_set):
        torch, facts = self.torch, self.row.facts
        if a_set not in self.tensors:
            cells, outputs = (self.tensor(a_set, which) for which in (CELLS, OUTPUTS))
            read, out = (cells, outputs) if facts.forward else (outputs, cells)
            index = read
            if facts.max:  # it knows int64 only
                index = self.tensor(a_set, INDICES if facts.index_bytes == 8 else WIDE_INDICES)
            planar = out
            if self.form == 'copied':  # one for all sets
                planar = self.tensors[0][4] if self.tensors else torch.empty(out.size(), dtype=out.dtype)
                index = index.contiguous()
            self.tensors[a_set] = read, torch.empty_like(cells), index, out, planar
        return self.tensors[a_set]

    def call(self, a_set, calls):
        tensors = self.tensors_of(a_set)
        with self.torch.no_grad():
            start = time.perf_counter()
            made = self.loop(*tensors, calls)
            us = (time.perf_counter() - start) * 1e6 / calls
            if made.data_ptr() != tensors[3].data_ptr():
                tensors[3].copy_(made)
            return us


def torch_forms(torch, row):
    """All ways in which PyTorch computes the row; the fastest counts."""
    return [Torch(torch, row, form) for form in (['', 'mean'] if row.facts.is_global else [''])]


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
        field = None
        if row.facts.max and row.facts.sliding and not row.facts.forward:
            field = ctypes.create_string_buffer(row.facts.write_bytes)
            row.so.bench_field(row.handle, field)
        why = ctypes.create_string_buffer(TEXT)
        self.handle = so.onednn_open(ctypes.byref(row.facts), field, row.threads, why)
        if not self.handle:
            raise Unable(why.value.decode())

    def close(self):
        self.so.onednn_close(self.handle)

    def call(self, a_set, calls):
        return self.so.onednn_call(self.handle, a_set, self.row.address(a_set, OUTPUTS),
                                   self.row.address(a_set, CELLS), calls)
