#!/bin/sh
# tidy.sh BUILD [FILE]: clang-tidy is content with every file of src, or with this one.
#
# BUILD holds compile_commands.json.  A file that passed is not looked at again until it, a header
# or the rules change: BUILD/tidy keeps a mark for each.
set -eu
build=$1

if [ $# -eq 1 ]; then
  mkdir -p "$build/tidy"
  find "$build/tidy" -type f -mtime +14 -exec rm -f {} +
  find src -name '*.c' -print0 | xargs -0 -n 1 -P "$(nproc)" sh "$0" "$build"
  exit
fi

mark=$build/tidy/$(cat .clang-tidy "$build/compile_commands.json" src/*/*.h "$2" | sha256sum | cut -c 1-32)
[ ! -e "$mark" ] || exit 0
report=$(clang-tidy -quiet -p "$build" "$2" 2>/dev/null) || { printf '%s\n' "$report"; exit 1; }
: >"$mark"
