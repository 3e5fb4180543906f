#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_record.py --record ABI.JSON [--include DIR] [--facts FILE]

Compares the facts in cann_abi.txt with a machine-read record of CANN's interface, which gives
functions as the C++ names of their types. The C++ compiler in CXX turns our lines into the same form; from
the headers it takes the types' names alone.

Exit: 0 all agree, 1 something differs, 77 there is no record or no C++ compiler here.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import check_abi

SECTION = {'function': 'functions', 'constant': 'constants', 'size': 'structs'}
# The vendor's documents have these; the record was read from headers in which they are elsewhere.
DOCUMENTED = re.compile(
    r'ACLNN_\w+|OK|ACL_DEV_ATTR_LOCAL_MEM_PER_VECTOR_CORE|ACL_OPT_STRONG_CONSISTENCY|aclnn\w*Pool\w*'
    r'|HCCL_\w+|Hccl\w+|aclop\w+|acl[GS]et(Tensor|Tensor\w*|Compileopt\w*)|acl(Create|Destroy)TensorDesc|aclCompileOpt'
    r'|ACL_(OP|COMPILE|ENGINE|PRECISION_MODE|AUTO_TUNE|CUSTOMIZE)\w*|ACL_(AICORE_NUM|ALLOW_HF32|DEBUG_DIR|UNKNOWN_RANK)')
# Operators on tensors of any shape are not in the record. These torch_npu was seen to call with these arguments (2.7.1;
# aclnnCast: 2.1.0),
SEEN = set(
    'Abs Add Adds All Any BitwiseAndTensor Cast Cat Ceil Div Divs EqScalar Equal ForeachAddListV2 ForeachMulScalarV2 '
    'Gather GtScalar InplaceAdd InplaceAdds InplaceCopy InplaceFillScalar InplaceMaskedFillScalar InplaceNormal '
    'InplaceOne InplaceRandom InplaceUniform InplaceZero IsClose IsFinite LtScalar MaskedSelect Max MaxDim '
    'MaxUnpool2d MaxUnpool3d Mean Min Mul Muls NeScalar NeTensor NpuFormatCast NpuFormatCastCalculateSizeAndFormat '
    'PowTensorScalar ReduceSum Relu Sign Stack Sub Subs ThresholdBackward'.split())
# and these have the names and arguments that CANN gives to their siblings above.
BY_ANALOGY = set(
    'BitwiseAndScalar EqTensor Floor GeScalar GeTensor GtTensor InplaceDiv InplaceDivs InplaceMul InplaceMuls InplaceRelu InplaceSub '
    'InplaceSubs LeScalar LeTensor LtTensor MinDim Neg Sqrt'.split())


def is_elsewhere(name):
    """Is the fact from another place than the record?"""
    operator = name.removeprefix('aclnn').removesuffix('GetWorkspaceSize')
    return DOCUMENTED.fullmatch(name) or (name.startswith('aclnn') and operator in SEEN | BY_ANALOGY)


def function_types(facts, include, cxx):
    """Returns {function: the C++ name of a pointer to it}, from our lines and not from the headers."""
    headers, _ = check_abi.read_headers(include)
    lines = ['#include <cstdio>', '#include <typeinfo>'] + [f'#include "{name}"' for name in headers]
    lines += ['namespace cann {'] + [f'{text};' for _, text, _ in facts.values()] + ['}', 'int main() {']
    lines += [f'  std::printf("{name} %s\\n", typeid(decltype(&cann::{name})).name());' for name in facts]
    with tempfile.TemporaryDirectory(prefix='poolgrad-abi-') as folder:
        probe, program = pathlib.Path(folder, 'probe.cpp'), pathlib.Path(folder, 'probe')
        probe.write_text('\n'.join(lines + ['}', '']))
        subprocess.run([cxx, '-std=c++11', '-I', str(include), str(probe), '-o', str(program)], check=True)
        printed = subprocess.run([str(program)], check=True, stdout=subprocess.PIPE, encoding='utf-8').stdout
    return dict(line.split(' ') for line in printed.splitlines())


def differences(kind, ours, recorded):
    for name, value in sorted(ours.items()):
        if name in recorded and recorded[name] != value:
            yield f'{kind} {name}: ours {value}, recorded {recorded[name]}'
        elif name not in recorded and not is_elsewhere(name):
            yield f'{kind} {name}: the record does not have it'


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0])
    parser.add_argument('--record', type=pathlib.Path, required=True)
    parser.add_argument('--include', type=pathlib.Path, default=pathlib.Path('include'))
    parser.add_argument('--facts', type=pathlib.Path, default=check_abi.FACTS)
    arguments = parser.parse_args()

    if not arguments.record.is_file():
        print(f'skipped: no machine-read record of CANN at {arguments.record}; the test abi compares with cann_abi.txt')
        return 77
    cxx = os.environ.get('CXX', 'c++')
    if not shutil.which(cxx):
        print('skipped: no C++ compiler here (Debian: g++)')
        return 77
    record = json.loads(arguments.record.read_text())
    facts = check_abi.read_facts(arguments.facts)
    ours = {kind: {name: value for name, (_, _, value) in facts[kind].items()} for kind in facts}
    ours['function'] = function_types(facts['function'], arguments.include, cxx)

    wrong = [line for kind, section in SECTION.items() for line in differences(kind, ours[kind], record[section])]
    for line in wrong:
        print(line)
    if wrong:
        print(f'FAILED: {arguments.facts} and {arguments.record} differ')
        return 1
    for kind, section in SECTION.items():
        same = len(set(ours[kind]) & set(record[section]))
        print(f'{kind}s: {same} agree, {len(ours[kind]) - same} are from elsewhere, {len(record[section])} recorded')
    return 0


if __name__ == '__main__':
    sys.exit(main())
