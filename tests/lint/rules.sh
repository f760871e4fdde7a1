#!/bin/sh
# rules.sh SRC: what the architecture forbids and a compiler does not see.
#
# A file includes its own layer and those below it: base < core < io < app. Foreign libraries stay
# in one place each. There is one poll() in the loop, and one in io/pg.c for threads that may block,
# one exit(), one reader of time, no hidden state.
set -eu
src=$1
status=0

# rule TEXT LINES: complains when there are lines.
rule() {
  [ -z "$2" ] && return
  printf '%s:\n%s\n' "$1" "$2"
  status=1
}

# uses REGEX FILE-TO-LEAVE-OUT...: lines outside of comments that match, from all of src but those files.
uses() {
  pattern=$1
  shift
  for allowed; do set -- "$@" -e "^$src/$allowed:"; shift; done
  grep -rnE --include='*.[ch]' "$pattern" "$src" | grep -vE ':[0-9]+: *(/?\*|//)' | grep -v "$@" -e '^$' || true
}

# The foreign and the layered includes of one layer.
includes() {
  grep -rnE "^#include \"($2)/" "$src/$1" || true
}

rule "base includes only itself" "$(includes base 'core|io|app')"
rule "core includes core and base" "$(includes core 'io|app')"
rule "io includes io, core and base" "$(includes io 'app')"
rule "core and base know no sockets" "$(grep -rnE '^#include <(sys/socket|netinet|netdb|poll|sys/epoll)' "$src/core" "$src/base" || true)"
rule "libpq stays in io/pg.c and io/pg_params.c" "$(uses '^#include <libpq' io/pg.c io/pg_params.c)"
rule "librdkafka stays in io/producer*.c and io/kafka_error.c" \
  "$(uses '^#include <librdkafka' 'io/producer[a-z_]*.c' io/kafka_error.c)"
rule "libmicrohttpd stays in io/httpd.c" "$(uses '^#include <microhttpd' io/httpd.c)"
rule "no foreign type in a header" "$(grep -rnE --include='*.h' '^#include <(libpq|librdkafka|jansson|ini_|microhttpd)' "$src" || true)"
rule "only base/clock.c reads the time" "$(uses '\b(clock_gettime|gettimeofday|time)\(' base/clock.c)"
rule "only main.c exits" "$(uses '\b_?exit\(' main.c)"
rule "a static local is hidden state" "$(uses '^[[:space:]]+static ' | grep -vE 'static const ' || true)"

polls=$(uses '\bpoll\(' io/pg.c)
[ "$(printf '%s' "$polls" | grep -c .)" -le 1 ] || rule "there is one poll()" "$polls"

long=$(find "$src" -name '*.[ch]' -exec wc -l {} + | awk '$2 != "total" && $1 > 500 { print $2 ": " $1 " lines" }')
rule "files have at most 500 lines" "$long"
exit $status
