#!/bin/sh
# tidy.sh BUILD [FILE]: clang-tidy is content with every file of src, or with this one.
#
# BUILD holds compile_commands.json.  A file that passed is not looked at again until it, a header
# that it includes, its flags or the rules change: BUILD/tidy keeps a mark for each.
set -eu
build=$1

if [ $# -eq 1 ]; then
  mkdir -p "$build/tidy"
  find "$build/tidy" -type f -mtime +14 -exec rm -f {} +
  find src -name '*.c' -print0 | xargs -0 -n 1 -P "$(nproc)" sh "$0" "$build"
  exit
fi

file=$2
needs=$(cc -MM -I src "$file")
needs=$(printf '%s' "${needs#*:}" | tr '\134\n' '  ')
flags=$(grep -F "$file" "$build/compile_commands.json")
# shellcheck disable=SC2086 # the names of our files have no spaces
mark=$build/tidy/$({ printf '%s\n' "$flags"; cat .clang-tidy $needs; } | sha256sum | cut -c 1-32)
[ ! -e "$mark" ] || exit 0
report=$(clang-tidy -quiet -p "$build" "$file" 2>/dev/null) || { printf '%s\n' "$report"; exit 1; }
: >"$mark"
