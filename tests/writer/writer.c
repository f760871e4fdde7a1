/* writer DSN SLOT WHAT - writes dead letters as the relay does, on a real server.
 *
 * dead_letter_writer_test.py calls it and looks at the table.  WHAT is
 *   rows     100 rows of odd bytes, then the same again
 *   end      two rows of an open transaction and one of another; the end of the first
 *            one; the last row again, with its end
 *   foreign  one row, for a PID that does not stream from the slot
 *   many     10,000 rows
 *   attempts resolves the rows 1 and 2, and lets 3, 4 and 5 fail once more of two times
 *   load     nothing: prints what is held at the start of a stream from 2/0, and which
 *            of the places 1/0 to 1/9 are known
 * The exit code is 0 if all of it is durable; otherwise the reason is on stdout. */
#include "app/dead_letters_load.h"
#include "core/pgwire.h"
#include "io/deadletters.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum { WAIT_MS = 60000, MANY = 10000 };

static char words[] = "public";
static struct deadletters *letters;
static struct pg *replication;

static int wait_for_end(struct err *err)
{
    for (;;) {
        struct pollfd fd = deadletters_fd(letters);
        int rc = poll(&fd, 1, WAIT_MS) == 1 ? deadletters_serve(letters, err)
                                            : err_set(err, ERR_RETRY, "no answer");

        if (rc != 0)
            return rc < 0 ? -1 : 0;
    }
}

static const char odd_payload[] = "\0\xff\"'\\{}";
static const struct header headers[] = {
    {{"id", 2}, {"1", 1}},
    {{"a\"b\\,{}", 7}, {"\0\xff", 2}},
    {{"empty", 5}, {"", 0}},
};

static struct message odd_message(void)
{
    return (struct message){
        .topic = slice_of("t"),
        .key = {"\xff\0", 2},
        .payload = {odd_payload, sizeof(odd_payload) - 1},
        .headers = headers,
        .nheaders = 3,
        .partition = 7,
        .timestamp_ms = 1764496800123,
        .given_timestamp = slice_of("2025-11-30 10:00:00.123+00"),
        .table = slice_of("public.\"Odd\""),
        .event_id = {"\xff\xad", 2},
        .event_type = slice_of("na\xc3\xafve"),
        .aggregate_id = slice_of(""),
    };
}

static const struct message plain_message = {.partition = PARTITION_ANY,
                                             .table = {"public.t", 8}};

static struct dead_letter letter_of(const struct message *message, unsigned n)
{
    return (struct dead_letter){
        .place = {0x100000000u + n / 2, 1 + n % 2, 1764496800000001 + n / 2},
        .begin = 0x100000000u,
        .end = 0x200000000u,
        .message = message,
        .held = n % 3 == 1,
        .reason = slice_of("too large"),
        .error_code = slice_of("MSG_SIZE_TOO_LARGE"),
        .error = slice_of("Broker: Message size too large"),
        .attempts = n % 3 != 1,
        .retry_ms = 10000,
    };
}

/* Whoever says nothing is dropped. */
static int say_something(struct err *err)
{
    char status[PGWIRE_STATUS_BYTES];

    pgwire_encode_status(status, LSN_NONE, 0, false);
    return pg_consume(replication, err) < 0
               ? -1
               : pg_copy_put(replication, (struct slice){status, sizeof(status)}, err);
}

static int write_all(const struct dead_letter *all, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i += DEADLETTERS_MAX) {
        size_t some = n - i < DEADLETTERS_MAX ? n - i : DEADLETTERS_MAX;

        if (deadletters_write(letters, all + i, some, err) < 0 || wait_for_end(err) < 0 ||
            say_something(err) < 0)
            return -1;
    }
    return 0;
}

static int write_rows(size_t n, int times, struct err *err)
{
    struct message odd = odd_message();
    struct dead_letter *all = calloc(n, sizeof(*all));
    int rc = 0;

    for (size_t i = 0; all && i < n; i++)
        all[i] = letter_of(i % 2 == 0 ? &odd : &plain_message, (unsigned)i);
    for (int i = 0; i < times && rc == 0; i++)
        rc = write_all(all, n, err);
    free(all);
    return rc;
}

