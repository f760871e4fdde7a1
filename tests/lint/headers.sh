#!/bin/sh
# headers.sh SRC [CC]: every header compiles by itself.
set -eu
src=$1 cc=${2:-cc} status=0
for header in "$src"/*/*.h; do
  "$cc" -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -I "$src" -fsyntax-only -x c "$header" \
    -Wno-unused-function 2>&1 || status=1
done
exit $status
