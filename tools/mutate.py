#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mutate.py: plants faults in the library, one at a time, and says which of them the tests notice.

    tools/mutate.py [--count 200] [--seed 1] [--only src/ops]... [--jobs N]     all here
    tools/mutate.py --prepare DIR [...]     compiles everything into DIR, and packs it into DIR.tar.xz
    tools/mutate.py --run DIR|DIR.tar.xz [--jobs N]     runs what was prepared; needs Python and nothing else

Test programs are linked to the library as shared objects: one with the methods of each instruction set
(src/cpu/kernels), one with the rest. A fault costs the compilation of the files that contain it and a link of those
objects.

A fault in src/cpu/kernels is planted in every variant that is compiled here, all instruction sets and element types,
and the tests of methods run on one set after the other. One variant would not give a true answer: a fault may show only
with 16 lanes, or only where elements are rounded, and CI tests them all. Nor is one much faster: a file of methods is
compiled in less than half a second, so all its variants cost four, and most faults are caught on the first set.

As CI does, faults are also looked for with ThreadSanitizer, if they are removed locks and the like, and with
AddressSanitizer, if nothing else has caught them. A fault is caught when a test program fails, crashes or takes far
longer than without it.

The kinds of faults, and those known to be none, are in tools/mutations.py. The table of results is results.tsv in the
folder; what is in it already is not run again.
"""
import argparse
import collections
import concurrent.futures
import json
import lzma
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

import mutations

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENOUGH = 95.0  # percent

# What is planted where: the share of each group of files.
GROUPS = {
    "ops": (24, "src/ops/*.c"),
    "kernels": (10, "src/kernels/*.[ch]"),
    "methods": (20, "src/cpu/kernels/*.[ch]"),
    "cpu": (10, "src/cpu/*.c"),
    "aclnn": (10, "src/aclnn/*.c"),
    "runtime": (20, "src/runtime/*.c"),
    "core": (10, "src/core/*.c"),
}
SETS = ("scalar", "avx2", "avx512", "neon")  # in the order in which methods are tried: plain C compiles fastest
RACY = {"removed lock", "dropped store"}  # faults that only ThreadSanitizer may see

STRESS = ["--seconds", "8", "--seed", "1"]
# What is run on each instruction set: methods are tried as tests/isa/check_isa.sh does it, and their choice is checked.
METHOD_TESTS = [
    ("test_choice", {}), ("test_fallback", {}), ("test_ops_tails", {}), ("test_ops_tails", {"POOLGRAD_STREAM_BYTES": "1"}),
    ("test_ops_problems", {}), ("test_ops_problems", {"POOLGRAD_STREAM_BYTES": "1"}),
    ("test_ops_strays", {}), ("test_ops_indices", {}), ("test_ops_gradient", {}),
    ("test_ops_random random*", {"POOLGRAD_TEST_SECONDS": "2"}),
    ("test_ops_random random*", {"POOLGRAD_TEST_SECONDS": "1", "POOLGRAD_STREAM_BYTES": "1"}),
]


def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          **more)


def must(command, **more):
    done = run(command, **more)
    if done.returncode != 0:
        sys.exit(f"mutate: {shlex.join(map(str, command))} failed:\n{done.stdout[-4000:]}")
    return done.stdout


def part_of(name):
    """The shared object that an object is linked into: that of its instruction set, or the rest."""
    return name.split("@")[1] if "@" in name else "rest"


# --- building ---------------------------------------------------------------------------------------------------------

class Build:
    """The objects of the library and of the tests, with CMake's own flags for each of them, and what is linked of them.

    An object is named by its file; those of src/cpu/kernels also by their variant: max_pairs.c@avx2@f16."""

    def __init__(self, folder, flags, sets):
        """sets: the instruction sets whose methods have these flags, and faults."""
        self.folder, self.flags, self.sets = pathlib.Path(folder), flags, sets
        self.included, self.asking = {}, threading.Lock()  # what each object's file includes
        self.launcher = ["ccache"] if shutil.which("ccache") else []
        must(["cmake", "-S", ROOT, "-B", self.folder / "cmake", "-DCMAKE_BUILD_TYPE=None", "-DPOOLGRAD_CUDA=OFF",
              "-DPOOLGRAD_WERROR=OFF", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_C_FLAGS=-Og"])
        self.commands = {}
        for entry in json.loads((self.folder / "cmake/compile_commands.json").read_text()):
            name = self.name_of(entry)
            if re.match(r"src/|tests/(\w+\.c$|second_backend/|stress/)", name) and name not in self.commands:
                self.commands[name] = self.arguments(entry["command"], name)
        self.library = sorted(f for f in self.commands if f.startswith("src/"))
        self.tests = sorted(f for f in self.commands if re.match(r"tests/test_\w+\.c$", f))
        self.shared = sorted(f for f in self.commands if re.match(r"tests/(?!test_)\w+\.c$", f))
        self.stress = [f for f in self.commands if f.startswith("tests/stress/")]
        self.plugins = [f for f in self.commands if f == "tests/second_backend/second_backend.c"]
        listed = re.search(r"set\(requests([^)]*)\)", (ROOT / "tests/CMakeLists.txt").read_text())
        self.wraps = [f"-Wl,--wrap={name}" for name in listed.group(1).split()] if listed else []

    @staticmethod
    def name_of(entry):
        macros = dict(re.findall(r"-DPG_(ISA|ELEMENT)=(\w+)", entry["command"]))
        return "@".join([os.path.relpath(entry["file"], ROOT), *(macros[m] for m in ("ISA", "ELEMENT") if m in macros)])

    def arguments(self, command, name):
        words = [w for w in shlex.split(command) if not w.startswith("-DPROBLEMS=") and w != "ccache"]
        words = words[:words.index("-o")]
        dependencies = ("-MT", "-MF")
        words = [w for i, w in enumerate(words) if w not in ("-MD", *dependencies) and words[i - 1] not in dependencies]
        # Names stay visible from one shared object to the next, and functions are still inlined.
        words += ["-fvisibility=default", "-fno-semantic-interposition", "-fPIC", "-w", '-DPROBLEMS="problems"']
        return words + (self.flags if self.has_faults(name) else [])

    def has_faults(self, name):
        return part_of(name) in ("rest", *self.sets)

    def object_of(self, name):
        return self.folder / (name.replace("/", "_") + ".o")

    def compile(self, name, out, overlay=None):
        """With the overlay's files instead of those of src/, if there is one."""
        file = name.split("@")[0]
        source = ROOT / file
        words = list(self.commands[name])
        if overlay:
            words[1:1] = [f"-I{overlay}/src", f"-fmacro-prefix-map={overlay}/="]
            if (overlay / file).exists():
                source = overlay / file
        return run(self.launcher + words + [f"-fmacro-prefix-map={ROOT}/=", "-c", source, "-o", out])

    def compile_all(self, jobs):
        self.folder.mkdir(parents=True, exist_ok=True)
        must(["ar", "x", "--output", self.folder, must(["gcc", "-print-libgcc-file-name"]).strip(), "cpuinfo.o"])
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for name, done in zip(self.commands, pool.map(lambda f: self.compile(f, self.object_of(f)), self.commands)):
                if done.returncode != 0:
                    sys.exit(f"mutate: {name} does not compile:\n{done.stdout[-4000:]}")

    def link(self, out, objects, more=()):
        out.parent.mkdir(parents=True, exist_ok=True)
        must(["gcc", "-shared", "-s", *self.flags, f"-Wl,-soname,{out.name}", "-Wl,-z,nodelete", *more, *objects,
              "-o", out, "-lpthread", "-ldl", "-lm", "-lc"])

    def link_library(self, to, replaced=None):
        """Shared objects in to/, and to/faults/ for the tests that refuse what the library asks for: all of them, or
        those that have a replaced object."""
        parts = collections.defaultdict(list)
        for name in self.library:
            parts[part_of(name)].append((replaced or {}).get(name, self.object_of(name)))
        for part in sorted({part_of(name) for name in replaced or self.library}):
            self.link(to / f"libpg_{part}.so", parts[part])
            if part == "rest" and not self.flags:
                # Of libgcc only this: it has a __wrap_pthread_create of its own.
                objects = parts[part] + [self.folder / "cpuinfo.o"]
                self.link(to / "faults/libpg_rest.so", objects, [*self.wraps, "-nodefaultlibs"])

    def uses_faults(self, test):
        return re.search(r'^#include "fault(s|_scenario)\.h"', (ROOT / test).read_text(), re.M) is not None

    def link_tests(self, to, libraries, wanted):
        """Programs in to/, and to/faults/ those that refuse what the library asks for."""
        (to / "faults").mkdir(parents=True, exist_ok=True)
        archive = self.folder / "libshared.a"
        archive.unlink(missing_ok=True)
        must(["ar", "rcs", archive, *(self.object_of(f) for f in self.shared)])
        for plugin in self.plugins:
            self.link(to / f"lib{pathlib.Path(plugin).stem}.so", [self.object_of(plugin)])
        for test in wanted:
            faults = self.uses_faults(test)
            inner = "faults" if faults else ""
            self.link_program(to / inner / pathlib.Path(test).stem, [self.object_of(test), archive],
                              [libraries / inner, libraries], self.wraps if faults else [])
        self.link_program(to / "stress", [*map(self.object_of, self.stress), archive], [libraries])

    def link_program(self, out, objects, libraries, more=()):
        parts = sorted({f"-lpg_{part_of(name)}" for name in self.library})
        must(["gcc", "-s", *self.flags, *objects, *more, *(f"-L{folder}" for folder in libraries),
              "-Wl,--no-as-needed,--export-dynamic", *parts, "-lcmocka", "-lpthread", "-ldl", "-lm", "-o", out])

    def users_of(self, file):
        """The objects of the library that are compiled anew when this file changes."""
        if file.endswith(".c"):
            return [name for name in self.library if name.split("@")[0] == file and self.has_faults(name)]
        with self.asking:
            if not self.included:
                self.included = {name: run([*self.commands[name], "-MM", ROOT / name.split("@")[0]]).stdout
                                 for name in self.library if self.has_faults(name)}
        return [name for name, files in self.included.items() if f"/{file}" in files]


