#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a function that the headers declare is called nowhere in tests/stress.

The operators' two phases are called there through the rows of tests/operator_call.c and tests/tensor_operators.c, all of
them.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def code(path):
    """The file without comments."""
    return re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)


def main():
    headers = [path for path in (ROOT / "include").rglob("*.h")]
    declared = set()
    for header in headers:
        declared |= set(re.findall(r"\b((?:acl|Hccl|poolgrad_)\w+)\(", code(header)))
    sources = "".join(code(path) for path in sorted((ROOT / "tests" / "stress").glob("*.c")))
    called = set(re.findall(r"\b((?:acl|Hccl|poolgrad_)\w+)\b", sources))
    if "operator_calls[" in sources:
        for second in re.findall(r"\bROW\(\w+,\s*(aclnn\w+)", code(ROOT / "tests" / "operator_call.c")):
            called |= {second, second + "GetWorkspaceSize"}
    if "tensor_operators[" in sources:
        for operator in re.findall(r"\bROW(?:, |\()(\w+)", code(ROOT / "tests" / "tensor_operators.c")):
            called |= {f"aclnn{operator}", f"aclnn{operator}GetWorkspaceSize"}
    if "ACL_APP_LOG(" in sources:
        called.add("aclAppLog")
    missing = sorted(declared - called)
    for name in missing:
        print(f"tests/stress never calls {name}")
    print(f"{len(declared) - len(missing)} of {len(declared)} functions are called")
    return 1 if missing or not declared else 0


if __name__ == "__main__":
    sys.exit(main())
