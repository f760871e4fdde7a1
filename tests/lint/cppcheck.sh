#!/bin/sh
# cppcheck.sh: cppcheck is content with src.
set -eu
cppcheck -q --enable=warning,performance,portability --inline-suppr --error-exitcode=1 --std=c11 -I src src
