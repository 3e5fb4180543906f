#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install.sh <build folder> <prefix>: installs the build so that a failure leaves nothing half done: all files are written
# beside their places first, under other names, and only then renamed. Also removes what an older version had and this
# one has not. DESTDIR is obeyed.
# install.sh --remove <prefix>: removes what was installed, and the folders that were made for it.
#
# share/poolgrad/installed below the prefix lists all of it: files, and folders with a / behind.
set -euo pipefail
list=share/poolgrad/installed
new=.poolgrad-new

fail() {
  echo "install: $1" >&2
  exit 1
}
is_there() { [ -e "$1" ] || [ -L "$1" ]; }

# remove <root> <list of what to remove>: files first, then folders from the innermost on, if they are empty.
remove() {
  local root=$1 entries=$2 entry
  while IFS= read -r entry; do
    case $entry in */ | '') ;; *) rm -f -- "$root/$entry" ;; esac
  done < "$entries"
  { grep '/$' "$entries" || true; } | LC_ALL=C sort -r | while IFS= read -r entry; do
    rmdir -- "$root/$entry" 2> /dev/null || true
  done
}

if [ "$1" = --remove ]; then
  root=${DESTDIR:-}$2
  [ -f "$root/$list" ] || fail "there is no poolgrad below $root (no $root/$list)"
  copy=$(mktemp)
  trap 'rm -f "$copy"' EXIT
  cp "$root/$list" "$copy"
  remove "$root" "$copy"
  rmdir -- "$root" 2> /dev/null || true
  echo "removed from $root"
  exit 0
fi

build=$1 prefix=$2 root=${DESTDIR:-}$2
stage=$(mktemp -d)
made=$stage/made      # folders and files that this run has made so far
entries=$stage/entries
: > "$made"
complete=
finish() {
  if [ -z "$complete" ]; then  # back to what was
    while IFS= read -r entry; do rm -f -- "$entry"; done < <(grep -v '/$' "$made")
    { tac "$made" | grep '/$' || true; } | while IFS= read -r entry; do rmdir -- "$entry" 2> /dev/null || true; done
    echo "install: nothing was changed below $root" >&2
  fi
  rm -rf "$stage"
}
trap finish EXIT

(unset DESTDIR && cmake --install "$build" --prefix "$stage/tree" > "$stage/log" 2>&1) || { cat "$stage/log" >&2; exit 1; }
mkdir -p "$stage/tree/${list%/*}"
(cd "$stage/tree" && find . -mindepth 1 \( -type d -printf '%P/\n' \) -o -printf '%P\n' | LC_ALL=C sort) > "$entries"

make_folder() {  # make_folder <path>: and those above it, each noted
  local folder=${1%/}
  [ -d "$folder" ] && return
  ! is_there "$folder" || fail "$folder is in the way: it is not a folder"
  case $folder in */*) [ "${folder%/*}" = "" ] || make_folder "${folder%/*}" ;; esac
  mkdir -- "$folder" || fail "$folder cannot be made"
  echo "$folder/" >> "$made"
}
make_folder "$root"
while IFS= read -r entry; do
  case $entry in
    */) make_folder "$root/$entry" ;;
    *)
      [ ! -d "$root/$entry" ] || [ -L "$root/$entry" ] || fail "$root/$entry is in the way: it is a folder"
      echo "$root/$entry$new" >> "$made"
      cp -a --no-preserve=ownership -- "$stage/tree/$entry" "$root/$entry$new" || fail "$root/$entry cannot be written" ;;
  esac
done < "$entries"

# The list: our files, and the folders that are ours because this or an earlier installation made them.
{
  grep -v '/$' "$entries"
  { grep '/$' "$made" || true; } | while IFS= read -r entry; do
    case $entry in "$root"/?*) printf '%s\n' "${entry#"$root"/}" ;; esac
  done
  [ ! -f "$root/$list" ] || grep '/$' "$root/$list" || true
  echo "$list"
} | LC_ALL=C sort -u > "$stage/list"
echo "$root/$list$new" >> "$made"
cp -- "$stage/list" "$root/$list$new" || fail "$root/$list cannot be written"
[ ! -f "$root/$list" ] || LC_ALL=C comm -23 "$root/$list" "$stage/list" > "$stage/gone"

complete=yes  # from here on only renames, which need no space
grep -v '/$' "$stage/list" | while IFS= read -r entry; do
  mv -fT -- "$root/$entry$new" "$root/$entry"
done
[ ! -f "$stage/gone" ] || remove "$root" "$stage/gone"

if [ -n "${DESTDIR:-}" ]; then
  echo "staged in $root, to be used below $prefix"
elif [ -f "$root/set_env.sh" ]; then
  echo "installed; next: source $root/set_env.sh"
else
  echo "installed; next: ldconfig (as root), then cc program.c -lascendcl -lnnopbase -lopapi"
fi
