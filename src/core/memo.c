#include "core/memo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum memo_verdict memo_judge(const struct memo *memo, const struct history *now,
                             lsn_t branched, lsn_t slot)
{
    if (!memo->system_id[0])
        return MEMO_FITS;
    if (strcmp(memo->system_id, now->system_id) != 0)
        return MEMO_OTHER_SYSTEM;
    /* The first thing that happens on a new timeline is a memo: a slot that stands on it
     * without one was not moved there by a relay. */
    if (memo->timeline != now->timeline)
        return branched != LSN_NONE && slot > branched ? MEMO_AHEAD : MEMO_CARRIED;
    if (slot > memo->confirmed && slot - memo->confirmed > MEMO_SLACK_BYTES)
        return MEMO_AHEAD;
    return MEMO_FITS;
}

lsn_t memo_branch_point(const char *file, uint32_t timeline)
{
    for (const char *line = file; line && *line;) {
        const char *next = strchr(line, '\n');
        char lsn[32];
        char *tab;
        lsn_t ret;

        if (strtoul(line, &tab, 10) == timeline && *tab == '\t' &&
            sscanf(tab, " %31[0-9A-F/]", lsn) == 1 && lsn_parse(lsn, &ret))
            return ret;
        line = next ? next + 1 : NULL;
    }
    return LSN_NONE;
}

bool memo_lets_pass(const struct memo_gate *gate, lsn_t flushed, lsn_t own)
{
    if (gate->open || flushed <= gate->named)
        return true;
    return gate->named != LSN_NONE && own <= gate->named &&
           flushed - gate->named <= MEMO_SLACK_BYTES;
}

lsn_t memo_pass(struct memo_gate *gate, lsn_t flushed, lsn_t own)
{
    if (memo_lets_pass(gate, flushed, own))
        gate->told = flushed;
    return gate->told;
}
