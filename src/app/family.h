/* family.h - does a table belong to a configured one, as a partition or a child?
 *
 * Asked when a row comes whose table is younger than the catalog that the stream was
 * opened with. */
#ifndef WALRELAY_APP_FAMILY_H
#define WALRELAY_APP_FAMILY_H

#include "base/err.h"
#include "base/slice.h"
#include "core/config.h"
#include "io/job.h"
#include "io/pg.h"

#include <stdint.h>

enum family_verdict {
    FAMILY_MEMBER,   /* a partition or child of a configured table */
    FAMILY_STRANGER, /* it never was one, as far as the slot reaches back */
    FAMILY_LEFT,     /* it may have been one when the row was written: the table was
                      * detached, renamed or dropped since */
};

/* The work and the result of one question, asked in a job because it blocks. */
struct family {
    const struct config *config; /* read only while a job runs */
    struct pg *pg;               /* stays open from question to question; NULL at first */
    char *schema;
    char *name;

    struct err err; /* ERR_NONE, or why there is no answer */
    enum family_verdict verdict;
    int64_t asked_us; /* the server's clock when it was asked, microseconds since 1970:
                       * the verdict holds for what was committed before */
};

/* NULL with err set if no job can be started. */
struct job *family_ask(struct family *family, struct slice schema, struct slice name,
                       struct err *err) __attribute__((warn_unused_result));

/* Closes the connection; no job may run. */
void family_done(struct family *family);

#endif
