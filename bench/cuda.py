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
from contestants import CELLS, INDICES, OUTPUTS, TEXT, Unable

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
        self.place = None  # gives the tensor for what a call has left in memory of its own
        self.made = None
        self.work = call if isinstance(call, WORK) else WORK(self.guarded(call))

    def guarded(self, call):
        def work(_, a_set):
            try:
                self.made = call(a_set)
                return 0
            except (RuntimeError, Unable) as error:  # must not leave through C
                self.error = str(error).strip().splitlines()[-1]
                return -1
        return work

    def put_result(self):
        """What the last call made, where results are compared."""
        if self.place and self.made is not None:
            self.place().copy_(self.made)
        self.made = None

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
    """Only the backward of maxima with indices, and only where a plane's cells lie evenly apart and outputs lie in the
    order of their memory."""
    facts = row.facts

    def order(size, step):
        """The axes longer than 1, slowest first, and whether they lie without gaps."""
        axes = sorted((axis for axis in range(5) if size[axis] > 1), key=lambda axis: -step[axis])
        return axes, all(step[a] == size[b] * step[b] for a, b in zip(axes, axes[1:])) and step[axes[-1]] == 1
    orders = [order(facts.into, facts.in_step), order(facts.out, facts.out_step),
              order(facts.out, facts.index_step)]
    usual = all(dense and (axes == sorted(axes) or axes[-1:] == [1]) for axes, dense in orders)
    if facts.forward or not facts.max or 'mask' in facts.operator or not usual:
        raise Unable('another operator or layout')

    def call(a_set):
        if device.so.cuda_scatter(stream, ctypes.byref(facts), row.address(a_set, OUTPUTS),
                                  row.address(a_set, INDICES), row.address(a_set, CELLS)) != 0:
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
        self.like = self.torch.empty_like(self.tensor(0, CELLS))
        for a_set in range(row.facts.sets):  # not while they are timed
            self.of(a_set)

    def lie(self, which):
        """Size and steps of a tensor, along the axes that it has, and its elements in memory."""
        facts = self.row.facts
        size, step, elements = {CELLS: (facts.into, facts.in_step, facts.in_elements),
                                OUTPUTS: (facts.out, facts.out_step, facts.out_elements),
                                INDICES: (facts.out, facts.index_step, facts.index_elements)}[which]
        axes = (0, 1, 2, 3, 4) if facts.spatial == 3 else (0, 1, 3, 4)
        return [size[i] for i in axes], [step[i] for i in axes], elements

    def tensor(self, a_set, which):
        torch, facts, (size, step, elements) = self.torch, self.row.facts, self.lie(which)
        dtype = contestants.torch_type(torch, facts)
        if which == INDICES:
            dtype = torch.int64 if facts.index_bytes == 8 else torch.int32
        memory = Memory(self.row.address(a_set, which), elements, f'<i{dtype.itemsize}')
        return torch.as_tensor(memory, device='cuda').view(dtype).as_strided(size, step)

    def index(self, a_set):
        """As int64, since it knows no other. Where a forward's are not, it gets memory of its own for them."""
        facts, (size, step, _) = self.row.facts, self.lie(INDICES)
        if not facts.max or facts.index_bytes == 8:
            return self.tensor(a_set, INDICES) if facts.max else None
        if facts.forward:
            return self.torch.empty_strided(size, step, dtype=self.torch.int64, device='cuda')
        return self.tensor(a_set, INDICES).long()

    def of(self, a_set):
        """What is read, indices and what is written."""
        if a_set not in self.made:
            cells, outputs = self.tensor(a_set, CELLS), self.tensor(a_set, OUTPUTS)
            read, out = (cells, outputs) if self.row.facts.forward else (outputs, cells)
            self.made[a_set] = read, self.index(a_set), out
        return self.made[a_set]


