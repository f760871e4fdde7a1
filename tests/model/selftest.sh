#!/bin/sh
# selftest.sh REPLAY DIRECTORY: search.sh passes and fails when it should, and says why.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
replay=$1 directory=$2
small='-DRELAYS=1 -DTXNS=1 -DROWS=1 -DFAULTS=1 -DSPREAD=1'
wrong="$small -Dd_step=atomic -DM_COMMIT_START"
safety='-O0 -DSAFETY'
status=0

# expect TEXT ARGUMENT...: search.sh says TEXT, and passes if TEXT is that of a passed search only.
expect() {
  text=$1 wanted=fails verdict=fails
  shift
  [ "$text" != 'states, stored' ] || wanted=passes
  if sh "$here/search.sh" "$@" >"$directory.out" 2>&1; then verdict=passes; fi
  if [ "$verdict" != "$wanted" ] || ! grep -qF "$text" "$directory.out"; then
    printf 'search.sh %s; wanted: %s, with the text: %s\n' "$verdict" "$wanted" "$text"
    cat "$directory.out"
    status=1
  fi
}

expect 'states, stored' holds "$directory" "$small" "$safety" -m20000
expect 'states, stored' found "$directory" "$wrong" "$safety" -m20000 "$replay"
expect 'nothing was found' found "$directory" "$small" "$safety" -m20000
expect 'violated' holds "$directory" "$wrong" "$safety" -m20000
expect 'is not complete' holds "$directory" "$small" "$safety" -m30
expect 'does the same as the mutation' found "$directory" "$wrong" "$safety" -m20000 "$(command -v true)"
expect 'spin' found "$directory" '-DTXNS=?' "$safety" -m20000
expect 'does not compile' found "$directory" "$wrong" '-include no-such-file' -m20000
SPIN=no-such-program expect 'spin is missing' found "$directory" "$wrong" "$safety" -m20000
exit $status