def copy_needed(program, to):
    """cmocka and the sanitizer's runtime, which the other machine may lack."""
    for name, path in re.findall(r"(\S+) => (/\S+)", must(["ldd", program])):
        if re.match(r"lib(cmocka|tsan|asan|ubsan)\.", name):
            shutil.copy(path, to / name)


# --- choosing faults --------------------------------------------------------------------------------------------------

def in_turn(faults, chance):
    """Faults of a group in random order, each kind of fault in its turn."""
    kinds = collections.defaultdict(list)
    for fault in faults:
        kinds[fault.operator].append(fault)
    for kind in kinds.values():
        chance.shuffle(kind)
    while kinds:
        for name in chance.sample(sorted(kinds), len(kinds)):
            yield kinds[name].pop()
            if not kinds[name]:
                del kinds[name]


def chosen(args):
    """Pairs of a group's quota and its faults."""
    chance = random.Random(args.seed)
    groups = []
    for name, (share, pattern) in GROUPS.items():
        faults = [f for path in sorted(ROOT.glob(pattern))
                  for f in mutations.faults(str(path.relative_to(ROOT)), path.read_text())
                  if f.file.startswith(tuple(args.only or [""])) and mutations.equivalent(f) is None]
        if faults:
            groups.append((share, list(in_turn(faults, chance))))
    whole = sum(share for share, _ in groups)
    return [(round(args.count * share / whole), faults) for share, faults in groups]


