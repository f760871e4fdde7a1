/* secret.h - connection strings and properties as they may be shown to people. */
#ifndef WALRELAY_CORE_SECRET_H
#define WALRELAY_CORE_SECRET_H

#include "base/buf.h"

#include <stdbool.h>

/* Appends dsn, a connection string of libpq in either form, with ******** in the place
 * of passwords and keys.  What libpq would not understand is hidden as a whole, since
 * nobody can say where its password ends. */
void secret_add_dsn(struct buf *out, const char *dsn);

/* Does this property of librdkafka hold a secret? */
bool secret_is_property(const char *name);

#endif
