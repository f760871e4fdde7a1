#!/bin/sh
# words.sh: no path that exists on one machine only, no mark of an unfinished merge.
set -eu
found=$(grep -rnIE --exclude-dir=build --exclude-dir=.git --exclude=.git \
  -e '(^|[^A-Za-z0-9_.$}])/(work|root|home/[a-z]+)/' -e '^(<<<<<<<|>>>>>>>) ' . || true)
[ -z "$found" ] || { printf 'these hold only here:\n%s\n' "$found"; exit 1; }
