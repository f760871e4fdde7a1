/* Any bytes as a CopyBoth payload: a message inside those bytes, or an error that
 * leaves the message alone. */
#include "core/pgwire.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct slice in = {(const char *)data, size};
    struct pgwire_msg msg = {.lsn = 42};
    struct err err = {0};
    char status[PGWIRE_STATUS_BYTES];

    if (pgwire_decode(in, &msg, &err) != 0) {
        if (err.class != ERR_INTERNAL || msg.lsn != 42)
            abort();
        return 0;
    }
    if (msg.kind == PGWIRE_DATA && msg.data.ptr + msg.data.len != in.ptr + in.len)
        abort();
    /* position and clock survive the way back */
    pgwire_encode_status(status, msg.lsn, msg.sent_us, msg.reply_asked);
    if (memcmp(status + 1, data + 1, sizeof(uint64_t)) != 0)
        abort();
    return 0;
}
