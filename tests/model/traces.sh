#!/bin/sh
# traces.sh REPLAY DIRECTORY: core/ledger.c does what the model's ledger does in random runs of
# docs/model/walrelay.pml, longer than any that can be searched; the seeds are fixed.
set -eu
replay=$1 directory=$2
top=$(cd "$(dirname "$0")/../.." && pwd)
bounds='-DRELAYS=2 -DTXNS=12 -DROWS=24 -DROWS_EACH=3 -DCAP=3 -DFAULTS=9 -DREST=12 -DLATE_ACKS -DLATE_REQUESTS -DEXACT_TICKETS -DANY_WAL=1'
command -v spin >/dev/null || { echo 'spin is missing: ./dev deps'; exit 1; }
rm -rf "$directory"
mkdir -p "$directory"
cd "$directory"
cp "$top"/docs/model/*.pml .

: >kinds
for seed in $(seq 1 40); do
  # shellcheck disable=SC2086 # several words
  spin -T -B -n"$seed" -u200000 $bounds walrelay.pml >run 2>&1 || { echo "seed $seed: spin failed"; tail -n 5 run; exit 1; }
  if grep -qE '^spin:|depth-limit' run; then echo "seed $seed: no whole run"; tail -n 5 run; exit 1; fi
  grep '^ledger ' run >calls || { echo "seed $seed: no ledger calls"; exit 1; }
  "$replay" <calls >out || { echo "seed $seed, $directory/calls:"; cat out; exit 1; }
  cut -d ' ' -f 3 calls >>kinds
done
sort kinds | uniq -c
for kind in n b a c k i r; do
  [ "$(grep -c "^$kind" kinds)" -ge 100 ] || { echo "hardly any $kind: the traces show nothing"; exit 1; }
done
