#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# aloud.sh <what> <command...>: runs the command, and says that it is still at <what> when nothing has come to its
# standard output for eight seconds. Its output, errors and status are the command's.
set -uo pipefail
what=$1
shift
start=$SECONDS
"$@" | {
  begun=
  while true; do
    if IFS= read -r -t 8 line; then
      printf '%s%s\n' "$begun" "$line"
      begun=
    elif [ $? -gt 128 ]; then  # no whole line in time; what there is of it stays in $line
      begun+=$line
      echo "   ... still $what, $((SECONDS - start)) s"
    else
      [ -z "$begun$line" ] || printf '%s%s\n' "$begun" "$line"
      break
    fi
  done
}
exit "${PIPESTATUS[0]}"
