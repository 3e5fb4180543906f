# SPDX-License-Identifier: Apache-2.0
"""The rows on a GPU, next to the machine's limit, PyTorch's CUDA kernels, cuDNN and atomic additions.

Everything is timed by CUDA events on the stream it runs in, behind a kernel that holds the stream while calls are
queued: the device never waits for the host."""

import ctypes
import datetime
import itertools
import math
import os
import pathlib
import statistics

import contestants
import counts
import report
from contestants import GRAD_IN, GRAD_OUT, INDICES, TEXT, TYPES, Unable

TINY_BELOW, ONE_SET_FROM = 64 << 10, 1 << 30
PEERS_BELOW = 1 << 31  # cells; PyTorch's offsets and cuDNN's strides are 32 bits wide
# How far a peer's result may be from ours, relative to the largest: halves are summed in halves there.
TOLERANCE = {'f32': 1e-5, 'f16': 0.02, 'bf16': 0.1, 'f64': 1e-12}
LEAST, MOST, BUDGET_US = 20, 60, 1e5  # samples of a contestant
WORK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64)


class Series(ctypes.Structure):
    """struct cuda_series of native.h."""
    _fields_ = [(name, ctypes.c_int64) for name in ('sets', 'first', 'count', 'batch')]


class Device:
    """cuda_native.cu."""

    def __init__(self, folder):
        pointer, number, wide, real = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_double
        path = os.path.join(folder, 'libbench_cuda.so')
        if not os.path.exists(path):
            raise Unable(f'there is no {path}: it is built where nvcc is (make bench)')
        self.so = contestants.load(path, (
            ('cuda_trouble', ctypes.c_char_p),
            ('cuda_describe', number, ctypes.c_char_p, pointer, pointer),
            ('cuda_multiprocessors', wide),
            ('cuda_launch_host', real, pointer, number),
            ('cuda_read_rate', real),
            ('cuda_fill_rate', real),
            ('cuda_samples', number, pointer, WORK, pointer, pointer, pointer),
            ('cuda_replay', real, pointer, WORK, pointer, number, number),
            ('cuda_scatter', number, pointer, pointer, pointer, pointer, pointer),
            ('cuda_unwritten', wide, pointer, wide, wide)))
        name, cache = ctypes.create_string_buffer(TEXT), ctypes.c_int64()
        if self.so.cuda_describe(name, ctypes.byref(cache), ctypes.byref(ctypes.c_int64())) != 0:
            raise Unable(f'CUDA: {self.trouble()}')
        self.name, self.cache_bytes = name.value.decode(), cache.value
        self.multiprocessors = self.so.cuda_multiprocessors()

    def trouble(self):
        return self.so.cuda_trouble().decode()

    def free_bytes(self):
        free = ctypes.c_int64()
        self.so.cuda_describe(ctypes.create_string_buffer(TEXT), ctypes.byref(ctypes.c_int64()), ctypes.byref(free))
        return free.value


class Contestant:
    """Something to queue: work(what, set) on a stream; 0, or it fails and why() says so."""

    def __init__(self, name, stream, call):
        self.name, self.stream, self.what, self.error = name, stream, None, None
        self.otherwise = None  # makes another form, where the result of this one is wrong
        self.work = call if isinstance(call, WORK) else WORK(self.guarded(call))

    def guarded(self, call):
        def work(_, a_set):
            try:
                call(a_set)
                return 0
            except (RuntimeError, Unable) as error:  # must not leave through C
                self.error = str(error).strip().splitlines()[-1]
                return -1
        return work

    def samples(self, device, sets, first, count, batch):
        us = (ctypes.c_float * count)()
        series = Series(sets, first, count, batch)
        if device.so.cuda_samples(self.stream, self.work, self.what, ctypes.byref(series), us) != 0:
            raise Unable(self.error or device.trouble())
        return list(us)

    def replay(self, device, calls=100, replays=LEAST):
        us = device.so.cuda_replay(self.stream, self.work, self.what, calls, replays)
        if us < 0:
            raise Unable(self.error or device.trouble())
        return us


def ours(library, native, row):
    library.poolgrad_cuda_stream.restype, library.poolgrad_cuda_stream.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    stream = library.poolgrad_cuda_stream(native.so.bench_stream(row.handle))
    if not stream:
        raise Unable('the library has no CUDA stream for this row')
    contestant = Contestant('poolgrad', stream, ctypes.cast(native.so.bench_enqueue, WORK))
    contestant.what = row.handle
    return contestant