# --- preparing --------------------------------------------------------------------------------------------------------

class Planter:
    def __init__(self, to, build, sanitized):
        self.to, self.build, self.sanitized = to, build, sanitized

    def plant(self, fault, number):
        """A row of the plan, or None: the fault does not compile, or changes nothing that is executed."""
        racy = fault.operator in RACY and fault.file.endswith(".c")
        plain = self.objects(self.build, fault)
        if not plain:
            return None
        folder = self.to / f"mutants/{number:04}"
        shutil.rmtree(folder, ignore_errors=True)
        self.build.link_library(folder, plain)
        for name, build in self.sanitized.items():
            if name != "tsan" or racy:
                objects = self.objects(build, fault)
                if objects:
                    build.link_library(folder / name, objects)
        row = {k: getattr(fault, k) for k in ("file", "line", "function", "operator", "before", "after")}
        return {"id": number, "racy": racy, "parts": sorted({part_of(name) for name in plain}), **row}

    def objects(self, build, fault):
        """Those that the fault changes, by name; none if it does not compile."""
        with tempfile.TemporaryDirectory(dir=build.folder) as overlay:
            overlay = pathlib.Path(overlay)
            changed = overlay / fault.file
            changed.parent.mkdir(parents=True)
            changed.write_text(fault.apply((ROOT / fault.file).read_text()))
            objects = {}
            for user in build.users_of(fault.file):
                kept = build.folder / f"{threading.get_ident()}_{user.replace('/', '_')}.o"
                if build.compile(user, kept, overlay).returncode != 0:
                    return {}
                if kept.read_bytes() != build.object_of(user).read_bytes():
                    objects[user] = kept
            return objects


