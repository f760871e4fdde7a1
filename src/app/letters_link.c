/* letters_link.c - the connection to the table of dead letters, and what that holds; see
 * letters.h. */
#include "app/dead_letters_load.h"
#include "app/letters.h"

#include <stdio.h>
#include <time.h>

enum { OURS_LOOKS = 200, OURS_LOOK_MS = 50 }; /* for the slot to become ours */

/* What another relay writes is complete when the slot is ours.  From where it streams. */
static int wait_until_ours(struct letters_link *link, lsn_t *from)
{
    char pid[16];
    const char *const params[] = {link->config->postgres.slot, pid};
    const struct timespec pause = {0, OURS_LOOK_MS * 1000000L};

    (void)snprintf(pid, sizeof(pid), "%d", link->walsender_pid);
    for (int i = 0; i < OURS_LOOKS; i++) {
        struct pg_result *found =
            pg_query(link->pg,
                     "SELECT confirmed_flush_lsn FROM pg_catalog.pg_replication_slots"
                     " WHERE slot_name = $1::text AND active_pid = $2::int",
                     2, params, &link->err);
        bool ours = found && pg_rows(found) == 1;

        if (ours && !lsn_parse(pg_value(found, 0, 0), from))
            *from = LSN_NONE;
        pg_result_free(found);
        if (ours || !found)
            return ours ? 0 : -1;
        (void)nanosleep(&pause, NULL);
    }
    link->lost = true;
    return err_set(&link->err, ERR_RETRY, "slot %s does not become active for PID %s",
                   link->config->postgres.slot, pid);
}

static int load(struct letters_link *link)
{
    lsn_t from;

    if (!link->held)
        return 0;
    if (wait_until_ours(link, &from) != 0)
        return -1;
    held_clear(link->held);
    return letters_load(link->pg, link->config, from > link->from ? from : link->from,
                        link->held, &link->err);
}

void letters_connect(void *arg)
{
    struct letters_link *link = arg;

    link->pg = pg_connect(link->config->postgres.dsn, PG_SQL, &link->err);
    if (!link->pg)
        return;
    if (deadletters_prepare(link->pg, &link->err) == 0 && load(link) == 0)
        return;
    pg_close(link->pg);
    link->pg = NULL;
}
