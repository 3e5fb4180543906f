#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_refusals.py --library FILE [PAGE ...]

Makes the mistakes that the pages of the operators list. A call that is right but for what a sentence says must fail
with that sentence and its code; a call with two of a page's mistakes must fail with the one that is listed first.
What is said with "…" or by a link cannot be made from the page, and is left out.

Exit: 0 all pages are right, 1 one is not.
"""

import argparse
import copy
import ctypes
import itertools
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(r'^\| (\d{6}) \| ([^\[\n…][^\n…]*?)(?: \((?:then|3 axes|an empty|only for|Ascend)[^()]*\))? \|$', re.M)
PROTOTYPE = re.compile(r'aclnnStatus (aclnn\w+)GetWorkspaceSize\(([^;]*),\s*uint64_t')
SHARED = 'common', 'tensors'  # pages of many operators; tests/test_check_tensors.c makes the mistakes of the second one
PRODUCT = re.compile(r'Ascend910B1|Ascend950')
SCALARS = {'bool': ctypes.c_bool, 'int8_t': ctypes.c_int8, 'int64_t': ctypes.c_int64}
BASE = (ROOT / 'include/acl/acl_base_rt.h').read_text(encoding='utf-8')


def constant(name):
    return int(re.search(rf'\bACL_{name} = (\d+)', BASE)[1])


def numbers(text):
    return [int(number) for number in re.findall(r'-?\d+', text)]


class Call:
    """A right call of the first phase: 2 x 2 windows in steps of 2 over 4 x 4 cells; in three dimensions likewise."""

    def __init__(self, operator, arguments):
        self.operator, self.api = operator, operator + 'GetWorkspaceSize'
        self.axes = 3 if '3d' in operator else 2
        self.values, self.kinds, self.null, self.dead = {}, {}, set(), set()
        for argument in arguments.split(','):
            *words, name = argument.replace('*', ' ').split()
            self.kinds[name] = words[-1]
            self.values[name] = getattr(self, words[-1], self.scalar)(name)

    def is_cells(self, name):
        """Does the tensor have the cells, or the outputs?"""
        return name in ('self', 'gradInput') or self.operator.endswith('Backward') and name in ('out', 'output')

    def aclTensor(self, name):
        tensor = {'shape': [1, 2] + [4 if self.is_cells(name) else 2] * self.axes, 'type': 'FLOAT', 'strides': None,
                  'format': 'NCDHW' if self.axes == 3 else 'NCHW', 'offset': 0}
        if name == 'indicesOut':
            tensor['type'] = 'INT64' if self.axes == 2 else 'INT32'
        elif name == 'indices' and 'Mask' in self.operator:
            tensor.update(shape=[1, 2, 4, 64], type='INT8')
        elif name == 'indices':
            tensor['type'] = 'INT32'
        return tensor

    def aclIntArray(self, name):
        value = 0 if name.startswith('pad') else 1 if name.startswith('dilation') else 2
        return [value] * self.axes

    def scalar(self, name):
        return int(name == 'countIncludePad')

    def tensors(self):
        return [name for name, kind in self.kinds.items() if kind == 'aclTensor']

    def set_all(self, **what):
        for name in self.tensors():
            if not name.startswith('indices') or 'type' not in what:
                self.values[name].update(copy.deepcopy(what))

    def put(self, name, values):
        """A shape, or the values of an array; words that are no argument are left alone."""
        if self.kinds.get(name) == 'aclIntArray':
            self.values[name] = values
        elif self.kinds.get(name) == 'aclTensor':
            self.values[name]['shape'] = values

    def give(self, name, values):
        """The same, and those that go with it become right again."""
        self.put(name, values)
        like = {'self': ['gradInput', 'output'] + ['out'] * self.is_cells('out'), 'gradOutput': ['indices'],
                'out': ['indices'], 'outputOut': ['indicesOut']}.get(name, [])
        for other in like:
            if not (other == 'indices' and 'Mask' in self.operator):
                self.put(other, list(values))
        if name == 'outputSize' and len(values) == self.axes and 'outputOut' in self.values:
            for other in ('outputOut', 'indicesOut'):
                self.values[other]['shape'][2:] = values


def of_type(call, match):
    call.set_all(type=match[2])
    if match[1].startswith('indices'):
        call.set_all(type='FLOAT')
        call.values[match[1]]['type'] = match[2]


def other_type(call, match):
    call.set_all(type=match[4])
    call.values[match[1]]['type'] = match[2]


def of_format(call, match):
    if match[1] == 'indicesOut':
        call.values[match[1]]['format'] = match[2]
    else:
        call.set_all(format=match[2])


def other_format(call, match):
    call.set_all(format=match[4])
    call.values[match[1]]['format'] = match[2]


def without_cells(call, match):
    """A window that holds none: by dilation, by padding on one side, or because there are none."""
    call.give('self', numbers(match[1]))
    size, ones = call.values['self']['shape'], [1] * call.axes
    outputs, steps = ones, 'strides' if 'strides' in call.values else 'stride'
    call.values[steps] = ones
    if 'pads' in call.values:
        call.values['pads'], outputs = [2, 0, 0, 0], [3, 1]
    elif 'dilation' in call.values:
        call.values['dilation'], call.values['padding'] = [3] * call.axes, ones
    else:
        call.values['paddings' if 'paddings' in call.values else 'padding'] = ones
        outputs = [length + 1 for length in size[2:]]
    call.give('out', size[:2] + outputs)


def overflow(call, match):
    for name, place in (('kernelSize', 1), ('stride', 2), ('padding', 3), ('dilation', 4)):
        call.give(name, [int(match[place])] * call.axes)
    call.give('self', [1, 2] + [int(match[5])] * call.axes)


def math_type(call, match):
    call.values['cubeMathType'] = int(match[1])
    if match[2]:
        call.set_all(type=match[2])


def shapes(call, match):
    """Whatever the sentence has in brackets behind a name."""
    sentence = match[0]
    found = re.findall(r"(\w+)(?: is|'s shape)? (\[[-\d,]*\])", sentence)
    for name, text in reversed(found):
        call.give(name, numbers(text))
    for name, text in found:  # giving one may have changed another
        call.put(name, numbers(text))
    strides, tag = re.search(r'with strides (\S+),', sentence), re.search(r'with format (\w+),', sentence)
    if strides:
        call.values[found[0][0]]['strides'] = numbers(strides[1])
    if tag:
        call.set_all(format=tag[1])
    if 'ceilMode true' in sentence:
        call.values['ceilMode'] = 1


# What is to be made wrong, by the sentence; the first that fits.
RULES = [(re.compile(pattern), rule) for pattern, rule in (
    (r'(\w+) is NULL', lambda call, match: call.null.add(match[1])),
    (r'(\w+) is a destroyed', lambda call, match: call.dead.add(match[1])),
    (r'Ascend950 has no masks', lambda call, match: None),
    (r'(\w+) has (\d+) values', lambda call, match: call.give(match[1], [1] * int(match[2]))),
    (r"(\w+) is DT_(\w+), expected (\w+)'s DT_(\w+)", other_type),
    (r'(\w+) is DT_(\w+),', of_type),
    (r"(\w+) has format (\w+), expected (\w+)'s (\w+)", other_format),
    (r'(\w+) has format (\w+),', of_format),
    (r'(\w+) has offset (\d+)', lambda call, match: call.values[match[1]].update(offset=int(match[2]))),
    (r'\w+ is (\S+), it must have \d or', lambda call, match: call.set_all(shape=numbers(match[1]))),
    (r'self is (\S+), the window of output', without_cells),
    (r'kernel (\d+), stride (\d+), padding (\d+) and dilation (\d+) overflow .* length (\d+)', overflow),
    (r'cubeMathType is (\d)(?:.* (?:which|not for) DT_(\w+))?', math_type),
    (r'autoPad is (\d)', lambda call, match: call.values.update(autoPad=int(match[1]))),
    (r'dilations has (\d) at place 0', lambda call, match: call.give('dilations', [int(match[1]), 1])),
    (r'pads is \[(\d),(\d)\] before and \[(\d),(\d)\]', lambda call, match: call.give('pads', numbers(match[0]))),
    (r'\w+ is \[.*', shapes),
)]


def make(call, sentence):
    pattern, rule = next((row for row in RULES if row[0].match(sentence)), (None, None))
    if rule is None:
        raise ValueError(f'no rule makes this mistake: {sentence}')
    rule(call, pattern.match(sentence))


class Library:
    def __init__(self, path):
        self.of = ctypes.CDLL(path)
        pointer, integer, length = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64
        self.of.aclCreateTensor.argtypes = [pointer, length, integer, pointer, ctypes.c_int64, integer, pointer, length,
                                            pointer]
        self.of.aclCreateIntArray.argtypes = [pointer, length]
        self.of.aclCreateTensor.restype = self.of.aclCreateIntArray.restype = pointer
        self.of.aclDestroyTensor.argtypes = self.of.aclDestroyIntArray.argtypes = [pointer]
        self.of.aclGetRecentErrMsg.restype = ctypes.c_char_p

    def tensor(self, what):
        dims, axes = (ctypes.c_int64 * 8)(*what['shape']), len(what['shape'])
        strides = what['strides'] and (ctypes.c_int64 * 8)(*what['strides'])
        return self.of.aclCreateTensor(dims, axes, constant(what['type']), strides, what['offset'],
                                       constant('FORMAT_' + what['format']), dims, axes, None)

    def argument(self, call, name):
        kind, value = call.kinds[name], call.values[name]
        if kind in SCALARS:
            return SCALARS[kind](value)
        if name in call.null:
            return ctypes.c_void_p(None)
        handle = self.tensor(value) if kind == 'aclTensor' else self.of.aclCreateIntArray(
            (ctypes.c_int64 * 8)(*value), len(value))
        if name in call.dead:
            (self.of.aclDestroyTensor if kind == 'aclTensor' else self.of.aclDestroyIntArray)(handle)
        return ctypes.c_void_p(handle)

    def answer(self, call):
        """The code and the sentence of the first phase."""
        results = {'workspaceSize': ctypes.c_uint64(), 'executor': ctypes.c_void_p()}
        last = [None if name in call.null else ctypes.byref(result) for name, result in results.items()]
        code = getattr(self.of, call.api)(*[self.argument(call, name) for name in call.values], *last)
        said = (self.of.aclGetRecentErrMsg() or b'').decode().partition(call.api + ': ')[2]
        return code, said.splitlines()[0] if said else ''


def problems_of(page, library):
    """Yields what is wrong with a page, for the product that library answers for; then the number of calls."""
    text, product = page.read_text(encoding='utf-8'), os.environ.get('POOLGRAD_SOC')
    right = Call(*PROTOTYPE.search(text).groups())
    rows = [(int(code), sentence) for code, sentence in ROW.findall(text) if PRODUCT.findall(sentence)[:1] == (
        [product] if product else [])]
    if library.answer(right)[0] != 0 and not any('has no masks' in sentence for _, sentence in rows):
        yield f'{page.name}: the right call is refused: {library.answer(right)}'
    calls = [(row, (row[1],)) for row in rows] + [(a, (b[1], a[1])) for a, b in itertools.combinations(rows, 2)]
    for (code, sentence), mistakes in calls:
        call = copy.deepcopy(right)
        for mistake in mistakes:
            make(call, mistake)
        found = library.answer(call)
        # Two mistakes may make a third one; only the later of the two must not be what is found.
        if found != (code, sentence) if len(mistakes) == 1 else found[1] == mistakes[0]:
            yield f'{page.name}: "{sentence}" ({code}), but the library says {found} for {mistakes}'
    yield len(calls)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0])
    parser.add_argument('--library', required=True)
    parser.add_argument('pages', nargs='*', type=pathlib.Path)
    arguments = parser.parse_args()
    pages = arguments.pages or [path for path in sorted((ROOT / 'docs/ops').glob('*.md')) if path.stem not in SHARED]
    library, calls, problems = Library(arguments.library), 0, []
    for product in (None, 'Ascend910B1', 'Ascend950'):
        os.environ.pop('POOLGRAD_SOC', None)
        os.environ.update({'POOLGRAD_SOC': product} if product else {})
        if library.of.aclnnInit(None) != 0:
            sys.exit('aclnnInit fails')
        for page in pages:
            *found, count = problems_of(page, library)
            calls, problems = calls + count, problems + found
        library.of.aclnnFinalize()
    print('\n'.join(problems) or f'{calls} calls with the mistakes of {len(pages)} pages were refused as these say')
    return 1 if problems or not calls else 0


if __name__ == '__main__':
    sys.exit(main())
