/* dead_letters_rows.h - rows of the table of dead letters, for people and programs. */
#ifndef WALRELAY_APP_DEAD_LETTERS_ROWS_H
#define WALRELAY_APP_DEAD_LETTERS_ROWS_H

#include "base/buf.h"
#include "base/err.h"
#include "io/pg.h"

#include <stdio.h>

/* Appends what a query must select for the functions below: the first column is the
 * row's id.  With payloads, or NULL in their place. */
void letters_select(struct buf *sql, bool payloads);

void letters_print_heading(FILE *out);
void letters_print_line(FILE *out, const struct pg_result *rows, int row);
int letters_print_whole(FILE *out, const struct pg_result *rows, int row, struct err *err)
    __attribute__((warn_unused_result));

/* One line.  Bytes are a string if they are UTF-8, else {"hex": "00ff"}. */
int letters_print_json(FILE *out, const struct pg_result *rows, int row, struct err *err)
    __attribute__((warn_unused_result));

#endif
