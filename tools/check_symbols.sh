#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_symbols.sh <libpoolgrad.so>: the library exports what include/ declares, all of it and nothing else,
# needs nothing but libc, and reads the environment through secure_getenv alone. If the CUDA plug-in lies beside it: one
# function, and libc as well.
set -euo pipefail
lib=${1:?usage: check_symbols.sh <libpoolgrad.so>}
include=$(cd "$(dirname "$0")/.." && pwd)/include

# Known by their names alone, so no header declares them: torch's memory hooks, and functions of CANN that have no public
# header.
undeclared="aclnnIndexPutImpl aclnnIndexPutImplGetWorkspaceSize InitHugeMemThreadLocal UnInitHugeMemThreadLocal ReleaseHugeMem"
undeclared+=" HcclSetConfig rtDevBinaryRegister rtFunctionRegister rtKernelLaunch rtGetC2cCtrlAddr"
undeclared+=" MsprofRegisterCallback MsprofGetHashId MsprofSysCycleTime"
undeclared+=" MsprofReportApi MsprofReportCompactInfo MsprofReportAdditionalInfo"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
(cd "$include" && find . -name '*.h' -printf '#include "%P"\n' | sort) > "$tmp/all.c"
# What the preprocessor leaves of our own headers, one declaration to a line; a function's name is what stands before
# the first parenthesis.
"${CC:-cc}" -std=c11 -E -I "$include" "$tmp/all.c" > "$tmp/preprocessed"
awk -v ours="\"$include/" '/^# [0-9]+ "/ { keep = index($0, ours) > 0; next } keep' "$tmp/preprocessed" |
  sed -E 's/__attribute__ *\(\([a-z]+(\("[^"]*"\))?\)\)//g' | tr '\n;' ' \n' | grep -v '^ *typedef ' |
  sed -nE 's/^[^(]*[ *]([A-Za-z_][A-Za-z0-9_]*) *\(.*/\1/p' | sort -u > "$tmp/declared"
[ -s "$tmp/declared" ] || { echo "no function is declared in $include" >&2; exit 1; }
nm -D --defined-only "$lib" | awk '{print $NF}' | sort -u > "$tmp/exported"
tr ' ' '\n' <<< "$undeclared" | sort -u > "$tmp/undeclared"

status=0
complain() {  # complain <sentence> <file>: fails with it if the file has lines
  [ -s "$2" ] || return 0
  { echo "$1"; sed 's/^/  /' "$2"; } >&2
  status=1
}
grep -vE "^(acl|Hccl|poolgrad_)" "$tmp/exported" | grep -vxFf "$tmp/undeclared" > "$tmp/foreign" || true
complain "exported, but neither acl*, Hccl* nor poolgrad_*:" "$tmp/foreign"
comm -13 "$tmp/exported" "$tmp/declared" > "$tmp/missing"
complain "declared in include/, but not exported:" "$tmp/missing"
grep -E "^(acl|Hccl|poolgrad_)" "$tmp/exported" | comm -23 - "$tmp/declared" | comm -23 - "$tmp/undeclared" > "$tmp/extra"
complain "exported, but not declared in include/:" "$tmp/extra"
needs() {  # needs <library>: what is no part of libc
  readelf -d "$1" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' |
    grep -vE '^(lib(c|m|pthread|dl|rt)\.so\.[0-9]+|ld-linux.*)$' || true
}
needs "$lib" > "$tmp/needed"
complain "needed at run time, but not part of libc:" "$tmp/needed"
# Privileged programs do not obey variables: src/core/environment.h is the one door to them.
unguarded() {
  nm -D --undefined-only "$1" | awk '{print $NF}' | sed 's/@.*//' | grep -x getenv || true
}
unguarded "$lib" > "$tmp/getenv"
complain "imported, though pg_getenv is to be used:" "$tmp/getenv"
plugin=$(dirname "$lib")/libpoolgrad_cuda.so
if [ -e "$plugin" ]; then
  needs "$plugin" > "$tmp/needed"
  complain "needed by the CUDA plug-in, but not part of libc:" "$tmp/needed"
  nm -D --defined-only "$plugin" | awk '{print $NF}' | grep -vx poolgrad_cuda_backend > "$tmp/extra" || true
  complain "exported by the CUDA plug-in:" "$tmp/extra"
fi
[ $status -ne 0 ] || echo "symbols ok: $(wc -l < "$tmp/exported") exported, $(wc -l < "$tmp/declared") declared"
exit $status
