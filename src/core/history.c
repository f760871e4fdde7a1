#include "core/history.h"

#include <string.h>

lsn_t history_start(const struct history *then, const struct history *now, lsn_t flushed)
{
    if (then->timeline == 0 || then->timeline != now->timeline ||
        strcmp(then->system_id, now->system_id) != 0 || flushed > now->wal_end)
        return LSN_NONE;
    return flushed;
}
