/* memo.h - what the relay wrote down of its slot (sql/state.sql), and what that tells.
 *
 * The slot alone is the position; the memo only helps to notice that somebody else moved
 * it.  The rule that makes it tell something: the slot is not told a position before the
 * memo names it or one beyond it.  What others write to the WAL may be confirmed a little
 * beyond the memo, or the memo's own WAL would call for the next memo for ever.
 *
 * See docs/decisions/0011-a-memo-of-the-slot.md. */
#ifndef WALRELAY_CORE_MEMO_H
#define WALRELAY_CORE_MEMO_H

#include "base/lsn.h"
#include "core/history.h"

#include <stdbool.h>
#include <stdint.h>

/* The memo's own WAL with all that follows it (a page's full image, the records that the
 * background writer and a checkpoint add) is well below that. */
#define MEMO_SLACK_BYTES ((lsn_t)16384)

struct memo {
    char system_id[24]; /* empty: there is no memo */
    uint32_t timeline;
    lsn_t confirmed;
    char written_at[40]; /* as the server writes it */
};

enum memo_verdict {
    MEMO_FITS,
    MEMO_CARRIED, /* the slot came along to another timeline: repetitions at most */
    MEMO_AHEAD,   /* somebody moved the slot or made it again */
    MEMO_OTHER_SYSTEM,
};

/* slot: where it stands on the server `now`.  branched: where that server's timeline left
 * the memo's, LSN_NONE if it is not known or the same.  Where it cannot tell, it fits. */
enum memo_verdict memo_judge(const struct memo *memo, const struct history *now,
                             lsn_t branched, lsn_t slot);

/* Where the timeline of a TIMELINE_HISTORY file left timeline; LSN_NONE: it never was on
 * it.  The file has lines of number, LSN and reason, separated by tabs. */
lsn_t memo_branch_point(const char *file, uint32_t timeline);

/* What may be told to the slot. */
struct memo_gate {
    bool open;   /* there is no memo to keep: everything */
    lsn_t named; /* the memo's position; LSN_NONE: none is written yet */
    lsn_t told;  /* the last position that was let through */
};

/* flushed if it may be told, else what was told before.  own: no message of ours lies
 * between it and flushed. */
lsn_t memo_pass(struct memo_gate *gate, lsn_t flushed, lsn_t own);
bool memo_lets_pass(const struct memo_gate *gate, lsn_t flushed, lsn_t own);

#endif
