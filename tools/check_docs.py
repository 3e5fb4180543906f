#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that docs/runtime.md lists every function the headers declare, once, and no other."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADERS = [
    *(path for folder in ("acl", "aclnn", "hccl") for path in (ROOT / "include" / folder).glob("*.h")),
    ROOT / "include/poolgrad.h",
]
DECLARATION = re.compile(r"\b((?:acl|Hccl|poolgrad_)\w+)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*(?:__attribute__[^;]*)?;")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|^\s*#(?:[^\n\\]|\\\n|\\.)*", re.S | re.M)
CELL = re.compile(r"^\|([^|]*)\|", re.M)  # a table row's first column


def declared():
    names = set()
    for header in HEADERS:
        text = COMMENT.sub("", header.read_text(encoding="utf-8"))
        names |= set(DECLARATION.findall(re.sub(r"typedef[^;{]*;", "", text)))
    return names


def listed():
    text = (ROOT / "docs/runtime.md").read_text(encoding="utf-8")
    return [name for cell in CELL.findall(text) for name in re.findall(r"`(\w+)`", cell)]


def main():
    headers, page = declared(), listed()
    problems = [f"docs/runtime.md does not list {name}" for name in sorted(headers - set(page))]
    problems += [f"docs/runtime.md lists {name}, which no header declares" for name in sorted(set(page) - headers)]
    problems += [f"docs/runtime.md lists {name} twice" for name in sorted(set(page)) if page.count(name) > 1]
    print("\n".join(problems) if problems else f"docs ok: {len(headers)} functions")
    return 1 if problems or not headers else 0


sys.exit(main())
