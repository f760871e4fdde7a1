/* unit.h - cmocka, and what its header wants included before it. */
#ifndef WALRELAY_TESTS_UNIT_H
#define WALRELAY_TESTS_UNIT_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
