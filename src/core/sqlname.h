/* sqlname.h - names as SQL writes them. */
#ifndef WALRELAY_CORE_SQLNAME_H
#define WALRELAY_CORE_SQLNAME_H

#include "base/buf.h"

/* Appends schema.name, each in double quotes if a lexer would not read it back as it
 * is (upper case, odd characters; PostgreSQL's quote_ident).  Key words are left
 * unquoted: this is for people. */
void sqlname_add(struct buf *out, const char *schema, const char *name);

#endif
