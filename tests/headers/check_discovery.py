#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every header where a person meets a status code says where the sentence that goes with it is found."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CODE = re.compile(r"\b(?:[12]07|507|1000|2000|[135]61)\d{2,3}\b")
NAMED = ("aclGetRecentErrMsg", "ASCEND_LOG_PRINT_TO_STDOUT=1")
UMBRELLAS = {"acl_base.h"}


def main():
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "include").rglob("*.h"))}
    met = {path: text for path, text in texts.items() if CODE.search(text) or path.name in UMBRELLAS}
    problems = [
        f"{path.relative_to(ROOT)} has codes and does not name {name}"
        for path, text in met.items()
        for name in NAMED
        if name not in text
    ]
    print("\n".join(problems) if problems else f"discovery ok: {len(met)} headers")
    return 1 if problems or not met else 0


sys.exit(main())