def atomics(device, stream, row):
    """Only where a plane's cells lie evenly apart and outputs lie in the order of their memory."""
    facts = row.facts

    def order(size, step):
        """The axes longer than 1, slowest first, and whether they lie without gaps."""
        axes = sorted((axis for axis in range(5) if size[axis] > 1), key=lambda axis: -step[axis])
        return axes, all(step[a] == size[b] * step[b] for a, b in zip(axes, axes[1:])) and step[axes[-1]] == 1
    orders = [order(facts.into, facts.grad_in_step), order(facts.out, facts.grad_out_step),
              order(facts.out, facts.index_step)]
    usual = all(dense and (axes == sorted(axes) or axes[-1:] == [1]) for axes, dense in orders)
    if 'max' not in facts.operator or not usual:
        raise Unable('another layout')

    def call(a_set):
        if device.so.cuda_scatter(stream, ctypes.byref(facts), row.address(a_set, GRAD_OUT),
                                  row.address(a_set, INDICES), row.address(a_set, GRAD_IN)) != 0:
            raise Unable(device.trouble())
    return Contestant('atomics', stream, call)


# --- PyTorch ----------------------------------------------------------------------------------------

class Memory:
    """Device memory of others, as PyTorch takes it."""

    def __init__(self, address, count, kind):
        self.__cuda_array_interface__ = {'shape': (count,), 'typestr': kind, 'data': (address, False), 'version': 3}


class Tensors:
    """A row's buffers as PyTorch's tensors."""

    def __init__(self, torch, row):
        self.torch, self.row, self.made = torch, row, {}
        self.dtype = {'f32': torch.float32, 'f16': torch.float16, 'bf16': torch.bfloat16,
                      'f64': torch.float64}[TYPES[row.facts.type]]
        self.like = self.torch.empty_like(self.tensor(0, GRAD_IN))
        for a_set in range(row.facts.sets):  # not while they are timed
            self.of(a_set)

    def view(self, address, dtype, elements, size, step):
        each = dtype.itemsize
        flat = self.torch.as_tensor(Memory(address, elements, f'<i{each}'), device='cuda').view(dtype)
        axes = (0, 1, 2, 3, 4) if self.row.facts.spatial == 3 else (0, 1, 3, 4)
        return flat.as_strided([size[i] for i in axes], [step[i] for i in axes])

    def tensor(self, a_set, which):
        facts, address = self.row.facts, self.row.address(a_set, which)
        if which == GRAD_OUT:
            return self.view(address, self.dtype, facts.grad_out_elements, facts.out, facts.grad_out_step)
        if which == GRAD_IN:
            return self.view(address, self.dtype, facts.grad_in_elements, facts.into, facts.grad_in_step)
        dtype = self.torch.int64 if facts.index_bytes == 8 else self.torch.int32
        return self.view(address, dtype, facts.index_elements, facts.out, facts.index_step)

    def of(self, a_set):
        """gradOutput, indices and gradInput; indices as int64, since it knows no other."""
        if a_set not in self.made:
            index = self.tensor(a_set, INDICES).long() if 'max' in self.row.facts.operator else None
            self.made[a_set] = self.tensor(a_set, GRAD_OUT), index, self.tensor(a_set, GRAD_IN)
        return self.made[a_set]


def aten(torch, facts):
    """The operator with everything but tensors filled in."""
    aten_ops, divisor = torch.ops.aten, facts.divisor or None
    kernel, stride, pad, dilation = (list(getattr(facts, name)) for name in ('kernel', 'stride', 'pad', 'dilation'))
    if facts.operator == 'max_pool2d':
        op = aten_ops.max_pool2d_with_indices_backward.grad_input
        return lambda grad, like, index, out: op(grad, like, kernel, stride, pad, dilation, bool(facts.ceil), index,
                                                 grad_input=out)
    if facts.operator == 'avg_pool2d':
        op = aten_ops.avg_pool2d_backward.grad_input
        return lambda grad, like, index, out: op(grad, like, kernel, stride, pad, bool(facts.ceil),
                                                 bool(facts.include_pad), divisor, grad_input=out)
    if facts.operator == 'adaptive_avg_pool3d':
        op = aten_ops.adaptive_avg_pool3d_backward.grad_input
        return lambda grad, like, index, out: op(grad, like, grad_input=out)
    op = getattr(aten_ops, facts.operator + '_backward').grad_input
    return lambda grad, like, index, out: op(grad, like, index, grad_input=out)


