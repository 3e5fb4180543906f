# SPDX-License-Identifier: Apache-2.0
"""The faults that tools/mutate.py plants: where each kind can be planted in a C file, and what it makes of the text."""
import bisect
import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Fault:
    file: str  # relative to the root
    line: int
    function: str
    operator: str
    edits: tuple  # (begin, end, text), in order, apart from each other
    before: str
    after: str
    around: str  # the line and the next one, with single blanks

    def apply(self, text):
        for begin, end, new in reversed(self.edits):
            # The lines below keep their numbers, which log lines and failures show.
            text = text[:begin] + new + "\n" * (text[begin:end].count("\n") - new.count("\n")) + text[end:]
        return text


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def balanced(text, at):
    """The place behind the parenthesis that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i + 1
    raise ValueError("no closing parenthesis")


SENTENCE = re.compile(r"\b(PG_CHECK(?:_AS)?|pg_fail(?:_with)?|pg_failure_set|pg_log|snprintf|printf)\(")


def hide(text):
    """The text with blanks for all in which a fault would be none, or only a word of a sentence: comments, strings, the
    preprocessor's lines, what is printed, named constants (sizes and patience by and large), compile-time checks."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.S)
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, code, flags=re.M)
    quoted = re.sub(r'"(?:[^"\\\n]|\\.)*"', lambda m: '"' + " " * (len(m.group()) - 2) + '"', code)
    quoted = re.sub(r"'(?:[^'\\\n]|\\.)+'", lambda m: "'" + " " * (len(m.group()) - 2) + "'", quoted)
    quoted = re.sub(r"\benum(?: \w+)? \{.*?\}", blank, quoted, flags=re.S)
    quoted = re.sub(r"\b_Static_assert\(.*?;", blank, quoted, flags=re.S)
    for match in SENTENCE.finditer(quoted):
        end = balanced(quoted, match.end() - 1) - 1
        words = quoted.find('"', match.end(), end)
        if words >= 0:
            quoted = quoted[:words] + re.sub(r"[^\n]", " ", quoted[words:end]) + quoted[end:]
    return quoted


def name_of(declaration):
    """Of a function: VARIANT(scatter_box)(...) is scatter_box, in every variant."""
    declaration = re.sub(r"__attribute__\(\(.*?\)\)", "", declaration)
    return (re.search(r"\bVARIANT\((\w+)\)", declaration) or re.search(r"(\w+)\(", declaration)).group(1)


class Source:
    def __init__(self, file, text):
        self.file, self.text, self.code = file, text, hide(text)
        self.starts = [m.start() for m in re.finditer(r"^", text, flags=re.M)]
        # A definition begins at the first column, in clang-format's layout. It ends with a brace there, or is one line.
        self.functions = [(m.start(), m.end(), name_of(m.group(1))) for m in
                          re.finditer(r"^([A-Za-z_][^;{}#]*\([^;{}]*\)) \{(?:[^\n]*\}\s*$|[^\n]*\n.*?^\})", self.code,
                                      flags=re.M | re.S)]

    def line_of(self, at):
        return bisect.bisect_right(self.starts, at)

    def function_at(self, at):
        for begin, end, name in self.functions:
            if begin <= at < end:
                return name
        return ""

    def fault(self, operator, *edits):
        begin, end = edits[0][0], edits[0][1]
        line = self.line_of(begin)
        first = self.starts[line - 1]
        last = self.text.find("\n", end)
        before = self.text[first:last]
        after = self.text[first:begin] + edits[0][2] + self.text[end:last]
        shown = [re.sub(r"\s+", " ", s).strip() for s in (before, after)]
        around = " ".join(self.text[first:].split("\n", 2)[:2])
        return Fault(self.file, line, self.function_at(begin), operator, tuple(edits), *shown,
                     re.sub(r"\s+", " ", around).strip())


def each(source, pattern, flags=0):
    """Matches inside functions."""
    for match in re.finditer(pattern, source.code, flags):
        if source.function_at(match.start(1)):
            yield match


FLIPPED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}


def comparison(source):
    for m in each(source, r"(?<=\s)(<=|>=|==|!=|<|>)(?=\s)"):
        name = "equality" if m.group(1) in ("==", "!=") else "comparison"
        yield source.fault(name, (*m.span(1), FLIPPED[m.group(1)]))


def logic(source):
    for m in each(source, r"(?<=\s)(&&|\|\|)(?=\s)"):
        yield source.fault("and/or", (*m.span(1), "||" if m.group(1) == "&&" else "&&"))


def arithmetic(source):
    for m in each(source, r"(?<=[\w)\]]\s)([+-])(?=\s)"):
        yield source.fault("plus/minus", (*m.span(1), "-" if m.group(1) == "+" else "+"))