def prepare(args, to):
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    work = ROOT / "build/mutate"
    groups = chosen(args)
    build = Build(work / "plain", [], SETS)
    sanitized = {"asan": Build(work / "asan", ["-fsanitize=address"], SETS[:1])}
    if any(fault.operator in RACY for _, faults in groups for fault in faults):
        sanitized["tsan"] = Build(work / "tsan", ["-fsanitize=thread"], [])
    for name, b in (("", build), *sanitized.items()):
        b.compile_all(args.jobs)
        b.link_library(to / "lib" / name)
        # A privileged program may not look for libraries in a folder that a variable names.
        wanted = [t for t in b.tests if not re.search(r"_(cuda|privileged)", t) and
                  (b is build or not b.uses_faults(t)) and (name != "tsan" or not re.search(r"_(ops|check)", t))]
        b.link_tests(to / "tests" / name, to / "lib" / name, wanted)
        copy_needed(to / "tests" / name / "test_tensor", to / "lib")
    shutil.copytree(ROOT / "tests/problems", to / "problems")
    for script in ("mutate.py", "mutations.py"):
        shutil.copy(ROOT / "tools" / script, to)

    planter, plan, number = Planter(to, build, sanitized), [], 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for quota, faults in groups:
            found = 0
            while faults and found < quota:
                batch = [faults.pop(0) for _ in range(min(quota - found, len(faults)))]
                numbers = range(number, number + len(batch))
                number += len(batch)
                rows = [r for r in pool.map(planter.plant, batch, numbers) if r is not None]
                found += len(rows)
                plan += rows
            print(f"planted {len(plan)}", flush=True)
    (to / "plan.json").write_text(json.dumps(plan, indent=1))


def pack(folder):
    """One stream with a large window: one fault's library hardly differs from the next one's."""
    packed = folder.with_name(folder.name + ".tar.xz")
    filters = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 27}]
    with lzma.open(packed, "w", format=lzma.FORMAT_XZ, filters=filters) as stream, \
            tarfile.open(fileobj=stream, mode="w") as tar:
        tar.add(folder, arcname=folder.name)
    print(f"{packed}: {packed.stat().st_size / 2**20:.1f} MiB")


# --- running ----------------------------------------------------------------------------------------------------------