def aten(torch, facts):
    """The operator with everything but tensors filled in. It gives what it has made in memory of its own, or None."""
    name, takes, writes = contestants.ATEN[facts.operator]
    op = getattr(getattr(torch.ops.aten, name), writes.split()[0] if writes else 'default')
    values, takes, writes = contestants.aten_values(facts), takes.split(), writes.split()

    def call(read, like, index, out):
        given = {**values, 'read': read, 'like': like, 'index': index}
        made = op(*(given[word] for word in takes),
                  **{keyword: index if keyword == 'indices' else out for keyword in writes})
        return None if writes else made
    return call


def torch_forms(torch, tensors):
    """The operator, and for an average over everything also mean or its backward, which PyTorch itself runs there."""
    facts, stream, op = tensors.row.facts, torch.cuda.current_stream().cuda_stream, aten(torch, tensors.row.facts)
    axes, cells = list(range(2, 2 + facts.spatial)), facts.into[2] * facts.into[3] * facts.into[4]

    def call(a_set):
        read, index, out = tensors.of(a_set)
        return op(read, tensors.like, index, out)

    def mean(a_set):
        read, _, out = tensors.of(a_set)
        if facts.forward:
            torch.mean(read, axes, True, out=out)
        else:
            torch.div(read.expand(out.size()), cells, out=out)
    forms = [Contestant('PyTorch', stream, call)]
    forms[0].place = lambda: tensors.of(0)[2]
    if not tensors.of(0)[2].is_contiguous():
        forms[0].otherwise = lambda: torch_copied(torch, tensors)
    if facts.is_global:
        forms.append(Contestant('PyTorch mean', stream, mean))
    return forms


def torch_copied(torch, tensors):
    """For operators that read indices and write results as if they were planar, whatever strides they have: a backward
    gets planar indices, as its forward would leave them, and a planar result is copied to where the row wants it."""
    op, out = aten(torch, tensors.row.facts), tensors.of(0)[2]
    planar = torch.empty(out.size(), dtype=out.dtype, device=out.device)
    indices = [tensors.of(a_set)[1] for a_set in range(tensors.row.facts.sets)]
    indices = [index if index is None else index.contiguous() for index in indices]

    def call(a_set):
        read, _, out = tensors.of(a_set)
        made = op(read, tensors.like, indices[a_set], planar)
        out.copy_(planar if made is None else made)
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
        made, axes = self.make('cudnnCreateTensorDescriptor'), (0, 1, 2, 3, 4) if facts.spatial == 3 else (0, 1, 3, 4)
        self.must(self.so.cudnnSetTensorNdDescriptor(made, self.DTYPES[facts.kind], len(axes),
                                                     numbers([size[i] for i in axes]), numbers([step[i] for i in axes])))
        return made

    def pooling(self, facts, mode):
        made = self.make('cudnnCreatePoolingDescriptor')
        windows = (numbers(facts.of_axes(sizes)) for sizes in (facts.kernel, facts.pad, facts.stride))
        self.must(self.so.cudnnSetPoolingNdDescriptor(made, mode, 1, facts.spatial, *windows))
        return made


def numbers(values):
    return (ctypes.c_int * len(values))(*values)


