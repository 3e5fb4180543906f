#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that source, header and manuals agree on every environment variable, its values and its default.

What counts is the table in src/core/environment.c. Words that a value may be are quoted there or are numbers; a default
that is such a word must be named as the default everywhere.

  source          reads all variables of the table, and no other, and has the words
  poolgrad.h      has a paragraph for each; words in double quotes are values
  README.md       has each POOLGRAD_ variable in a table whose first column is headed "variable"; the second column has
                  the values in backticks. ASCEND_ variables may be there as well.
  docs/*.md       the same for all variables, in one page or several
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
NAME = r"(?:POOLGRAD|ASCEND)_[A-Z][A-Z_]*[A-Z]"
ROW = re.compile(r'\{"(\w+)",\s*((?:"[^"]*"\s*)+),\s*((?:"[^"]*"\s*)+)\}')
PARAGRAPH = re.compile(rf"^ \*   ({NAME})\b(.*?)(?=^ \*   {NAME}\b|\*/|^ \*\s*$)", re.S | re.M)
WORD = re.compile(r"'([^']+)'|\b(\d+)\b")


class Variable:
    """A row of the table: the words that a value may be, those that the default has, the default if it is a word."""

    def __init__(self, values, unset):
        self.values = {quoted or number for quoted, number in WORD.findall(values)}
        self.allowed = self.values | set(re.findall(r"'([^']+)'", unset))
        whole = re.fullmatch(r"'([^']+)'|(\d+)", unset)
        self.default = (whole.group(1) or whole.group(2)) if whole else None


def joined(literals):
    return "".join(re.findall(r'"([^"]*)"', literals))


def table():
    text = (ROOT / "src/core/environment.c").read_text(encoding="utf-8")
    rows = re.search(r"\bvariables\[\] = \{(.*?)\n\};", text, re.S).group(1)
    return {name: Variable(joined(values), joined(unset)) for name, values, unset in ROW.findall(rows)}


def check_source(variables):
    literals = set()
    for path in sorted((ROOT / "src").rglob("*.[ch]")):
        text = path.read_text(encoding="utf-8")
        if path.name not in ("environment.c", "environment.h"):
            literals |= set(re.findall(r'"([^"\n]*)"', text) + re.findall(r"\brow\((\w+)", text))
            if re.search(r"\b(?:secure_)?getenv\(", text):
                yield f"{path.relative_to(ROOT)}: asks the environment past pg_getenv"
    names = {literal for literal in literals if re.fullmatch(NAME, literal)}
    yield from (f"src: {name} is read and not in src/core/environment.c" for name in sorted(names - variables.keys()))
    yield from (f"src/core/environment.c: nobody reads {name}" for name in sorted(variables.keys() - names))
    for name, variable in variables.items():
        for value in sorted(variable.values):
            if not value.isdigit() and re.split("[:=]", value)[0] not in literals:
                yield f"src/core/environment.c: {name} has {value}, which the source does not"


def check_text(where, name, variable, words, values, text):
    """Words: those marked as values; values: the text about them, where numbers may stand unmarked; text: all of it."""
    plain = re.sub(r"[`\"*]", "", text)
    for value in sorted(variable.values - words - set(re.findall(r"\b\d+\b", values))):
        yield f"{where}: {name} does not name the value {value}"
    for word in sorted(words - variable.allowed):
        yield f"{where}: {name} has {word}, which src/core/environment.c does not"
    if variable.default is not None:
        default = re.escape(variable.default)
        said = rf"(?<!\w){default} \([^)]*\bdefault\b|\b(?:default|unset)\b:? (?:is )?{default}(?!\w)"
        if not re.search(said, plain, re.I):
            yield f"{where}: {name} does not say that {variable.default} is the default"


def check_header(variables):
    where = "include/poolgrad.h"
    found = {}
    for name, text in PARAGRAPH.findall((ROOT / where).read_text(encoding="utf-8")):
        found[name] = re.sub(r"\n \*\s*", " ", text)
    yield from (f"{where}: {name} is missing" for name in sorted(variables.keys() - found.keys()))
    yield from (f"{where}: {name} is not in src/core/environment.c" for name in sorted(found.keys() - variables.keys()))
    for name in sorted(found.keys() & variables.keys()):
        yield from check_text(where, name, variables[name], set(re.findall(r'"([^"]+)"', found[name])), found[name],
                              found[name])


def rows_of(path):
    """(name, second column, whole row) of all tables headed "variable". A column headed "unset" or "default" says so in
    each of its cells."""
    heads = None
    lines = path.read_text(encoding="utf-8").splitlines()
    for line, following in zip(lines, [*lines[1:], ""]):
        if not line.lstrip().startswith("|"):
            heads = None
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if heads is None:
            heads = [cell.lower() for cell in cells] if re.match(r"\s*\|[\s:|-]+\|?\s*$", following) else []
            continue
        if not heads or "variable" not in heads[0]:
            continue
        for i, head in enumerate(heads[: len(cells)]):
            if re.search(r"\b(unset|default)\b", head):
                cells[i] = f"default: {cells[i]}"
        for name in re.findall(rf"\b{NAME}\b", cells[0]):
            yield name, cells[1], " | ".join(cells[1:]), cells[0].count("`") == 2


def check_page(path, variables, found):
    where = path.relative_to(ROOT)
    for name, values, row, alone in rows_of(path):
        if name not in variables:
            yield f"{where}: {name} is not in src/core/environment.c"
        elif alone:  # a row for several names has no values of its own
            found.add(name)
            words = {word.rstrip("….") for word in re.findall(r"`([^`]+)`", values)}
            yield from check_text(where, name, variables[name], words, values, row)


def check_pages(variables):
    in_readme, in_docs = set(), set()
    yield from check_page(ROOT / "README.md", variables, in_readme)
    for page in sorted((ROOT / "docs").rglob("*.md")):
        yield from check_page(page, variables, in_docs)
    for name in sorted(variables):
        if name.startswith("POOLGRAD_") and name not in in_readme:
            yield f"README.md: {name} has no row in a table of variables"
        if name not in in_docs:
            yield f"docs: {name} has no row in a table of variables"


def main():
    variables = table()
    problems = [*check_source(variables), *check_header(variables), *check_pages(variables)]
    print("\n".join(problems) if problems else f"variables ok: {len(variables)}")
    return 1 if problems or not variables else 0


if __name__ == "__main__":
    sys.exit(main())