def torch_forms(torch, tensors):
    """The operator, and for a pool over everything also the backward of mean, which autograd runs there."""
    facts, stream, op = tensors.row.facts, torch.cuda.current_stream().cuda_stream, aten(torch, tensors.row.facts)

    def call(a_set):
        grad, index, out = tensors.of(a_set)
        op(grad, tensors.like, index, out)

    def mean(a_set):
        grad, _, out = tensors.of(a_set)
        torch.div(grad.expand(out.size()), facts.into[2] * facts.into[3] * facts.into[4], out=out)
    forms = [Contestant('PyTorch', stream, call)]
    if not tensors.of(0)[2].is_contiguous():
        forms[0].otherwise = lambda: torch_copied(torch, tensors)
    if facts.operator == 'adaptive_avg_pool3d' and list(facts.out[2:]) == [1, 1, 1]:
        forms.append(Contestant('PyTorch mean', stream, mean))
    return forms


def torch_copied(torch, tensors):
    """For operators that read indices and write gradients as if they were planar, whatever strides they have: it gets
    planar indices, as their forward would leave them, and copies its planar result to where the row wants it."""
    op, out = aten(torch, tensors.row.facts), tensors.of(0)[2]
    planar = torch.empty(out.size(), dtype=out.dtype, device=out.device)
    indices = [tensors.of(a_set)[1] for a_set in range(tensors.row.facts.sets)]
    indices = [index if index is None else index.contiguous() for index in indices]

    def call(a_set):
        grad, _, out = tensors.of(a_set)
        op(grad, tensors.like, indices[a_set], planar)
        out.copy_(planar)
    return Contestant('PyTorch copied', torch.cuda.current_stream().cuda_stream, call)


# --- cuDNN ------------------------------------------------------------------------------------------

class CuDnn:
    """The library that PyTorch brings along."""
    MAX, INCLUDE, EXCLUDE, MAX_DETERMINISTIC = range(4)
    DTYPES = {'f32': 0, 'f64': 1, 'f16': 2, 'bf16': 9}

    def __init__(self, torch):
        version = torch.backends.cudnn.version()  # loads it
        if version is None:
            raise Unable('PyTorch has no cuDNN')
        self.so, self.version = None, version
        home = pathlib.Path(torch.__file__).parent
        folders = [home / 'lib', *home.parent.glob('nvidia/*/lib')]
        names = [f'libcudnn.so.{version // 10000 if version >= 90000 else version // 1000}']
        for path in itertools.chain(names, *(folder.glob('libcudnn.so.*') for folder in folders)):
            try:
                self.so = ctypes.CDLL(str(path))
                break
            except OSError:
                continue
        if self.so is None:
            raise Unable('no libcudnn.so')
        self.so.cudnnGetErrorString.restype = ctypes.c_char_p
        self.handle = self.make('cudnnCreate')
        self.must(self.so.cudnnSetStream(self.handle, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)))

    def must(self, status):
        if status != 0:
            raise Unable(f'cuDNN: {self.so.cudnnGetErrorString(status).decode()}')

    def make(self, create):
        made = ctypes.c_void_p()
        self.must(getattr(self.so, create)(ctypes.byref(made)))
        return made

    def tensor(self, facts, size, step):
        made = self.make('cudnnCreateTensorDescriptor')
        values = [size[i] for i in (0, 1, 3, 4)] + [step[i] for i in (0, 1, 3, 4)]
        self.must(self.so.cudnnSetTensor4dDescriptorEx(made, self.DTYPES[TYPES[facts.type]], *values))
        return made

    def pooling(self, facts, mode):
        made = self.make('cudnnCreatePoolingDescriptor')
        self.must(self.so.cudnnSetPooling2dDescriptor(made, mode, 1, *facts.kernel, *facts.pad, *facts.stride))
        return made


