#!/bin/sh
# search.sh VERDICT DIRECTORY SPIN_FLAGS CC_FLAGS PAN_FLAGS [REPLAY]: docs/model/walrelay.pml in all its states.
#
# VERDICT holds: no violation, in a complete search.  VERDICT sought: none found in ten seconds.
# VERDICT found: there is one; and if REPLAY is given, core/ledger.c does not do what the model did
# in that counterexample.  Anything that keeps spin from searching fails, whatever the VERDICT.
set -eu
verdict=$1 directory=$2 spin_flags=$3 cc_flags=$4 pan_flags=$5 replay=${6-}
top=$(cd "$(dirname "$0")/../.." && pwd)
command -v "${SPIN:=spin}" >/dev/null || { echo 'spin is missing: ./dev deps'; exit 1; }
rm -rf "$directory"
mkdir -p "$directory"
cd "$directory"
cp "$top"/docs/model/*.pml .

fail() {
  printf '%s\n' "$1"
  tail -n 40 out
  exit 1
}

# shellcheck disable=SC2086 # flags are several words
{
  "$SPIN" -a $spin_flags walrelay.pml >out 2>&1 || fail 'spin -a failed'
  ! grep -q '^spin:' out || fail 'spin has something to say'
  cc -O -w $cc_flags -I "$top/src" -o pan pan.c >out 2>&1 || fail 'the verifier does not compile'
  case $verdict in
    sought) timeout -s INT 10 ./pan $pan_flags >out 2>&1 || true ;;
    *) ./pan $pan_flags >out 2>&1 || fail 'the verifier failed' ;;
  esac
}
grep -q 'errors: [0-9]' out || fail 'the verifier came to no verdict'
grep -E 'errors:|states, stored|elapsed time' out

if [ "$verdict" != found ]; then
  grep -q 'errors: 0$' out || fail "violated; spin -t -p $spin_flags walrelay.pml, in $directory, shows how"
  if grep -qE 'max search depth too small|out of memory' out; then fail 'the search is not complete'; fi
  [ "$verdict" = sought ] || ! grep -q 'Search not completed' out || fail 'the search is not complete'
  grep -qE '^ *[0-9]{3,} states, stored' out || fail 'hardly anything was searched'
  exit 0
fi

grep -qE '^pan:1: (assertion violated|acceptance cycle)' out || fail 'nothing was found'
[ -s walrelay.pml.trail ] || fail 'there is no counterexample'
[ -n "$replay" ] || exit 0
# shellcheck disable=SC2086
"$SPIN" -t -T -B $spin_flags walrelay.pml >run 2>&1 || true
grep '^ledger ' run >calls || fail 'no ledger calls in the counterexample'
status=0
"$replay" <calls >out 2>&1 || status=$?
case $status in
  0) fail 'core/ledger.c does the same as the mutation' ;;
  1) cat out ;;
  *) fail 'the counterexample cannot be replayed' ;;
esac