# Methods, and what they are made of: what a test of anything else cannot see.
COMPUTES = re.compile(r"src/(kernels/|cpu/(kernels/|box|fill|max_plane|method|nontemporal))")
COMPUTING = re.compile(r"(asan/)?test_(facts|tiling|methods|nontemporal)|test_(ops_|runtime_(stops|init|copy))")


def is_wanted(test, mutant):
    """Can this test see the fault? The tests of methods run on each instruction set that has it."""
    isa = re.search(f"(?:^|/)({'|'.join(SETS)})/", test)
    if test.startswith("tsan/"):
        return mutant["racy"]
    if not COMPUTES.match(mutant["file"]):
        return isa is None
    if isa:
        return isa.group(1) in mutant["parts"] or "rest" in mutant["parts"]
    return COMPUTING.match(test) is not None and test not in {name.split()[0] for name, _ in METHOD_TESTS}


class Runner:
    def __init__(self, folder):
        self.folder = folder
        self.seconds = {}  # of each test without a fault
        self.kills = collections.Counter()  # (file, test): what caught faults of a file is tried first with the next
        self.lock = threading.Lock()
        self.apart = ["setarch", "-R"] if shutil.which("setarch") else []

    def tests(self):
        """All: (name shown, command, environment)."""
        programs = self.folder / "tests"
        sets = [isa for isa in SETS if (self.folder / f"lib/libpg_{isa}.so").exists()]
        plain = [(str(p.relative_to(programs)), [p], {}) for p in sorted(programs.glob("**/test_*"))]
        plain += [(str(p.relative_to(programs)), [p, *STRESS], {}) for p in sorted(programs.glob("**/stress"))]
        methods = [(f"{checker}{isa}/{name}" + "".join(f" {v}" for v in more),
                    [programs / checker / name.split()[0], *name.split()[1:]], {"POOLGRAD_ISA": isa, **more})
                   for checker in ("", "asan/") for isa in (SETS[:1] if checker else sets)
                   for name, more in METHOD_TESTS]
        return plain + methods

    def run(self, test, mutant=None, limit=600):
        """None when it passes, else what it did."""
        name, command, more = test
        folders = [self.folder / "lib"]
        if mutant is not None:
            folders.insert(0, self.folder / f"mutants/{mutant['id']:04}")
        inner = name.split("/")[0] if re.match("[at]san/|faults/", name) else ""
        path = [f for folder in folders for f in ([folder / inner] if inner else []) + [folder]]
        env = {k: v for k, v in os.environ.items() if not re.match("POOLGRAD_|ASCEND_", k)}
        env |= {"LD_LIBRARY_PATH": ":".join(map(str, path)), "TSAN_OPTIONS": "halt_on_error=1 exitcode=66",
                "ASAN_OPTIONS": "detect_leaks=1 alloc_dealloc_mismatch=0", **more}
        # Its address space must not be random: ThreadSanitizer cannot live in every place.
        command = (self.apart if inner == "tsan" else []) + command
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(command, cwd=self.folder, env=env, stdout=output, stderr=output,
                                       stdin=subprocess.DEVNULL, start_new_session=True)
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                status = "hang"
            try:
                os.killpg(process.pid, 9)  # and the children it may have left
            except ProcessLookupError:
                pass
            process.wait()
        if status in (0, 77):
            return None
        if status == "hang":
            return status
        return "race" if status == 66 else f"exit {status}" if status > 0 else f"signal {-status}"

    def measure(self, plan, jobs):
        """Every test of these faults without one, several at once as later; those that fail by themselves are left
        out."""
        def one(test):
            start = time.monotonic()
            failure = self.run(test)
            return test[0], time.monotonic() - start, failure
        tests = [t for t in self.tests() if any(is_wanted(t[0], mutant) for mutant in plan)]
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for name, seconds, failure in pool.map(one, tests):
                if failure is None:
                    self.seconds[name] = seconds
                else:
                    print(f"left out, fails without a fault: {name} ({failure})", flush=True)

    def order(self, mutant):
        """First what caught faults in this file before, then what has its name, then the quick ones; ASan at last."""
        words = set(re.split(r"[_/.]", mutant["file"])) - {"src", "c", "h", "pool", "backward"}
        def key(test):
            name = test[0]
            likeness = len(words & set(re.split(r"[_/]", name)))
            return (name.startswith("asan/"), -self.kills[mutant["file"], name],
                    -likeness if self.seconds[name] < 5 else 0, self.seconds[name])
        return sorted((t for t in self.tests() if t[0] in self.seconds and is_wanted(t[0], mutant)), key=key)

    def judge(self, mutant):
        start = time.monotonic()
        with self.lock:
            tests = self.order(mutant)
        for test in tests:
            failure = self.run(test, mutant, 30 + 10 * self.seconds[test[0]])
            if failure is not None:
                with self.lock:
                    self.kills[mutant["file"], test[0]] += 1
                return mutant, f"{test[0]} ({failure})", time.monotonic() - start
        return mutant, "", time.monotonic() - start