def cudnn_forms(cudnn, torch, tensors):
    """One contestant per mode. Its forward makes y from random x: it finds its maxima by comparing the two."""
    facts = tensors.row.facts
    if 'adaptive' in facts.operator or facts.divisor or list(facts.dilation) != [1, 1]:
        raise Unable('no such operator')
    modes = [cudnn.MAX_DETERMINISTIC, cudnn.MAX] if 'max' in facts.operator else [
        cudnn.INCLUDE if facts.include_pad else cudnn.EXCLUDE]
    small, large = (cudnn.tensor(facts, size, step) for size, step in (
        (facts.out, facts.grad_out_step), (facts.into, facts.grad_in_step)))
    number = ctypes.c_double if TYPES[facts.type] == 'f64' else ctypes.c_float
    one, zero = ctypes.byref(number(1)), ctypes.byref(number(0))
    sizes = [ctypes.c_int() for _ in range(4)]
    x, y = tensors.like.uniform_(), torch.empty_like(tensors.of(0)[0])

    def form(mode):
        pool = cudnn.pooling(facts, mode)
        cudnn.must(cudnn.so.cudnnGetPooling2dForwardOutputDim(pool, large, *map(ctypes.byref, sizes)))
        if [size.value for size in sizes] != [facts.out[i] for i in (0, 1, 3, 4)]:
            raise Unable('no ceil mode')
        at_x, at_y = ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr())
        cudnn.must(cudnn.so.cudnnPoolingForward(cudnn.handle, pool, one, large, at_x, zero, small, at_y))

        def call(a_set):
            grad, out = (ctypes.c_void_p(tensors.row.address(a_set, which)) for which in (GRAD_OUT, GRAD_IN))
            cudnn.must(cudnn.so.cudnnPoolingBackward(cudnn.handle, pool, one, small, at_y, small, grad, large, at_x,
                                                     zero, large, out))
        contestant = Contestant('cuDNN', torch.cuda.current_stream().cuda_stream, call)
        contestant.kept = x, y  # else their memory would go to others
        return contestant
    found, last = [], None
    for mode in modes:
        try:
            found.append(form(mode))
        except Unable as error:
            last = error
    if not found:
        raise last
    return found


# --- measuring ----------------------------------------------------------------------------------------

