#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coverage_report.py BUILD: reads gcc's counters of a build and says what the tests reached.

Lines and branches come from gcovr. A branch is one outcome of one conditional jump of the unoptimised program, so
`if (a && b)` has four. asserts are compiled out as they are in a release. Left out: branches that only an exception
takes (C has none) and those gcc makes on lines without code, such as a closing brace. What cannot be reached carries
GCOVR_EXCL_LINE or GCOVR_EXCL_BR_LINE and the reason in its comment.

Kernels come from gcov itself, since gcovr adds up what the instruction sets share: each function that src/cpu makes,
for each set and element type, must have run.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("core", "runtime", "aclnn", "ops", "cpu", "kernels")
DEMANDED = ("core", "runtime", "aclnn", "ops")  # the limits are for these together
LINES, BRANCHES = 97.0, 90.0

# Functions of src/cpu that cannot run, and why.
IDLE = {
    "scatter_in_place_f16": "sums are floats: only a gradInput of floats takes them itself",
    "scatter_in_place_bf16": "the same",
}


def read_gcovr(build):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "counts.json")
        subprocess.run(["gcovr", "--root", ROOT, "--filter", "src/", "--exclude-throw-branches",
                        "--exclude-unreachable-branches", "--json", out, build], check=True, cwd=ROOT)
        return json.loads(out.read_text())["files"]


class Count:
    def __init__(self):
        self.lines = self.reached_lines = self.branches = self.taken = 0

    def add(self, lines):
        for line in lines:
            self.lines += 1
            self.reached_lines += line["count"] > 0
            self.branches += len(line["branches"])
            self.taken += sum(branch["count"] > 0 for branch in line["branches"])

    def shares(self):
        return [100 * part / whole if whole else 100.0
                for part, whole in ((self.reached_lines, self.lines), (self.taken, self.branches))]


def row(name, count):
    lines, branches = count.shares()
    print(f"{name:<22}{count.reached_lines:>6} /{count.lines:>5} {lines:6.1f} %"
          f"{count.taken:>7} /{count.branches:>5} {branches:6.1f} %")


def runs(numbers):
    """3, 4, 5, 9 as "3-5, 9"."""
    found = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def say_what_is_left(files):
    print("\nlines not reached, and lines with a branch not taken, in " + ", ".join(DEMANDED))
    for file in files:
        if file["file"].split("/")[1] not in DEMANDED:
            continue
        counted = [line for line in file["lines"] if not line.get("gcovr/noncode")]
        lines = [line["line_number"] for line in counted if line["count"] == 0]
        branches = [line["line_number"] for line in counted
                    if line["count"] > 0 and any(branch["count"] == 0 for branch in line["branches"])]
        if lines:
            print(f"  {file['file']}: not reached {runs(lines)}")
        if branches:
            print(f"  {file['file']}: one way only {runs(branches)}")


def unreached_functions(build):
    """For each object of src/cpu, (functions, those that never ran)."""
    for counters in sorted(pathlib.Path(build).glob("**/poolgrad_objects.dir/src/cpu/*.gcno")):
        data = counters.with_suffix(".gcda")
        out = subprocess.run(["gcov", "--json-format", "--stdout", data if data.exists() else counters],
                             check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        functions = [(f["execution_count"] > 0, f"{pathlib.Path(file['file']).name}:{f['name']}")
                     for file in json.loads(out.splitlines()[0])["files"] if "/src/cpu/" in file["file"]
                     for f in file["functions"]]
        yield counters.name.split(".")[0], len(functions), [
            name for ran, name in functions if not ran and name.split(":")[1] not in IDLE]


def main():
    build = sys.argv[1]
    files = read_gcovr(build)
    counts = {folder: Count() for folder in FOLDERS}
    demanded = Count()
    for file in files:
        folder = file["file"].split("/")[1]
        lines = [line for line in file["lines"] if not line.get("gcovr/noncode")]
        counts[folder].add(lines)
        if folder in DEMANDED:
            demanded.add(lines)
    print(f"{'':<22}{'lines':>22}{'branches':>23}")
    for folder, count in counts.items():
        row("src/" + folder, count)
    row("+".join(DEMANDED), demanded)
    say_what_is_left(files)

    print("\nfunctions of src/cpu that never ran, by object; not counted are")
    for name, why in IDLE.items():
        print(f"  {name}: {why}")
    idle = 0
    for name, functions, never in unreached_functions(build):
        idle += len(never)
        print(f"  {name:<14}{functions:>4} functions" + (": " + ", ".join(never) if never else ""))

    lines, branches = demanded.shares()
    good = lines >= LINES and branches >= BRANCHES and idle == 0
    print(f"\n{'enough' if good else 'TOO LITTLE'}: {lines:.1f} % of lines (at least {LINES:g}), {branches:.1f} % of"
          f" branches (at least {BRANCHES:g}), {idle} functions of src/cpu that never ran (none)")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
