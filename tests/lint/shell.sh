#!/bin/sh
# shell.sh: shellcheck is content with every shell script of the tree.
set -eu
find dev .ci docker tests sql -type f 2>/dev/null | while read -r file; do
  if [ "${file##*.}" = sh ] || head -n 1 "$file" | LC_ALL=C grep -aqE '^#!.*/(ba)?sh'; then
    printf '%s\0' "$file"
  fi
done | xargs -0 shellcheck
