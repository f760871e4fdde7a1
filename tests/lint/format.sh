#!/bin/sh
# format.sh: every C file is laid out as .clang-format says.
set -eu
find src tests -name '*.[ch]' -print0 | xargs -0 clang-format --dry-run -Werror
