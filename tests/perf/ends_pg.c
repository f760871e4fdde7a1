#include "base/must.h"
#include "core/pgwire.h"

#include "ends.h"

#include <stdlib.h>
#include <string.h>

struct pg {
    const struct frames *frames;
    size_t given;
    char told[PGWIRE_STATUS_BYTES];
};

struct pg *ends_pg(const struct frames *frames)
{
    struct pg *pg = calloc(1, sizeof(*pg));

    must(pg);
    pg->frames = frames;
    return pg;
}

void pg_close(struct pg *pg)
{
    free(pg);
}

int pg_send(struct pg *pg, const char *sql, struct err *err)
{
    (void)pg, (void)sql, (void)err;
    return 0;
}

int pg_socket(const struct pg *pg)
{
    (void)pg;
    return -1;
}

int pg_consume(struct pg *pg, struct err *err)
{
    (void)pg, (void)err;
    return 0;
}

int pg_copy_begun(struct pg *pg, struct err *err)
{
    (void)pg, (void)err;
    return 1;
}

/* As PQgetCopyData does it: a copy, with a byte behind it. */
int pg_copy_get(struct pg *pg, struct frame *ret, struct err *err)
{
    struct slice next;

    (void)err;
    if (pg->given == pg->frames->n)
        return 0;
    next = pg->frames->all[pg->given++];
    ret->bytes = malloc(next.len + 1);
    must(ret->bytes);
    memcpy(ret->bytes, next.ptr, next.len);
    ret->bytes[next.len] = '\0';
    ret->len = next.len;
    return 1;
}

int pg_copy_put(struct pg *pg, struct slice bytes, struct err *err)
{
    (void)err;
    must(bytes.len == sizeof(pg->told));
    memcpy(pg->told, bytes.ptr, bytes.len);
    return 0;
}

struct slice ends_told(const struct pg *pg)
{
    return (struct slice){pg->told, sizeof(pg->told)};
}

int pg_copy_end(struct pg *pg, struct err *err)
{
    (void)pg, (void)err;
    return 0;
}

int pg_flush(struct pg *pg, struct err *err)
{
    (void)pg, (void)err;
    return 0;
}
