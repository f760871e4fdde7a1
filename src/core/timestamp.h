/* timestamp.h - PostgreSQL's timestamps as text, DateStyle ISO, TimeZone UTC. */
#ifndef WALRELAY_CORE_TIMESTAMP_H
#define WALRELAY_CORE_TIMESTAMP_H

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

/* "2026-11-30 09:15:02.114523+00", also without fraction or zone (then UTC), with a
 * zone of hours, minutes and seconds, a year of more than four digits, or " BC".
 * False, and *ret untouched, for anything else: infinity, -infinity, garbage, and the
 * last 30 years that PostgreSQL knows (from 294247 on), which no int64_t can count.
 * *ret is microseconds since 1970-01-01 UTC in the proleptic Gregorian calendar. */
bool timestamp_parse(struct slice text, int64_t *ret) __attribute__((warn_unused_result));

#endif