def constant(source):
    # Not the length of an array: a longer one is none the worse.
    for m in each(source, r"(?<![\w.\[])(\d+)(?![\w.\]])"):
        yield source.fault("off by one", (*m.span(1), str(int(m.group(1)) + 1)))


def loop(source):
    for m in each(source, r"\bfor \([^;]*;[^;]*?\s<=?\s([^;&|]+?)(?=;|\s&&|\s\|\|)"):
        yield source.fault("loop bound", (*m.span(1), m.group(1) + " - 1"))


def negation(source):
    for m in each(source, r"\b(if|while) \("):
        end = balanced(source.code, m.end() - 1)
        yield source.fault("negation", (m.end(), end - 1, "!(" + source.text[m.end():end - 1] + ")"))


def dropped_check(source):
    for m in each(source, r"\b(PG_CHECK(?:_AS|_PTR)?|PG_TRY)\("):
        end = balanced(source.code, m.end() - 1)
        inside = source.text[m.end():end - 1]
        yield source.fault("dropped check",
                           (m.start(), end, f"(void)({inside})" if m.group(1) == "PG_TRY" else "(void)0"))


def success(source):
    for m in each(source, r"\breturn (pg_fail\w*|pg_recode)\("):
        yield source.fault("success", (m.start(1), balanced(source.code, m.end() - 1), "0"))
    for m in each(source, r"\breturn (status|ACL\w*_ERR\w+);"):
        yield source.fault("success", (*m.span(1), "0"))


SWAPPED = {"PG_H": "PG_W", "PG_W": "PG_H", "PG_N": "PG_C", "PG_C": "PG_N", "PG_D": "PG_H", "->h": "->w", "->w": "->h",
           ".h": ".w", ".w": ".h", "->d": "->h", ".d": ".h"}


def swap(source):
    for m in each(source, r"(\bPG_[HWNCD]\b|(?:->|(?<=\w)\.)[hwd]\b)"):
        yield source.fault("swapped axis", (*m.span(1), SWAPPED[m.group(1)]))


def lock(source):
    """A function that does without one of its locks."""
    for begin, end, _ in source.functions:
        code = source.code[begin:end]
        for guarded in dict.fromkeys(re.findall(r"\bpthread_mutex_lock\(([^()]*)\)", code)):
            calls = re.finditer(r"pthread_mutex_(?:un)?lock\(" + re.escape(guarded) + r"\)", code)
            yield source.fault("removed lock", *((begin + m.start(), begin + m.end(), "(void)0") for m in calls))


def atomic(source):
    for m in each(source, r"^\s*(atomic_(?:store|fetch_\w+)\()", re.M):
        yield source.fault("dropped store", (m.start(1), balanced(source.code, m.end() - 1), "(void)0"))


def wake(source):
    for m in each(source, r"\b(pthread_cond_(?:signal|broadcast)\()"):
        yield source.fault("dropped wake", (m.start(1), balanced(source.code, m.end() - 1), "(void)0"))


OPERATORS = (comparison, logic, arithmetic, constant, loop, negation, dropped_check, success, swap, lock, atomic, wake)

# Faults that are none: (file, function, operator, text of the line and the next; each a regular expression), why.
EQUIVALENT = (
    (("", "", "comparison", r"([\w.>()\[\]-]+) [<>]=? ([^?;&|]+?) \? (\1 : \2\b|\2 : \1\b)(?! [-+*/])"),
     "the lesser or greater of two: either will do if they are equal"),
    (("", "", "comparison", r"if \((\S+) [<>]=? ([^&|]+?)\) \1 = \2;"),
     "a limit: what is equal to it stays as it is"),
    (("ops/overlap", "^choose$", "off by one", r"stride [-+] 1\)"), "bounds of the search that may be too wide"),
    (("", "", "", r"^if \(.*\) pg_log\("), "what the log is told"),
    (("", "", "", r"^(if \(\w+\) )?__builtin_prefetch\("), "what is read ahead changes no result"),
    (("cpu/nontemporal", "^last_level_cache$", "", ""),
     "from which size on results go past the caches: of no effect where an eighth of the cache is 4 MiB or more"),
    (("cpu/queue", "^(is_quiet|spin|trim)$", "", ""), "patience, and rings that are kept: a matter of speed"),
    (("cpu/workers", "^(spin|spin_until_left|pg_workers_are_awake)$", "", ""), "patience: a matter of speed"),
)


def equivalent(fault):
    """Why this fault is none, or None."""
    for patterns, why in EQUIVALENT:
        if all(re.search(p, s) for p, s in zip(patterns, (fault.file, fault.function, fault.operator, fault.around))):
            return why
    return None


def faults(file, text):
    source = Source(file, text)
    for operator in OPERATORS:
        yield from operator(source)
