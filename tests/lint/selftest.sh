#!/bin/sh
# selftest.sh WALRELAY CC: every check of this directory fails on a bad sample, and only there.
#
# Each sample is a small tree of its own; what is wrong with it is its one bad line.
set -eu
lint=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$lint/../.." && pwd)
walrelay=$1 cc=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
status=0

# tree: an empty project, and stands in it.
tree() {
  rm -rf "$tmp/tree"
  mkdir -p "$tmp/tree/src/base" "$tmp/tree/src/core" "$tmp/tree/src/io" "$tmp/tree/src/app" "$tmp/tree/tests"
  cp "$top/.clang-format" "$top/.clang-tidy" "$tmp/tree"
  cd "$tmp/tree"
}

# put FILE LINE...: a file of these lines.
put() {
  file=$1
  shift
  printf '%s\n' "$@" >"$file"
}

# expect VERDICT WHAT COMMAND...: passes or fails, as it should.
expect() {
  wanted=$1 what=$2
  shift 2
  if "$@" >"$tmp/out" 2>&1; then verdict=passes; else verdict=fails; fi
  [ "$verdict" = "$wanted" ] && return
  printf '%s: %s, but should not\n' "$what" "$verdict"
  sed 's/^/    /' "$tmp/out"
  status=1
}

# rule FILE LINE...: rules.sh fails on a tree that holds just this.
rule() {
  tree
  put "$@"
  expect fails "rules.sh: $2" sh "$lint/rules.sh" src
}

rules() {
  tree
  put src/base/a.h 'int a(void);'
  put src/core/a.c '#include "base/a.h"' '/* poll() and exit() and time(NULL) in a comment */' 'static int file_scope;'
  put src/io/pg.c '#include <libpq-fe.h>' '#include "core/a.h"'
  put src/io/producer.c '#include <librdkafka/rdkafka.h>' '    rd_kafka_poll(rk, 0);'
  put src/io/httpd.c '#include <microhttpd.h>'
  put src/app/relay.c '    poll(fds, 1, 0);' '    static const int table[] = {1};'
  put src/base/clock.c '    clock_gettime(id, &ts);'
  put src/main.c '    exit(0);'
  expect passes "rules.sh on a good tree" sh "$lint/rules.sh" src

  rule src/base/a.c '#include "core/b.h"'
  rule src/core/a.c '#include "io/b.h"'
  rule src/core/a.c '#include "app/b.h"'
  rule src/io/a.c '#include "app/b.h"'
  rule src/core/a.c '#include <sys/socket.h>'
  rule src/core/a.c '#include <libpq-fe.h>'
  rule src/io/sink.c '#include <libpq-fe.h>'
  rule src/io/pg.c '#include <librdkafka/rdkafka.h>'
  rule src/app/a.c '#include <microhttpd.h>'
  rule src/io/a.h '#include <jansson.h>'
  rule src/app/a.c '    now = time(NULL);'
  rule src/app/a.c '    clock_gettime(id, &ts);'
  rule src/app/a.c '    exit(1);'
  rule src/io/a.c '    _exit(1);'
  rule src/core/a.c '    static int calls;'

  tree
  put src/app/relay.c '    poll(fds, 1, 0);'
  put src/io/a.c '    poll(fds, 1, 0);'
  expect fails "rules.sh: a second poll" sh "$lint/rules.sh" src

  tree
  yes '/* */' | head -n 501 >src/core/long.c
  expect fails "rules.sh: 501 lines" sh "$lint/rules.sh" src
}

headers() {
  tree
  put src/core/a.h '#include <stddef.h>' 'size_t a(void);'
  expect passes "headers.sh" sh "$lint/headers.sh" src "$cc"
  put src/core/b.h 'size_t b(void);'
  expect fails "headers.sh: size_t of nowhere" sh "$lint/headers.sh" src "$cc"
}

format() {
  tree
  put src/core/a.c 'int a(void)' '{' '    return 1;' '}'
  expect passes "format.sh" sh "$lint/format.sh"
  put tests/a.c 'int a( void ) {' 'return 1; }'
  expect fails "format.sh: another style" sh "$lint/format.sh"
}

tidy() {
  tree
  printf '[{"directory":"%s","file":"src/core/a.c","command":"cc -std=c11 -c src/core/a.c"}]\n' "$PWD" \
    >compile_commands.json
  put src/core/a.h 'int a(const char *p);'
  put src/core/a.c '#include "a.h"' 'int a(const char *p)' '{' '    return *p;' '}'
  expect passes "tidy.sh" sh "$lint/tidy.sh" .
  expect passes "tidy.sh for the second time" sh "$lint/tidy.sh" .
  put src/core/a.h 'int a(const char *p);' '#define TWICE(x) x * 2'
  expect fails "tidy.sh: a macro without parentheses in a header" sh "$lint/tidy.sh" .
  put src/core/a.h 'int a(const char *p);'
  put src/core/a.c '#include "a.h"' 'int a(const char *p)' '{' '    if (p)' '        return 0;' '    return *p;' '}'
  expect fails "tidy.sh: a null pointer is read" sh "$lint/tidy.sh" .
  expect fails "tidy.sh for the second time" sh "$lint/tidy.sh" .
}

cppcheck_() {
  tree
  put src/core/a.c 'int a(void)' '{' '    int b[2] = {0, 0};' '    return b[2];' '}'
  expect fails "cppcheck.sh: beyond an array" sh "$lint/cppcheck.sh"
  put src/core/a.c 'int a(void)' '{' '    int b[2] = {0, 0};' '    return b[1];' '}'
  expect passes "cppcheck.sh" sh "$lint/cppcheck.sh"
}

shell() {
  tree
  # shellcheck disable=SC2016 # neither sample is to be expanded
  put tests/a.sh '#!/bin/sh' 'echo "$1"'
  expect passes "shell.sh" sh "$lint/shell.sh"
  # shellcheck disable=SC2016
  put tests/b.sh '#!/bin/sh' 'rm -rf $1/*'
  expect fails "shell.sh: no quotes" sh "$lint/shell.sh"
}

words() {
  tree
  # shellcheck disable=SC2016
  put src/core/a.c '/* docs/work/list, ../root/x, https://example.org/work/ */' '# $root/work/x'
  expect passes "words.sh" sh "$lint/words.sh"
  put src/core/b.c "/* see /wor""k/here/notes */"
  expect fails "words.sh: a path of one machine" sh "$lint/words.sh"
  put src/core/b.c '<<<<<<< mine'
  expect fails "words.sh: half a merge" sh "$lint/words.sh"
}

reference() {
  tree
  mkdir docs
  cp "$top/docs/reference.md" docs
  expect passes "reference.sh" sh "$lint/reference.sh" "$walrelay"
  sed -i 's/<!-- end of settings -->/a setting of yesterday\n&/' docs/reference.md
  expect fails "reference.sh: another setting" sh "$lint/reference.sh" "$walrelay"
}

rules
headers
format
tidy
cppcheck_
shell
words
reference
exit $status
