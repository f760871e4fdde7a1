#!/bin/sh
# selftest.sh PROGRAM: path.py fails when it should, and says what grew.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
status=0
[ "$(uname -m)" = x86_64 ] || exit 77 # path.py skips

# expect TEXT BUDGET PROGRAM: path.py fails and says TEXT.
expect() {
  if /usr/bin/python3 -B "$here/path.py" "$3" --budget "$2" >"$tmp/out" 2>&1; then
    printf 'path.py passes, but should say: %s\n' "$1"
    status=1
  elif ! grep -qE -e "$1" "$tmp/out"; then
    printf 'path.py fails, but does not say: %s\n' "$1"
    cat "$tmp/out"
    status=1
  fi
}

# One that grew, among all that did not.
sed -e 's/^[0-9]* limit$/1000 limit/' -e 's/^[0-9]* router_message$/1 router_message/' "$here/budget" >"$tmp/budget"
expect ' 1 +\+[0-9]+  router_message' "$tmp/budget" "$program"
expect 'events, and of 0 instructions' "$here/budget" "$(command -v true)"
exit $status