COLUMNS = ("id", "file", "line", "function", "operator", "before", "after", "caught by", "seconds")


def read_results(path):
    if not path.exists():
        return []
    return [dict(zip(COLUMNS, line.split("\t"))) for line in path.read_text().splitlines()[1:]]


def execute(folder, jobs):
    folder = folder.resolve()
    if folder.suffix == ".xz":
        with lzma.open(folder) as stream, tarfile.open(fileobj=stream) as tar:
            tar.extractall(folder.parent)
        folder = folder.with_name(folder.name[:-len(".tar.xz")])
    results = folder / "results.tsv"
    done = {row["id"] for row in read_results(results)}
    plan = [m for m in json.loads((folder / "plan.json").read_text()) if str(m["id"]) not in done]
    if not done:
        results.write_text("\t".join(COLUMNS) + "\n")
    runner = Runner(folder)
    if plan:
        runner.measure(plan, jobs)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool, results.open("a") as table:
        for future in concurrent.futures.as_completed([pool.submit(runner.judge, m) for m in plan]):
            mutant, caught, seconds = future.result()
            values = [mutant[c] for c in COLUMNS[:7]] + [caught, f"{seconds:.1f}"]
            table.write("\t".join(str(v).replace("\t", " ") for v in values) + "\n")
            table.flush()
            print(f"{mutant['file']}:{mutant['line']} {mutant['operator']}: {caught or 'SURVIVED'}", flush=True)
    return report(read_results(results))


def report(rows):
    survivors = [r for r in rows if not r["caught by"]]
    for what in ("operator", "file"):
        names = collections.Counter("/".join(r[what].split("/")[:2]) for r in rows)
        print(f"\n{what:<24}planted  caught")
        for name, planted in sorted(names.items()):
            print(f"{name:<24}{planted:>7}{planted - sum(r[what].startswith(name) for r in survivors):>8}")
    print("\nsurvivors")
    for r in sorted(survivors, key=lambda r: (r["file"], int(r["line"]))):
        print(f"  {r['file']}:{r['line']} {r['function']}, {r['operator']}:\n    {r['before']}\n    {r['after']}")
    share = 100 * (len(rows) - len(survivors)) / max(len(rows), 1)
    print(f"\n{len(rows) - len(survivors)} of {len(rows)} caught, {share:.1f} % (at least {ENOUGH:g})")
    return 0 if share >= ENOUGH else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="how many faults")
    parser.add_argument("--seed", type=int, default=1, help="another one plants other faults")
    parser.add_argument("--only", action="append", metavar="PATH", help="in files that begin so: src/ops; or so, ...")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at once")
    parser.add_argument("--prepare", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--run", type=pathlib.Path, metavar="DIR")
    args = parser.parse_args()
    if args.run:
        return execute(args.run, args.jobs)
    folder = args.prepare or ROOT / "build/mutate/planted"
    prepare(args, folder)
    if args.prepare:
        pack(folder)
        return 0
    return execute(folder, args.jobs)


if __name__ == "__main__":
    sys.exit(main())
