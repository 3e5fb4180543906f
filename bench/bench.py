#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the operators on the rows of rows.txt, next to their limit and to PyTorch and oneDNN where installed.

    make bench                                   the full table, some minutes
    make bench ARGS="--quick --filter mp2"       passes arguments
    make bench ARGS="--filter f."                forward operators alone; --filter=-f. all others
    make bench ARGS="--device cuda"              the rows of rows_cuda.txt on a GPU, next to PyTorch and cuDNN
    make bench ARGS="--random 60 --seed 1,2"     120 random problems from the distribution that draw.py states

docs/performance.md says how the figures are taken.
"""

import argparse
import ctypes
import datetime
import importlib.util
import os
import pathlib
import platform
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import time

import contestants
import cuda
import curves
import distribution
import draw
import report

HERE = pathlib.Path(__file__).resolve().parent
WARM_BELOW, TINY_BELOW, HUGE_FROM = 4 << 20, 64 << 10, 2 << 30
DEPTH = 100  # calls in a queue
WAKE_US = 1000  # of calls before those that are timed
CACHED, MOST_CACHED = 1 << 20, 8 << 20  # bytes of a problem in the caches: as wanted, and of one image that is larger
MOST_SETS = 1024
# How far a peer's result may be from ours, relative to the largest: halves are summed in halves there.
TOLERANCE = {'f32': 1e-5, 'f16': 0.02, 'bf16': 0.1, 'f64': 1e-12}


# Where `make torch` puts the newest PyTorch.
NEWEST = pathlib.Path(__file__).resolve().parent.parent / 'build/torch'


def find_torch():
    """PyTorch, if need be by starting over in another Python: that of `make torch` first; None when none has it."""
    if (NEWEST / 'bin/python').exists() and pathlib.Path(sys.prefix).resolve() != NEWEST.resolve():
        os.execv(NEWEST / 'bin/python', [str(NEWEST / 'bin/python'), *sys.argv])
    if importlib.util.find_spec('torch'):
        import torch
        return torch
    probe = 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)'
    for python in ('/usr/bin/python3', shutil.which('python3')):
        if python and subprocess.run([python, '-c', probe], check=False).returncode == 0:
            os.execv(python, [python, *sys.argv])
    return None


def command(problem=None):
    """What repeats this run, or one problem of it; where its files went does not matter."""
    left_out = ['--build', '--csv', '--svg', '--markdown']
    left_out += ['--random', '--seed', '--operators', '--rows', '--filter'] if problem else []
    alone = {'--paired'} if problem else set()
    words, given = iter(sys.argv[1:]), []
    for word in words:
        if word in left_out:
            next(words, None)
        elif word.split('=')[0] not in left_out and word not in alone:
            given.append(word)
    text = shlex.join(given + (['--problem', problem] if problem else []))
    plain = not set(text) & set('"$`\\')
    return 'make bench' + (f' ARGS="{text}"' if text and plain else f' ARGS={shlex.quote(text)}' if text else '')


# --- the machine --------------------------------------------------------------------------------------

def cpu_model():
    try:
        for line in pathlib.Path('/proc/cpuinfo').read_text(encoding='utf-8').splitlines():
            if line.startswith('model name'):
                return line.split(':', 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def last_level_cache():
    """Bytes; 32 MB where the system does not say."""
    sizes = [0]
    for file in pathlib.Path('/sys/devices/system/cpu/cpu0/cache').glob('index*/size'):
        number = file.read_text(encoding='utf-8').strip()
        sizes.append(int(number.rstrip('KMG')) << {'K': 10, 'M': 20, 'G': 30}.get(number[-1], 0))
    return max(sizes) or 32 << 20


def available_memory():
    for line in pathlib.Path('/proc/meminfo').read_text(encoding='utf-8').splitlines():
        if line.startswith('MemAvailable'):
            return int(line.split()[1]) << 10
    return 0


def disturbance():
    """How often threads of this process lost their CPU to others, and how long they waited for one, in ns."""
    waited = 0
    for file in pathlib.Path('/proc/self/task').glob('*/schedstat'):
        try:
            waited += int(file.read_text(encoding='utf-8').split()[1])
        except OSError:  # the thread has ended
            pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw, waited


def others_seconds():
    """CPU time that all other processes have used, in steps of 10 ms."""
    ticks = pathlib.Path('/proc/stat').read_text(encoding='utf-8').split('\n', 1)[0].split()[1:9]
    idle = int(ticks[3]) + int(ticks[4])
    return (sum(map(int, ticks)) - idle) / os.sysconf('SC_CLK_TCK') - time.process_time()


# --- measuring ----------------------------------------------------------------------------------------

class Bench:
    columns = report.CPU_PEERS

    def __init__(self, options, torch):
        self.options, self.torch, self.notes, self.progress = options, torch, [], report.Progress()
        self.remarks = {}  # forms of a peer, and the rows in which they were its fastest
        self.library = ctypes.CDLL(str((options.build / 'lib64/libpoolgrad.so').resolve()))
        self.native = contestants.Native(options.build / 'bench')
        self.cold_bytes = 3 * last_level_cache()
        self.onednn = None
        if 'onednn' in options.peers:
            try:
                self.onednn = contestants.OneDnn.library(options.build / 'bench')
            except OSError:
                self.notes.append('oneDNN is left out: not installed (Debian: libdnnl-dev), or built without it.')
        if 'torch' in options.peers and torch is None:
            self.notes.append('PyTorch is left out: no Python here has it (`make torch`, or python3-torch of Debian).')

    def versions(self):
        self.library.poolgrad_version.restype = ctypes.c_char_p
        text = f'poolgrad {self.library.poolgrad_version().decode()}'
        if hasattr(self.library, 'poolgrad_isa'):
            self.library.poolgrad_isa.restype = ctypes.c_char_p
            text += f' ({self.library.poolgrad_isa().decode()})'
        if self.torch:
            text += f', PyTorch {self.torch.__version__}'
        if self.onednn:
            text += f', oneDNN {self.onednn.onednn_version().decode()}'
        return text

    def header(self):
        threads = self.options.threads
        return [f'- {self.versions()}',
                f'- {cpu_model()}, {os.cpu_count()} CPUs, last-level cache {last_level_cache() >> 20} MB; '
                f'{threads} thread{"s" if threads > 1 else ""}',
                f'- {datetime.date.today()}, load {os.getloadavg()[0]:.1f} at the start']

    def peers(self, row):
        """Those that can compute the row."""
        found = []
        makers = [('PyTorch', self.torch, lambda: contestants.torch_forms(self.torch, row)),
                  ('oneDNN', self.onednn, lambda: [contestants.OneDnn(self.onednn, row)])]
        for name, there, make in makers:
            try:
                found += [(name, peer) for peer in make()] if there else []
            except contestants.Unable:
                pass  # the column stays empty
        return found

    def check(self, name, row, ours, peers):
        """Says when a cell is not written, since the figures then mean nothing. The peers that are of one mind with
        us: what takes how long to compute something else is no comparison."""
        row.poison(0)
        ours.call(0, 1)
        left = row.so.bench_unwritten(row.handle, 0)
        if left:
            self.notes.append(f'{name}: {left} elements of {row.facts.result_name} were not written.')
        row.so.bench_keep(row.handle, 0)
        kind, agreeing = row.facts.kind, []
        for label, peer in peers:
            difference = self.difference(row, peer)
            for other in peer.otherwise() if difference > TOLERANCE[kind] else []:
                peer, difference = other, self.difference(row, other)
            if difference <= TOLERANCE[kind]:
                agreeing.append((label, peer))
            else:
                self.notes.append(report.disagreement(name, peer.name, difference))
        return agreeing

    def difference(self, row, peer):
        """Between its result and ours, which was kept, relative to the largest value."""
        row.poison(0)
        peer.call(0, 1)
        facts = row.facts
        if peer.name == 'oneDNN' and facts.max and not facts.forward and facts.kind != 'f32':
            return 0  # its forward saw rounded data, with ties
        return row.so.bench_difference(row.handle, 0)

    def sample(self, row, contestant, calls, warm, before):
        """Microseconds per call, and whether no other process was in the way. `before` calls come first, in the same
        buffers or, cold, in those of the last sample: looking for disturbances took long enough for threads to go to
        sleep, and in a program that computes they would be awake. Long calls need none."""
        last, a_set = (0, 0) if warm else (row.turn, row.next_set())
        switches, waited = disturbance()
        start = time.perf_counter()
        if before:
            contestant.call(last, before)
        us = contestant.call(a_set, calls)
        took = time.perf_counter() - start
        switches_after, waited_after = disturbance()
        for used in () if warm else (last, a_set) if before else (a_set,):
            row.poison(used)
        return us, switches_after == switches and waited_after - waited < 2e7 * took  # 2 % of it, in ns

    def block(self, row, contestant, warm):
        """Quiet and disturbed times of one contestant. Disturbed calls are repeated, up to a limit."""
        least, most, budget, tries = (2, 4, 1e5, 2) if self.options.quick else (3, 8, 4e5, 4)
        time.sleep(0.005)  # for the other's threads to go to sleep
        calls, before = 1, 1
        first, _ = self.sample(row, contestant, calls, warm, before)
        before = min(100, int(WAKE_US / first / getattr(contestant, 'depth', 1)))
        if warm:  # batches of about a millisecond
            calls = max(1, min(1000, int(1000 / first / getattr(contestant, 'depth', 1))))
        first, _ = self.sample(row, contestant, calls, warm, before)
        count = max(least, min(most, int(budget / (first * calls))))
        quiet, disturbed = [], []
        while len(quiet) < count and len(quiet) + len(disturbed) < tries * count:
            us, good = self.sample(row, contestant, calls, warm, before)
            (quiet if good else disturbed).append(us)
        return quiet, disturbed

    def measure(self, name, row, everyone, warm):
        """The times of each, and the names of those that other processes never left alone. Contestants take turns
        in blocks, so that changes of the machine meet all."""
        rounds, patience = (3, 1) if self.options.quick else (5, 8)
        quiet, disturbed = ({contestant: [] for contestant in everyone} for _ in range(2))

        def turn(contestant, what):
            self.progress(f'{name}: {contestant.name}, {what}')
            good, bad = self.block(row, contestant, warm)
            quiet[contestant] += good
            disturbed[contestant] += bad

        start, others = time.monotonic(), others_seconds()
        for number in range(rounds):
            for contestant in everyone:
                turn(contestant, f'round {number + 1} of {rounds}')
        if others_seconds() - others < 0.02 + 0.05 * (time.monotonic() - start):
            # Nobody else was there: a program's own threads waited for each other, and that counts.
            return {c: quiet[c] + disturbed[c] for c in everyone}, set()
        noisy = [contestant for contestant in everyone if len(quiet[contestant]) < 3]
        for _ in range(patience):
            for contestant in noisy:
                time.sleep(0.5)
                turn(contestant, 'waiting for a quiet moment')
            noisy = [contestant for contestant in noisy if len(quiet[contestant]) < 3]
        return ({c: quiet[c] + disturbed[c] if c in noisy else quiet[c] for c in everyone},
                {contestant.name for contestant in noisy})

    def result(self, name, line, row, kind, ours, peers):
        tiny = kind in ('lone', 'queued')
        twins = [] if tiny else contestants.twins(row, row.facts.floor < WARM_BELOW)
        times, noisy = self.measure(f'{name} {kind}', row, [ours, *twins, *(peer for _, peer in peers)], kind != 'cold')
        median = {contestant: statistics.median(values) for contestant, values in times.items()}
        limit = min(twins, key=median.get, default=None)
        noisy -= {twin.name for twin in twins if twin is not limit}
        fastest = {}
        for label, peer in peers:
            fastest[label] = min(peer, fastest.get(label, peer), key=median.get)
        for peer in fastest.values():
            if peer.name in report.REMARKS:
                self.remarks.setdefault(peer.name, []).append(name)
        peers_us = {label: median[peer] for label, peer in fastest.items()}
        quartiles = statistics.quantiles(times[ours], n=4)
        return report.Result(name, line, kind, row.facts.floor, median[ours], median.get(limit), peers_us,
                             len(times[ours]), quartiles[2] / quartiles[0], noisy, method=row.methods[0])

    def run_methods(self, name, line):
        """The row by the method that is used, and by the next one that fits: names and times."""
        facts = self.native.facts(line)
        row = contestants.Row(self.native, line, self.sets_of(facts), self.options.threads, False)
        try:
            everyone = [contestants.Ours(row, 1, i) for i in range(min(2, len(row.methods)))]
            times, _ = self.measure(name, row, everyone, facts.floor < TINY_BELOW)
            return [(row.methods[ours.method], statistics.median(times[ours])) for ours in everyone]
        finally:
            row.close()

    def prepare_bounds(self, rows):
        """They are measured one by one."""

    def bound(self, cold):
        """What share computing alone allows: the same problem with so few planes that it stays in the caches, warm, and
        its time multiplied to the bytes of the whole. What memory does is not in it, so no share of that method can be
        higher unless memory stores zeros faster than other numbers."""
        facts = self.native.facts(cold.line)
        last = distribution.layout(cold) == 'channels last'
        line = draw.fewer(cold.line, CACHED * facts.into[0] * facts.into[1] // facts.floor, last)
        facts = self.native.facts(line)
        if facts.floor > MOST_CACHED or not cold.limit_us:
            return []
        row = contestants.Row(self.native, line, 1, self.options.threads, False)
        try:
            ours = contestants.Ours(row)
            times, noisy = self.measure(f'{cold.name} in the caches', row, [ours], True)
            us = max(statistics.median(times[ours]) * cold.floor / facts.floor, cold.limit_us)
            noisy |= {name for name in cold.noisy if name.startswith('twin')}
            return [report.Result(cold.name, line, 'bound', cold.floor, us, cold.limit_us, noisy=noisy,
                                  method=row.methods[0])]
        finally:
            row.close()

    def sets_of(self, facts):
        if facts.floor >= HUGE_FROM:
            return 1
        return min(MOST_SETS, max(2, -(-self.cold_bytes // facts.floor)))

    def run_row(self, name, line, alone=False):
        """The results of one row: cold, and warm too when it is small; lone and queued when it is tiny. alone: without
        peers, and cold only."""
        facts = self.native.facts(line)
        tiny, huge, sets = facts.floor < TINY_BELOW, facts.floor >= HUGE_FROM, self.sets_of(facts)
        # Peers have buffers of their own; a huge row leaves no room for them.
        needed = sets * facts.floor + (0 if huge else 2 * (2 * facts.read_bytes + facts.write_bytes))
        if needed > 0.8 * available_memory():
            self.notes.append(f'{name} is left out: {needed >> 20} MB are needed, '
                              f'{available_memory() >> 20} MB are free.')
            return []
        self.progress(f'{name}: preparing')
        row, peers = None, []
        try:
            row = contestants.Row(self.native, line, 1 if tiny else sets, self.options.threads, not huge)
            ours = contestants.Ours(row)
            peers = [] if huge or alone else self.peers(row)
            agreeing = self.check(name, row, ours, peers)
            if not tiny:
                results = [self.result(name, line, row, 'cold', ours, agreeing)]
                if facts.floor < WARM_BELOW and not alone:
                    results.append(self.result(name, line, row, 'warm', ours, agreeing))
                return results
            lone = self.result(name, line, row, 'lone', ours, agreeing)
            queued = self.result(name, line, row, 'queued', contestants.Ours(row, DEPTH), [])
            queued.peers_us = lone.peers_us  # a peer's call returns when it is done: it has no queue
            queued.noisy |= lone.noisy - {ours.name}
            queued.counted = False
            return [lone, queued]
        except contestants.Unable as error:
            self.notes.append(f'{name} failed: {error}')
            return []
        finally:
            for _, peer in peers:
                if peer.name == 'oneDNN':
                    peer.close()
            if row:
                row.close()


def read_rows(path):
    rows = []
    for line in path.read_text(encoding='utf-8').splitlines():
        if line.strip() and not line.startswith('#'):
            name, problem = line.split(':', 1)
            rows.append((name.strip(), problem.strip()))
    return rows


def seeds(text):
    try:
        return draw.seeds_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f'{text}: {error}') from error


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    parser.add_argument('--build', type=pathlib.Path, default=HERE.parent / 'build/release', help='the build folder')
    parser.add_argument('--device', choices=('cpu', 'cuda'), default='cpu')
    parser.add_argument('--filter', default='',
                        help='only rows whose name has one of these texts, comma separated; -TEXT leaves rows out')
    parser.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument('--isa', help='avx512, avx2 or scalar (POOLGRAD_ISA)')
    parser.add_argument('--methods', action='store_true', help='each row by the method used, and by the next that fits')
    parser.add_argument('--quick', action='store_true', help='fewer repetitions')
    parser.add_argument('--huge', action='store_true', help='the rows beyond 2 GB as well (always on a GPU)')
    parser.add_argument('--peers', default='torch,onednn,cudnn', help='those of torch, onednn and cudnn, or none')
    which = parser.add_mutually_exclusive_group()
    which.add_argument('--rows', type=pathlib.Path, help='another file than rows.txt or rows_cuda.txt')
    which.add_argument('--random', type=int, metavar='N', help='N random problems, and how their times are distributed')
    which.add_argument('--problem', metavar='LINE', help='this problem alone, in the language of tests/problem.h')
    parser.add_argument('--seed', type=seeds, default=[1], metavar='SEEDS',
                        help='of the random problems; N of each seed of a list, such as 1,2,3')
    parser.add_argument('--operators', choices=draw.GROUPS, default='all',
                        help='of the random problems; backward5: the five first ones, as seeds drew them at first')
    parser.add_argument('--paired', action='store_true',
                        help='random problems in 16-bit types also in f32, those with channels last also in planes, and '
                             'on the CPU all of them also in the caches')
    parser.add_argument('--csv', metavar='FILE')
    parser.add_argument('--svg', metavar='FILE', help='bars; of random problems a curve')
    parser.add_argument('--markdown', metavar='FILE', help='put the table between the marks of this page')
    options = parser.parse_args()
    options.more_rows = HERE / 'rows_methods_cuda.txt' if options.methods and options.device == 'cuda' and not options.rows else None
    options.rows = options.rows or HERE / ('rows_cuda.txt' if options.device == 'cuda' else 'rows.txt')
    if options.random is not None and options.random < 1:
        parser.error('--random: at least 1')
    if options.operators != 'all' and not options.random:
        parser.error('--operators: of random problems')
    if options.paired and not options.random:
        parser.error('--paired: of random problems')
    if options.markdown and options.problem:
        parser.error('--markdown: the page has rows of files or random problems')
    return options


def compare_methods(bench, rows):
    """A line per row: the method that is used, and how much it gains over the next one that could."""
    heads = ('row', 'method', 'us', 'next', 'us', 'gain')
    print('| {:24} | {:13} | {:>10} | {:13} | {:>10} | {:>6} |'.format(*heads))
    print('|' + '-' * 26 + '|' + '-' * 15 + '|' + '-' * 11 + ':|' + '-' * 15 + '|' + '-' * 11 + ':|' + '-' * 7 + ':|')
    for name, line in rows:
        (method, us), *others = bench.run_methods(name, line)
        other, other_us = others[0] if others else ('-', None)
        print(f'| {name:24} | {method:13} | {us:10.2f} | {other:13} | {report.show(other_us, ".2f"):>10} | '
              f'{report.show(other_us / us if other_us else None, ".2f"):>6} |', flush=True)


def is_chosen(options, name):
    words = [word for word in options.filter.split(',') if word]
    wanted = [word for word in words if not word.startswith('-')]
    unwanted = [word[1:] for word in words if word.startswith('-')]
    return (not wanted or any(word in name for word in wanted)) and not any(word in name for word in unwanted)


def choose_rows(options, bench):
    """Those that the options name and the machine can run."""
    if options.problem:
        rows = [('problem', options.problem)]
    elif options.random:
        rows = draw.rows_of_seeds(options.random, options.seed, options.device, options.operators)
    else:
        rows = read_rows(options.rows) + (read_rows(options.more_rows) if options.more_rows else [])
    chosen = [row for row in rows if is_chosen(options, row[0])]
    big = [name for name, line in chosen if bench.native.facts(line).floor >= HUGE_FROM]
    if big and not options.huge and options.device == 'cpu':
        chosen = [row for row in chosen if row[0] not in big]
        bench.notes.append(f'Left out without --huge: {", ".join(big)}.')
    return chosen


def drawn(options, rows):
    """The line of the header that says which random problems these are."""
    seed = 'each of the seeds' if len(options.seed) > 1 else 'seed'
    text = f'- {len(rows)} random problems: {options.random} of {seed} {", ".join(map(str, options.seed))}'
    text += f', operators {options.operators}' if options.operators != 'all' else ''
    return text + (f', those with {options.filter} in their names' if options.filter else '')


def has_latency(options):
    """Whether the latencies of the runtime are measured as well: with the usual rows, where the filter lets them."""
    return options.device == 'cpu' and not options.random and not options.problem and is_chosen(options, 'latency')


def run_pairs(bench, name, line):
    """The problem in another type or layout. Their results have kinds of their own, so that only pairs count them."""
    found = []
    for kind, other in draw.relatives(line):
        for result in bench.run_row(name, other, alone=True):
            result.kind = kind
            found.append(result)
    return found


def measure_rows(bench, rows, paired):
    """Their results, each printed when it is there."""
    results, columns = [], bench.columns
    if paired:
        bench.prepare_bounds(rows)
    print(report.table_head(columns), flush=True)
    for number, (name, line) in enumerate(rows, 1):
        bench.progress.where = f'[{number}/{len(rows)}]'
        found = bench.run_row(name, line)
        if paired and found:
            found += bench.bound(found[0])
            found += run_pairs(bench, name, line)
        for result in found:
            bench.progress()
            print(report.table_line(columns, report.cells(columns, result)), flush=True)
            results.append(result)
    bench.notes += report.remarks(bench.remarks)
    if any(result.noisy for result in results):
        bench.notes.append('~: other processes disturbed every measurement; not in the means.')
    return results


def write_files(options, bench, header, results):
    columns = bench.columns
    if options.csv:
        report.write_csv(options.csv, columns, results)
    if options.svg and options.random:
        curves.write_svg(options.svg, columns, [line[2:] for line in (*header[:2], header[-1])], results)
    elif options.svg:
        report.write_svg(options.svg, columns, '; '.join(line[2:] for line in header[:2]), results)
    if options.markdown:
        write = distribution.write_markdown if options.random else report.write_markdown
        write(options.markdown, columns, header, results, bench.notes)


def open_bench(options):
    torch = find_torch() if 'torch' in options.peers else None
    # Read when the library starts.
    os.environ['POOLGRAD_DEVICES'] = options.device
    os.environ['POOLGRAD_THREADS'] = str(options.threads)
    if options.isa:
        os.environ['POOLGRAD_ISA'] = options.isa
    if torch:
        torch.set_num_threads(options.threads)
    return (cuda.CudaBench if options.device == 'cuda' else Bench)(options, torch)


def main():
    options = parse()
    try:
        bench = open_bench(options)
        rows = choose_rows(options, bench)
    except (contestants.Unable, ValueError) as error:
        sys.exit(f'bench: {error}')
    latency = has_latency(options)
    if not rows and not latency:
        sys.exit(f'bench: no row has "{options.filter}" in its name')
    header = bench.header()
    if options.methods:
        print('\n'.join(header) + '\n')
        compare_methods(bench, rows)
        return 0
    header[-1] += f'; repeat with `{command()}`'
    header += [drawn(options, rows)] if options.random else []
    print('\n'.join(header), end='\n\n')
    results = measure_rows(bench, rows, options.paired)
    print('\n' + '\n'.join([*([] if options.random else report.summaries(bench.columns, results)), *bench.notes]))
    if options.random and results:
        print('\n' + '\n'.join(distribution.summary(bench.columns, results, command)))
    if latency:
        print(flush=True)
        subprocess.run([str(options.build / 'bench/bench_latency')], check=True)
    write_files(options, bench, header, results)
    return 0


if __name__ == '__main__':
    sys.exit(main())