class CudaBench:
    columns = report.CUDA_PEERS

    def __init__(self, options, torch):
        self.options, self.notes, self.progress = options, [], report.Progress()
        self.remarks = {}  # forms of a peer, and the rows in which they were its fastest
        self.issue_us = {}  # of a row, by its name: how long its instructions take to be issued
        self.library = ctypes.CDLL(str((options.build / 'lib64/libpoolgrad.so').resolve()))
        self.library.poolgrad_version.restype = ctypes.c_char_p
        if not hasattr(self.library, 'poolgrad_cuda_stream'):
            raise Unable('this libpoolgrad.so has no CUDA in it')
        self.native = contestants.Native(options.build / 'bench')
        self.device = Device(options.build / 'bench')
        self.read_rate, self.fill_rate = self.device.so.cuda_read_rate(), self.device.so.cuda_fill_rate()
        self.torch, self.cudnn = torch, None
        if torch is None or not torch.cuda.is_available():
            self.torch = None
            self.notes.append('PyTorch and cuDNN are left out: no PyTorch here that knows CUDA.')
            return
        torch.cuda.set_stream(torch.cuda.Stream())
        if 'cudnn' in options.peers:
            try:
                self.cudnn = CuDnn(torch)
            except Unable as error:
                self.notes.append(f'cuDNN is left out: {error}.')

    def header(self):
        versions = [f'poolgrad {self.library.poolgrad_version().decode()}']
        versions += [f'PyTorch {self.torch.__version__}'] if self.torch else []
        versions += [f'cuDNN {self.cudnn.version}'] if self.cudnn else []
        return [f'- {", ".join(versions)}',
                f'- {self.device.name}, level 2 cache {self.device.cache_bytes >> 20} MB; read {self.read_rate / 1e3:,.0f} '
                f'GB/s, fill {self.fill_rate / 1e3:,.0f} GB/s',
                f'- {datetime.date.today()}']

    def limit_us(self, facts):
        return facts.read_bytes / self.read_rate + facts.write_bytes / self.fill_rate

    def prepare_bounds(self, rows):
        """All in one process, because starting the profiler takes seconds."""
        try:
            found = counts.count(self.options.build, [line for _, line in rows], self.device.multiprocessors)
            self.issue_us = {name: us for (name, _), (us, _) in zip(rows, found)}
        except RuntimeError as error:
            self.notes.append(f'Instructions are not counted: {error}.')

    def bound(self, cold):
        """What share computing alone allows: as if the device had issued an instruction in every cycle."""
        if cold.name not in self.issue_us:
            return []
        us = max(self.issue_us[cold.name], cold.limit_us)
        return [report.Result(cold.name, cold.line, 'bound', cold.floor, us, cold.limit_us, method=cold.method)]

    def sets_of(self, facts):
        if facts.floor < TINY_BELOW or facts.floor >= ONE_SET_FROM:
            return 1
        return max(2, -(-3 * self.device.cache_bytes // facts.floor))

    def peers(self, row):
        """Those that can compute the row, by column."""
        found = {}
        if row.facts.grad_in_elements >= PEERS_BELOW:
            return found
        tensors = Tensors(self.torch, row) if self.torch else None
        stream = self.library.poolgrad_cuda_stream(self.native.so.bench_stream(row.handle))
        makers = {'PyTorch': (self.torch, lambda: torch_forms(self.torch, tensors)),
                  'cuDNN': (self.cudnn, lambda: cudnn_forms(self.cudnn, self.torch, tensors)),
                  'atomics': (True, lambda: [atomics(self.device, stream, row)])}
        for column, (there, make) in makers.items():
            try:
                found[column] = [form for form in make() if self.works(form)] if there else []
            except Unable:
                pass  # the column stays empty
        return {column: forms for column, forms in found.items() if forms}

    def works(self, form):
        try:
            form.samples(self.device, 1, 0, 1, 1)
            return True
        except Unable:
            return False

    def check(self, name, row, mine, peers):
        """Says when a cell is not written, since the figures then mean nothing. The peers that are of one mind with
        us: what takes how long to compute something else is no comparison."""
        facts, so, kind = row.facts, row.so, TYPES[row.facts.type]
        row.poison(0)
        mine.samples(self.device, 1, 0, 1, 1)
        left = self.device.so.cuda_unwritten(row.address(0, GRAD_IN), facts.grad_in_elements, facts.element_bytes)
        if left:
            self.notes.append(f'{name}: {left} cells of gradInput were not written.')
        so.bench_keep(row.handle, 0)
        agreeing = {}
        for column, forms in peers.items():
            for form in forms:
                difference = self.difference(row, form)
                other = form.otherwise() if difference > TOLERANCE[kind] and form.otherwise else None
                if other and self.works(other):
                    form, difference = other, self.difference(row, other)
                if difference <= TOLERANCE[kind]:
                    agreeing.setdefault(column, []).append(form)
                else:
                    self.notes.append(report.disagreement(name, form.name, difference))
        return agreeing

    def difference(self, row, form):
        """Between its result and ours, which was kept, relative to the largest value."""
        row.poison(0)
        form.samples(self.device, 1, 0, 1, 1)
        if form.name == 'cuDNN' and 'max' in row.facts.operator:
            return 0  # its maxima are those of other data
        return row.so.bench_difference(row.handle, 0)

    def time(self, row, contestant):
        """Times of many samples, each of one call, or of as many as take 50 us."""
        sets = row.facts.sets
        for a_set in range(sets):
            row.poison(a_set)
        first = statistics.median(contestant.samples(self.device, sets, 0, 3, 1))
        batch = max(1, math.ceil(50 / first))
        count = max(LEAST, min(MOST, int(BUDGET_US / (first * batch))))
        return contestant.samples(self.device, sets, 1, count, batch)

    def best(self, name, forms, measure):
        medians = {form: statistics.median(measure(form)) for form in forms}
        best = min(medians, key=medians.get)
        if best.name in report.REMARKS:
            self.remarks.setdefault(best.name, []).append(name)
        return medians[best]

    def deterministic(self, form, measure):
        """PyTorch told to give the same bits in every run, or its refusal."""
        self.torch.use_deterministic_algorithms(True)
        try:
            return statistics.median(measure(form)) if self.works(form) else report.NONE
        finally:
            self.torch.use_deterministic_algorithms(False)

    def result(self, name, line, row, kind, mine, peers, measure):
        """What measure gives for each, ours before and after the others."""
        times = measure(mine)
        peers_us = {column: self.best(name, forms, measure) for column, forms in peers.items()}
        if 'PyTorch' in peers:
            peers_us['determ.'] = self.deterministic(peers['PyTorch'][0], measure)
        times += measure(mine)
        quartiles = statistics.quantiles(times, n=4)
        limit = self.limit_us(row.facts) if kind == 'cold' else None
        fewer = 'max' in row.facts.operator and row.facts.index_bytes == 4  # bytes than the peers read
        return report.Result(name, line, kind, row.facts.floor, statistics.median(times), limit, peers_us, len(times),
                             quartiles[2] / quartiles[0], counted=kind in ('cold', 'graph') and not fewer,
                             method=row.methods[0])

    def replay(self, form):
        """Through PyTorch's own capture where its allocator takes part."""
        if not form.name.startswith('PyTorch'):
            return [form.replay(self.device)]
        graph = self.torch.cuda.CUDAGraph()
        stream = self.torch.cuda.current_stream()
        with self.torch.cuda.graph(graph, stream=stream, capture_error_mode='thread_local'):  # ours has threads
            for _ in range(100):
                if form.work(None, 0) != 0:
                    raise Unable(form.error)
        replay = Contestant('graph', form.stream, lambda _: graph.replay())
        return [us / 100 for us in replay.samples(self.device, 1, 0, LEAST, 1)]

    def tiny(self, name, line, row, mine, peers):
        """A call within a replayed graph, calls one after the other in a stream, and their time on the host."""
        results, why = [], ctypes.create_string_buffer(TEXT)
        try:
            results.append(self.result(name, line, row, 'graph', mine, peers, self.replay))
        except Unable as error:
            self.notes.append(f'{name} in a graph failed: {error}')
        results.append(self.result(name, line, row, 'stream', mine, peers,
                                   lambda form: form.samples(self.device, 1, 0, LEAST, 100)))
        hosts, empty = [], []
        for _ in range(LEAST):  # in turns
            hosts.append(row.so.bench_host(row.handle, 0, 1000, why))
            empty.append(self.device.so.cuda_launch_host(mine.stream, 1000))
        results.append(report.Result(name, line, 'host', row.facts.floor, statistics.median(hosts), calls=LEAST * 1000,
                                     counted=False, method=row.methods[0]))
        self.notes.append(f'{name}: the host takes {statistics.median(hosts) / statistics.median(empty):.2f} times as '
                          f'long as for the launch of an empty kernel, which is {statistics.median(empty):.2f} us.')
        return results

    def run_methods(self, name, line):
        """The row by the method that is used, and by the next one that fits: names and times."""
        row = contestants.Row(self.native, line, self.sets_of(self.native.facts(line)), len(os.sched_getaffinity(0)), False)
        try:
            mine, times = ours(self.library, self.native, row), []
            for number, method in enumerate(row.methods[:2]):
                self.progress(f'{name}: {method}')
                row.so.bench_set_method(row.handle, number)
                times.append((method, statistics.median(self.time(row, mine))))
            return times
        finally:
            row.close()

    def run_row(self, name, line, alone=False):
        """alone: without peers."""
        self.progress(f'{name}: preparing')
        facts = self.native.facts(line)
        sets = self.sets_of(facts)
        needed = sets * facts.floor + (3 * facts.floor if facts.grad_in_elements < PEERS_BELOW else 0)
        if needed > 0.9 * self.device.free_bytes():
            self.notes.append(f'{name} is left out: {needed >> 20} MB are needed on the GPU, '
                              f'{self.device.free_bytes() >> 20} MB are free.')
            return []
        row = None
        try:
            row = contestants.Row(self.native, line, sets, len(os.sched_getaffinity(0)), False)
            return self.measure_row(name, line, row, alone)
        except Unable as error:
            self.notes.append(f'{name} failed: {error}')
            return []
        finally:
            if row:
                row.close()
            if self.torch:
                self.torch.cuda.empty_cache()

    def measure_row(self, name, line, row, alone):
        mine = ours(self.library, self.native, row)
        peers = self.check(name, row, mine, {} if alone else self.peers(row))
        if row.facts.floor < TINY_BELOW:
            return self.tiny(name, line, row, mine, peers)
        return [self.result(name, line, row, 'cold', mine, peers, lambda form: self.time(row, form))]