def cudnn_forms(cudnn, torch, tensors):
    """One contestant per mode. For a backward its forward makes y from random x: it finds its maxima by comparing the
    two."""
    facts = tensors.row.facts
    if not facts.sliding or facts.divisor or any(step > 1 for step in facts.of_axes(facts.dilation)):
        raise Unable('no such operator')
    modes = [cudnn.MAX_DETERMINISTIC, cudnn.MAX] if facts.max else [
        cudnn.INCLUDE if facts.include_pad else cudnn.EXCLUDE]
    small, large = (cudnn.tensor(facts, size, step) for size, step in (
        (facts.out, facts.out_step), (facts.into, facts.in_step)))
    number = ctypes.c_double if facts.kind == 'f64' else ctypes.c_float
    one, zero = ctypes.byref(number(1)), ctypes.byref(number(0))
    sizes = numbers([0] * (2 + facts.spatial))
    wanted = [*facts.out[:2], *facts.of_axes(facts.out[2:])]

    def forward(pool, x, y):
        cudnn.must(cudnn.so.cudnnPoolingForward(cudnn.handle, pool, one, large, ctypes.c_void_p(x), zero, small,
                                                ctypes.c_void_p(y)))

    def backward(pool, x, y, grad, out):
        cudnn.must(cudnn.so.cudnnPoolingBackward(cudnn.handle, pool, one, small, ctypes.c_void_p(y), small,
                                                 ctypes.c_void_p(grad), large, ctypes.c_void_p(x), zero, large,
                                                 ctypes.c_void_p(out)))

    def form(mode):
        pool = cudnn.pooling(facts, mode)
        cudnn.must(cudnn.so.cudnnGetPoolingNdForwardOutputDim(pool, large, len(sizes), sizes))
        if list(sizes) != wanted:
            raise Unable('no ceil mode')
        kept = None
        if not facts.forward:
            kept = x, y = tensors.like.uniform_(), torch.empty_like(tensors.of(0)[0])
            forward(pool, x.data_ptr(), y.data_ptr())

        def call(a_set):
            outputs, cells = (tensors.row.address(a_set, which) for which in (OUTPUTS, CELLS))
            if facts.forward:
                forward(pool, cells, outputs)
            else:
                backward(pool, kept[0].data_ptr(), kept[1].data_ptr(), outputs, cells)
        return Contestant('cuDNN', torch.cuda.current_stream().cuda_stream, call)
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
        if row.facts.in_elements >= PEERS_BELOW:
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
        facts, so, kind = row.facts, row.so, row.facts.kind
        row.poison(0)
        mine.samples(self.device, 1, 0, 1, 1)
        left = self.device.so.cuda_unwritten(row.address(0, facts.result), facts.result_elements, facts.element_bytes)
        if left:
            self.notes.append(f'{name}: {left} elements of {facts.result_name} were not written.')
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
        form.put_result()
        if self.torch:
            self.torch.cuda.current_stream().synchronize()
        if form.name == 'cuDNN' and row.facts.max and not row.facts.forward:
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

    def deterministic(self, forms, measure):
        """PyTorch told to give the same bits in every run, by the fastest form that does not refuse to."""
        self.torch.use_deterministic_algorithms(True)
        try:
            return min((statistics.median(measure(form)) for form in forms if self.works(form)), default=report.NONE)
        finally:
            self.torch.use_deterministic_algorithms(False)

    def result(self, name, line, row, kind, mine, peers, measure):
        """What measure gives for each, ours before and after the others."""
        times = measure(mine)
        peers_us = {column: self.best(name, forms, measure) for column, forms in peers.items()}
        if 'PyTorch' in peers:
            peers_us['determ.'] = self.deterministic(peers['PyTorch'], measure)
        times += measure(mine)
        quartiles = statistics.quantiles(times, n=4)
        limit = self.limit_us(row.facts) if kind == 'cold' else None
        fewer = row.facts.max and row.facts.index_bytes != 8  # bytes of indices than the peers read or write
        return report.Result(name, line, kind, row.facts.floor, statistics.median(times), limit, peers_us, len(times),
                             quartiles[2] / quartiles[0], counted=kind in ('cold', 'graph') and not fewer,
                             method=row.methods[0])

    def replay(self, form):
        """Through PyTorch's own capture where its allocator takes part."""
        if not form.name.startswith('PyTorch'):
            return [form.replay(self.device)]
        graph = self.torch.cuda.CUDAGraph()
        try:
            return [us / 100 for us in self.captured(graph, form).samples(self.device, 1, 0, LEAST, 1)]
        except RuntimeError as error:  # the capture has failed
            raise Unable(str(error).splitlines()[0]) from error
        finally:
            graph.reset()  # not when it is collected: that could be within another capture, which it would break

    def captured(self, graph, form):
        """The replay of 100 calls."""
        stream = self.torch.cuda.current_stream()
        with self.torch.cuda.graph(graph, stream=stream, capture_error_mode='thread_local'):  # ours has threads
            for _ in range(100):
                if form.work(None, 0) != 0:
                    raise Unable(form.error)
        return Contestant('graph', form.stream, lambda _: graph.replay())

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
        needed = sets * facts.floor + (3 * facts.floor if facts.in_elements < PEERS_BELOW else 0)
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
