/* Any bytes as a message of wal2json: a change inside those bytes, or an error that
 * leaves the change alone. */
#include "core/wal2json.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct slice s, const char *bytes, size_t size)
{
    if (!s.ptr)
        return;
    if (s.ptr < bytes || s.ptr > bytes + size || s.len > (size_t)(bytes + size - s.ptr))
        abort();
}

static void check_change(const struct change *change, const char *bytes, size_t size)
{
    check_inside(change->schema, bytes, size);
    check_inside(change->table, bytes, size);
    if (change->kind == CHANGE_INSERT && (!change->schema.ptr || !change->table.ptr))
        abort();
    if (change->kind != CHANGE_INSERT && change->ncolumns > 0)
        abort();
    for (size_t i = 0; i < change->ncolumns; i++) {
        if (!change->columns[i].name.ptr)
            abort();
        check_inside(change->columns[i].name, bytes, size);
        check_inside(change->columns[i].value, bytes, size);
        check_inside(change->columns[i].type, bytes, size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct change change = {.kind = CHANGE_IDLE, .commit_us = 1, .ncolumns = 2};
    struct err err = {0};
    struct wal2json *decoder = wal2json_new();
    char *bytes = malloc(size ? size : 1);

    if (!decoder || !bytes)
        abort();
    if (size > 0)
        memcpy(bytes, data, size);
    if (wal2json_decode(decoder, bytes, size, &change, &err) == 0)
        check_change(&change, bytes, size);
    else if (err.class != ERR_POISON || change.kind != CHANGE_IDLE ||
             change.commit_us != 1 || change.ncolumns != 2)
        abort();
    free(bytes);
    wal2json_free(decoder);
    return 0;
}