static int write_end(struct err *err)
{
    struct dead_letter all[3];
    struct dead_letter *last = &all[2];

    for (unsigned n = 0; n < 3; n++) {
        all[n] = letter_of(&plain_message, 2 * n);
        all[n].place.commit_us = 1764496800000001;
        all[n].end = LSN_NONE;
    }
    last->begin++; /* of another transaction */
    if (write_all(all, 3, err) < 0 ||
        deadletters_end(letters, all[0].begin, all[0].place.commit_us, 0x300000000u,
                        err) < 0 ||
        wait_for_end(err) < 0)
        return -1;
    last->end = 0x400000000u;
    return write_all(last, 1, err);
}

static int load(char **argv, struct err *err)
{
    struct config config = {.postgres.slot = argv[2], .dead_letters.schema = words};
    struct held *held = held_new((struct held_limits){1, 1, 1, false});
    struct pg *sql = pg_connect(argv[1], PG_SQL, err);
    int rc = sql ? letters_load(sql, &config, 0x200000000u, held, err) : -1;
    bool has_end;

    (void)printf("keys %zu events %zu\n", held_keys(held), held_events(held));
    for (unsigned n = 0; n < 10; n++) {
        struct place place = {0x100000000u + n, 1, 1764496800000000};

        if (held_known(held, &place, n, &has_end))
            (void)printf("known %u%s\n", n, has_end ? "" : " open");
    }
    (void)printf("free %d\n", held_is_empty(held));
    held_free(held);
    pg_close(sql);
    return rc;
}

static int change_rows(struct err *err)
{
    const char *const done[] = {"1", "2"};
    const char *const failed[] = {"3", "4", "5"};

    if (deadletters_resolve(letters, done, 2, err) < 0 || wait_for_end(err) < 0)
        return -1;
    for (size_t i = 0; i < 3; i++) {
        struct deadletters_failure failure = {.id = failed[i],
                                              .reason = slice_of("not known"),
                                              .error = slice_of("odd"),
                                              .max_attempts = 2,
                                              .retry_ms = 60000};

        if (deadletters_fail(letters, &failure, err) < 0 || wait_for_end(err) < 0)
            return -1;
    }
    return 0;
}

static int obey(const char *what, struct err *err)
{
    switch (*what) {
    case 'a':
        return change_rows(err);
    case 'r':
        return write_rows(DEADLETTERS_MAX, 2, err);
    case 'e':
        return write_end(err);
    case 'm':
        return write_rows(MANY, 1, err);
    default:
        return write_rows(1, 1, err);
    }
}

/* Streams from the slot, and has the writer's own connection. */
static int open_both(char **argv, struct err *err)
{
    struct deadletters_options options = {.schema = "public", .slot = argv[2]};
    struct pg *sql = pg_connect(argv[1], PG_SQL, err);
    char command[256];

    replication = pg_connect(argv[1], PG_REPLICATION, err);
    (void)snprintf(command, sizeof(command),
                   "START_REPLICATION SLOT %s LOGICAL 0/0 (\"format-version\" '2', "
                   "\"add-tables\" 'no.body')",
                   argv[2]);
    if (!sql || !replication || pg_send(replication, command, err) < 0 ||
        deadletters_prepare(sql, err) < 0) {
        pg_close(sql);
        return -1;
    }
    while (pg_copy_begun(replication, err) == 0) {
        struct pollfd fd = {pg_socket(replication), POLLIN, 0};

        if (poll(&fd, 1, WAIT_MS) != 1 || pg_consume(replication, err) < 0)
            break;
    }
    options.walsender_pid = *argv[3] == 'f' ? 1 : pg_backend_pid(replication);
    letters = deadletters_new(sql, &options, err);
    return letters && err->class == ERR_NONE ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct err err = {0};
    int rc = 2;

    if (argc == 4 && *argv[3] == 'l')
        rc = load(argv, &err) < 0;
    else if (argc == 4)
        rc = open_both(argv, &err) < 0 || obey(argv[3], &err) < 0;
    if (rc != 0)
        (void)printf("%s\n", err.text);
    deadletters_free(letters);
    pg_close(replication);
    return rc;
}
