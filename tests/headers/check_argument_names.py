#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that tests/runtime_functions.h, by which sentences are judged, calls arguments what the headers call them."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DECLARED = re.compile(r"\b(acl\w+)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*;")
ROW = re.compile(r'\bF\((acl\w+),\s*\(.*?\),\s*((?:"[^"]*"\s*)+),', re.S)


def declared():
    names = {}
    for header in [*(ROOT / "include/acl").glob("*.h"), *(ROOT / "include/aclnn").glob("*.h")]:
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.S)
        for function, arguments in DECLARED.findall(text):
            names[function] = set(re.findall(r"(\w+)(?:\[\w*\])?\s*(?:,|$)", arguments))
    return names


def main():
    headers = declared()
    table = (ROOT / "tests/runtime_functions.h").read_text(encoding="utf-8").replace("\\\n", " ")
    rows = ROW.findall(table)
    problems = [
        f"tests/runtime_functions.h: {function} has no argument {word}"
        for function, words in rows
        for word in re.findall(r"(\w+):\w+", words)
        if word not in headers.get(function, ())
    ]
    print("\n".join(problems) if problems else f"argument names ok: {len(rows)} functions")
    return 1 if problems or not rows else 0


sys.exit(main())
