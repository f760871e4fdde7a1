#!/bin/sh
# reference.sh WALRELAY [--update]: the settings in docs/reference.md are those of the program.
#
# They stand between two comments and come from the table of settings; --update writes them anew.
set -eu
walrelay=$1
page=docs/reference.md
new=$(mktemp)
trap 'rm -f "$new"' EXIT

{
  sed '/^<!-- settings: /q' "$page"
  echo
  "$walrelay" config --reference
  echo
  sed -n '/^<!-- end of settings -->/,$p' "$page"
} >"$new"
if [ "${2-}" = --update ]; then
  cat "$new" >"$page"
elif ! diff -u "$page" "$new"; then
  echo "docs/reference.md is not what the program says: sh tests/lint/reference.sh $walrelay --update"
  exit 1
fi
