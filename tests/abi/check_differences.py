#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_differences.py --include DIR

check_abi.py must see every kind of difference: each row changes a copy of the headers in one place.

Exit: 0 all are seen, 1 one is not, or the headers no longer have what a row changes.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROWS = (  # header, text, what replaces it, a word of the complaint
    ('acl/acl_base_rt.h', 'ACL_BF16 = 27', 'ACL_BF16 = 28', 'ACL_BF16 is 28'),
    ('acl/acl_base_rt.h', 'ACL_ERROR_BAD_ALLOC = 200000', 'ACL_ERROR_BAD_ALLOC = 200001', 'ACL_ERROR_BAD_ALLOC is'),
    ('acl/acl_rt.h', '#define ACL_STREAM_HUGE 0x00000008U', '#define ACL_STREAM_HUGE 9', 'ACL_STREAM_HUGE is 9'),
    ('acl/acl_rt.h', 'char reserved[ACL_PKG_VERSION_MAX_SIZE]', 'char reserved[1]', 'sizeof aclCANNPackageVersion is'),
    ('acl/acl_base_rt.h', 'aclCreateDataBuffer(void *data, size_t size)', 'aclCreateDataBuffer(void *data, int size)',
     'aclCreateDataBuffer'),
    ('acl/acl_base_rt.h', 'aclDestroyDataBuffer(const aclDataBuffer *', 'aclDestroyDataBuffer(aclDataBuffer *',
     'aclDestroyDataBuffer'),
    ('acl/acl_base_rt.h', 'typedef int aclError;', 'typedef long aclError;', 'aclInit'),
    ('aclnn/aclnn_base.h', 'aclnnStatus aclnnFinalize(void);', ';', 'no header declares aclnnFinalize'),
    ('aclnn/aclnn_base.h', 'aclnnFinalize(void);', 'aclnnFinalize(void), aclnnBegin(void);', 'function aclnnBegin'),
    ('acl/acl_base_rt.h', '  ACL_INT4 = 29,\n', '', 'no header declares ACL_INT4'),
    ('acl/acl_base_rt.h', '  ACL_INT4 = 29,\n', '  ACL_INT4 = 29, ACL_INT5 = 30,\n', 'constant ACL_INT5'),
    ('aclnn/opdev/op_errno.h', '#define ACLNN_ERR_INNER 561000', '', 'no header declares ACLNN_ERR_INNER'),
    ('acl/acl_base_rt.h', '} aclMemType;', '} aclMemoryType;', 'no header declares aclMemType'),
)
CXX_ROW = ('acl/acl_base_rt.h', 'aclDataTypeSize(aclDataType ', 'aclDataTypeSize(int ', 'aclDataTypeSize')


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0])
    parser.add_argument('--include', type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    check = pathlib.Path(__file__).with_name('check_abi.py')
    rows = ROWS + ((CXX_ROW,) if os.environ.get('CXX') else ())
    failed = 0
    for header, text, instead, complaint in rows:
        with tempfile.TemporaryDirectory(prefix='poolgrad-abi-') as folder:
            include = pathlib.Path(folder, 'include')
            shutil.copytree(arguments.include, include)
            original = (include / header).read_text()
            (include / header).write_text(original.replace(text, instead, 1))
            done = subprocess.run([sys.executable, str(check), '--include', str(include)], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, encoding='utf-8', check=False)
        if text not in original:
            print(f'FAILED: {header} has no "{text.strip()}"; give this row another')
        elif done.returncode != 1 or complaint not in done.stdout:
            print(f'FAILED: "{instead.strip()}" instead of "{text.strip()}" in {header} is not seen:\n{done.stdout}')
        else:
            continue
        failed += 1
    print(f'{len(rows) - failed} of {len(rows)} differences are seen')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
