#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the #include lines of src/ against the table of who may include whom (docs/design.md)."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC, PUBLIC = ROOT / "src", ROOT / "include"

# Folder -> what its files may include besides each other: folders or single headers. "include": the public headers.
MAY_INCLUDE = {
    "core": {"include"},
    "runtime": {"include", "core"},
    "aclnn": {"include", "core", "runtime", "kernels"},
    "kernels": {"include", "core"},
    "ops": {"include", "core", "aclnn", "kernels"},
    "cpu": {"include", "core", "kernels", "runtime/backend.h"},
    "cuda": {"include", "core", "kernels", "runtime/backend.h"},
}

# Single files that may include more than their folder may.
EXCEPTIONS = {
    "runtime/backend.h": {"kernels"},  # a step says which kernel runs
}

# The backends' structs are named in one array and its header; all else reaches a backend through that array.
BACKEND = re.compile(r"\bpg_backend_(cpu|cuda)\b")
NAMES_BACKENDS = {"runtime/backend.h", "runtime/backends.c"}

INCLUDE = re.compile(r'\s*#\s*include\s*(["<])([^">]+)[">]')


def target(file, quote, name):
    """The (folder, path) that the line reaches; (None, name) is a system header."""
    places = [file.parent] if quote == '"' else []
    for base in [*places, SRC, PUBLIC]:
        path = (base / name).resolve()
        if path.is_file() and path.is_relative_to(SRC):
            relative = path.relative_to(SRC)
            return relative.parts[0], relative.as_posix()
        if path.is_file() and path.is_relative_to(PUBLIC):
            return "include", path.relative_to(PUBLIC).as_posix()
    return (None if quote == "<" else "nowhere"), name


def breaches(file):
    name = file.relative_to(SRC).as_posix()
    own = name.split("/")[0]
    if own not in MAY_INCLUDE:
        yield f"src/{name}:1: folder src/{own} is not in the table"
        return
    allowed = MAY_INCLUDE[own] | EXCEPTIONS.get(name, set())
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        backend = BACKEND.search(line)
        if backend and name not in NAMES_BACKENDS and own != backend[1]:
            yield f"src/{name}:{number}: {backend[0]} may be named only in {', '.join(sorted(NAMES_BACKENDS))}"
        include = INCLUDE.match(line)
        if not include:
            continue
        folder, path = target(file, *include.groups())
        if folder == "nowhere":
            yield f"src/{name}:{number}: {path} does not exist"
        elif folder not in (None, own) and folder not in allowed and path not in allowed:
            yield f"src/{name}:{number}: src/{own} may not include {path}, only {', '.join(sorted(allowed))}"


def main():
    files = [f for f in sorted(SRC.rglob("*")) if f.suffix in {".c", ".h", ".inc", ".cu", ".cuh"}]
    found = [breach for file in files for breach in breaches(file)]
    print("\n".join(found) or f"includes ok: {len(files)} files")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
