#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_bare_debian.sh [suite] [compiler]: a bare Debian (bookworm, trixie, sid; default: this machine's own) in a folder,
# made by debootstrap, on which the two commands, an installation below /usr/local and a package are tried with one
# compiler alone (default clang-19, the newest that Debian 12 has). Needs root, debootstrap and the network.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
suite=${1:-$(. /etc/os-release && echo "${VERSION_CODENAME:-}")} compiler=${2:-clang-19}
skip() {
  echo "skipped: bare Debian: $1"
  exit 0
}
[ "$(id -u)" -eq 0 ] || skip "a chroot needs root"
command -v debootstrap > /dev/null || skip "there is no debootstrap here (make deps WHAT=ci)"
[ -e "/usr/share/debootstrap/scripts/$suite" ] || skip "debootstrap does not know '$suite'"

bare=$(mktemp -d)
finish() {
  ! mountpoint -q "$bare/proc" || umount "$bare/proc"
  rm -rf --one-file-system "$bare" "$bare".*
}
trap finish EXIT
chmod 755 "$bare"
step() { echo "-- $1 ($SECONDS s)"; }
if [ -n "${BARE:-}" ]; then  # one that debootstrap made before
  cp -a "$BARE/." "$bare"
else
  step "debootstrap $suite"
  debootstrap --variant=minbase --include=make "$suite" "$bare" > "$bare.log" 2>&1 ||
    { tail -20 "$bare.log"; skip "debootstrap could not make one"; }
fi
mount -t proc proc "$bare/proc" 2> /dev/null || skip "/proc cannot be mounted in a chroot here"
mkdir "$bare/poolgrad"
(cd "$root" && git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf -) | tar -xf - -C "$bare/poolgrad"

within() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$bare" bash -euo pipefail -c "cd /poolgrad; $1"; }
quiet() { within "$1" > "$bare/log" 2>&1 || { cat "$bare/log"; exit 1; }; }
links='cc=$(command -v '$compiler'); $cc tests/install/client.c -lascendcl -lnnopbase -lopapi -o /client; [ "$(/client)" = "client ok" ]'

step "nothing is installed against one's will"
! within "POOLGRAD_DEPS=no make run CC=$compiler" > "$bare/log" 2>&1 || { cat "$bare/log"; exit 1; }
grep -q "what is missing: $compiler" "$bare/log"

step "make run CC=$compiler"
within "make run CC=$compiler" > "$bare/log" 2>&1 ||
  { cat "$bare/log"; exit 1; }
grep -q "apt-get install -y .*$compiler" "$bare/log" && grep -q "Need to get .*B of archives" "$bare/log" &&
  grep -q "POOLGRAD_DEPS=no" "$bare/log"  # what, how much, how to refuse
grep -E "^deps:|apt-get install|Need to get|After this|^cuda:|examples ran" "$bare/log"
case $compiler in clang*) within '! command -v gcc' ;; esac
within '! command -v g++ && ! pkg-config --exists cmocka' 2> /dev/null

step "make install PREFIX=/usr/local, found by loader and pkg-config"
quiet "apt-get install -y -qq --no-install-recommends pkg-config; make install PREFIX=/usr/local CC=$compiler; ldconfig; $links;
  $compiler tests/install/client.c \$(pkg-config --cflags --libs poolgrad) -o /client; /client; make uninstall PREFIX=/usr/local; ldconfig"
within '! ls /usr/local/lib/libpoolgrad* /usr/local/include/poolgrad.h /usr/local/share/poolgrad 2> /dev/null'

step "make package, its installation, use and removal"
quiet "make package CC=$compiler; mv build/release/*.deb /"
within 'find / -xdev \( -path /proc -o -path /poolgrad -o -path /var -o -path /tmp -o -path /root \) -prune -o -print | sort' > "$bare.before"
quiet "dpkg -i /poolgrad_*.deb; $links; cmake -S tests/install/find_package -B /tmp/found -DCMAKE_C_COMPILER=\$(command -v $compiler);
  cmake --build /tmp/found; /tmp/found/client; rm -rf /client /tmp/found; dpkg -r poolgrad"
within 'find / -xdev \( -path /proc -o -path /poolgrad -o -path /var -o -path /tmp -o -path /root \) -prune -o -print | sort' |
  grep -vxF /client > "$bare.after"
diff <(grep -vxF /client "$bare.before") "$bare.after"

step "make test: the checks that compile"
quiet "bash tools/deps.sh test; bash tools/configure.sh release -DBUILD_TESTING=ON -DCMAKE_INSTALL_PREFIX=/poolgrad/build/prefix; ctest --test-dir build/release --output-on-failure -R '^(abi|headers|install|examples|hardening|symbols)\$'"
echo "bare $suite ok with $compiler ($SECONDS s)"
