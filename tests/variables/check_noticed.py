#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that tools/check_variables.py notices: each row spoils one thing in a copy of the tree."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TABLE = "src/core/environment.c"
HEADER = "include/poolgrad.h"
PAGE = "docs/variables.md"
ROW = r"(?m)^\| `POOLGRAD_ISA`"

# file, what is replaced (a pattern, once), by what, what is said
SPOILT = [
    (TABLE, r"'neon' or 'scalar'", "'neon', 'sse2' or 'scalar'", "POOLGRAD_ISA has sse2, which the source does not"),
    (TABLE, r"'neon' or 'scalar'", "'neon'", "POOLGRAD_ISA has scalar, which"),
    (TABLE, r'(?s)\{"POOLGRAD_THREADS".*?\},', "", "src: POOLGRAD_THREADS is read and not in"),
    (TABLE, r"1 to 1024", "1 to 2048", "POOLGRAD_THREADS does not name the value 2048"),
    (TABLE, r"\"'warn'\"", "\"'off'\"", "POOLGRAD_INDEX_CHECK does not say that off is the default"),
    ("src/core/log.c", r"pg_getenv", "getenv", "src/core/log.c: asks the environment past pg_getenv"),
    ("src/core/log.c", r'"ASCEND_PROCESS_LOG_PATH"', '"ASCEND_LOG_PATH"', "nobody reads ASCEND_PROCESS_LOG_PATH"),
    (HEADER, r"\*   POOLGRAD_SOC ", "*   about it ", "include/poolgrad.h: POOLGRAD_SOC is missing"),
    (HEADER, r'"error" makes', "failing makes", "include/poolgrad.h: POOLGRAD_INDEX_CHECK does not name the value error"),
    (HEADER, r" \(the default\) writes", " writes", "POOLGRAD_INDEX_CHECK does not say that warn is the default"),
    (HEADER, r"Unset: 3\.", "Unset: 2.", "ASCEND_GLOBAL_LOG_LEVEL does not say that 3 is the default"),
    (PAGE, ROW, "| `POOLGRAD_ISAS`", "docs: POOLGRAD_ISA has no row"),
    (PAGE, r"`avx2`, `neon`", "`neon`", "docs/variables.md: POOLGRAD_ISA does not name the value avx2"),
    (PAGE, r"`avx2`, `neon`", "`avx2`, `sve`, `neon`", "docs/variables.md: POOLGRAD_ISA has sve, which"),
    (PAGE, r"`error` or `off` \| `warn`", "`error` or `off` | `off`", "does not say that warn is the default"),
    ("README.md", r"(?m)^\| `POOLGRAD_THREADS`.*\n", "", "README.md: POOLGRAD_THREADS has no row"),
]


def tree(folder):
    for name in ("src", "docs"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "include").mkdir()
    for name in (HEADER, "README.md"):
        shutil.copy(ROOT / name, folder / name)


def said(folder):
    check = [sys.executable, str(ROOT / "tools/check_variables.py"), str(folder)]
    done = subprocess.run(check, stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout if done.returncode else ""


def main():
    problems = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tree(folder)
        for file, pattern, by, expected in SPOILT:
            whole = (folder / file).read_text(encoding="utf-8")
            spoilt, count = re.subn(pattern, by, whole, count=1)
            (folder / file).write_text(spoilt, encoding="utf-8")
            answer = said(folder)
            if count != 1:
                problems.append(f"{file}: there is no {pattern}")
            elif expected not in answer:
                problems.append(f"{file}, {pattern} by {by!r}: no '{expected}' in: {answer}")
            (folder / file).write_text(whole, encoding="utf-8")
    print("\n".join(problems) if problems else f"noticed: {len(SPOILT)}")
    return 1 if problems else 0


sys.exit(main())
