#include "base/random.h"
#include "core/window.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 64, BYTES = 32768, ROUNDS = 60000 };

/* ---- the model: each message as it was given, in memory of its own ------------------
 */

struct expected {
    bool done;
    char *key; /* NULL: absent */
    size_t key_len;
    char *payload;
    size_t payload_len;
    char value[8]; /* of the one header */
    char event_id[24];
};

struct model {
    struct window *window;
    struct expected expected[2 * ENTRIES];
    window_seq_t begin;
    window_seq_t end;
    uint64_t random;
};

static struct expected *expected_of(struct model *m, window_seq_t seq)
{
    return &m->expected[seq % COUNT(m->expected)];
}

static char *random_bytes(struct model *m, size_t len)
{
    char *bytes = malloc(len + 1);

    assert_non_null(bytes);
    memset(bytes, (int)(random_next(&m->random) & 0xff), len);
    return bytes;
}

static size_t random_len(struct model *m)
{
    static const size_t most[] = {1, 8, 100, 3000, BYTES / 2, BYTES};

    return random_next(&m->random) % most[random_next(&m->random) % COUNT(most)];
}

static struct expected invent(struct model *m)
{
    struct expected e = {0};

    if (random_next(&m->random) % 4 != 0) {
        e.key_len = random_next(&m->random) % 20;
        e.key = random_bytes(m, e.key_len);
    }
    if (random_next(&m->random) % 8 != 0) {
        e.payload_len = random_len(m);
        e.payload = random_bytes(m, e.payload_len);
    }
    (void)snprintf(e.value, sizeof(e.value), "%u",
                   (unsigned)(random_next(&m->random) % 100000));
    (void)snprintf(e.event_id, sizeof(e.event_id), "id-%u",
                   (unsigned)(random_next(&m->random) % 100000));
    return e;
}

static void forget(struct expected *e)
{
    free(e->key);
    free(e->payload);
    *e = (struct expected){0};
}

static void must_be_intact(struct model *m, window_seq_t seq)
{
    const struct entry *entry = window_entry(m->window, seq);
    const struct expected *e = expected_of(m, seq);

    assert_int_equal(entry->ticket, seq);
    assert_true(slice_eq(entry->key, (struct slice){e->key, e->key_len}));
    assert_true(slice_eq(entry->payload, (struct slice){e->payload, e->payload_len}));
    assert_int_equal(entry->nheaders, 1);
    assert_true(slice_eq(entry->headers[0].name, slice_of("h")));
    assert_true(slice_eq(entry->headers[0].value, slice_of(e->value)));
    assert_true(slice_eq(entry->event_id, slice_of(e->event_id)));
    assert_null(entry->aggregate_id.ptr);
}

static void must_match(struct model *m)
{
    size_t pending = 0;
    size_t cost = 0;

    assert_int_equal(window_begin(m->window), m->begin);
    assert_int_equal(window_end(m->window), m->end);
    for (window_seq_t seq = m->begin; seq != m->end; seq++) {
        cost += window_entry(m->window, seq)->cost_bytes;
        if (expected_of(m, seq)->done)
            continue;
        pending++;
        must_be_intact(m, seq);
    }
    assert_int_equal(window_pending(m->window), pending);
    assert_int_equal(window_cost_bytes(m->window), cost);
    assert_true(cost <= 2 * BYTES || m->end - m->begin == 1);
}

static void try_to_add(struct model *m)
{
    struct expected e = invent(m);
    struct header header = {slice_of("h"), slice_of(e.value)};
    struct message message = {
        .key = {e.key, e.key_len},
        .payload = {e.payload, e.payload_len},
        .headers = &header,
        .nheaders = 1,
        .event_id = slice_of(e.event_id),
    };
    bool added = window_add(m->window, &message, m->end);

    /* an empty window takes everything */
    assert_true(added || m->begin != m->end);
    if (!added) {
        forget(&e);
        return;
    }
    *expected_of(m, m->end++) = e;
    if (random_next(&m->random) % 2)
        window_entry(m->window, m->end - 1)->state = ENTRY_SENT;
}

static void finish_one(struct model *m)
{
    window_seq_t seq;

    if (m->begin == m->end)
        return;
    seq = m->begin + random_next(&m->random) % (m->end - m->begin);
    if (random_next(&m->random) % 2)
        seq = m->begin;
    if (expected_of(m, seq)->done)
        return;
    window_mark_done(m->window, seq);
    expected_of(m, seq)->done = true;
    while (m->begin != m->end && expected_of(m, m->begin)->done)
        forget(expected_of(m, m->begin++));
}

static void clear(struct model *m)
{
    window_clear(m->window);
    while (m->begin != m->end)
        forget(expected_of(m, m->begin++));
}

/* Refused while what was there before the last time is not gone. */
static void resize(struct model *m)
{
    size_t times = 1 + random_next(&m->random) % 2;
    size_t before = window_max_entries(m->window);

    if (window_resize(m->window, ENTRIES * times, BYTES * times)) {
        assert_int_equal(window_max_entries(m->window), ENTRIES * times);
        assert_int_equal(window_max_bytes(m->window), BYTES * times);
    } else {
        assert_true(m->begin != m->end);
        assert_int_equal(window_max_entries(m->window), before);
    }
}

static void messages_stay_intact_until_they_are_done_in_any_order(void **state)
{
    struct model m = {.window = window_new(ENTRIES, BYTES), .random = 88172645463325252u};

    (void)state;
    assert_non_null(m.window);
    assert_int_equal(window_max_entries(m.window), ENTRIES);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t dice = random_next(&m.random) % 1000;

        if (dice == 0)
            clear(&m);
        else if (dice < 4)
            resize(&m);
        else if (dice < 520)
            try_to_add(&m);
        else
            finish_one(&m);
        must_match(&m);
    }
    clear(&m);
    window_free(m.window);
}

static struct window *new_window(size_t max_entries, size_t max_bytes)
{
    struct window *window = window_new(max_entries, max_bytes);

    assert_non_null(window);
    return window;
}

static void it_is_full_when_its_entries_are_used_up(void **state)
{
    struct window *window = new_window(ENTRIES, 1 << 20);
    struct message message = {0};

    (void)state;
    for (ticket_t t = 0; t < ENTRIES; t++)
        assert_true(window_add(window, &message, t));
    assert_false(window_add(window, &message, ENTRIES));
    window_mark_done(window, 1); /* keeps its place */
    assert_false(window_add(window, &message, ENTRIES));
    window_mark_done(window, 0);
    assert_true(window_add(window, &message, ENTRIES));
    assert_true(window_add(window, &message, ENTRIES + 1));
    assert_false(window_add(window, &message, ENTRIES + 2));
    window_free(window);
}

static void absent_stays_absent_and_empty_stays_empty(void **state)
{
    struct window *window = new_window(ENTRIES, BYTES);
    struct message message = {.key = slice_of(""), .payload = {NULL, 0}};
    const struct entry *entry;

    (void)state;
    assert_true(window_add(window, &message, 0));
    entry = window_entry(window, 0);
    assert_non_null(entry->key.ptr);
    assert_int_equal(entry->key.len, 0);
    assert_null(entry->payload.ptr);
    window_free(window);
}

static void the_commit_time_takes_the_place_of_the_timestamp_once(void **state)
{
    struct window *window = new_window(ENTRIES, BYTES);
    struct header header = {slice_of("h"), slice_of("v")};
    char given[] = "1970-01-01";
    struct message message = {.headers = &header,
                              .nheaders = 1,
                              .payload = slice_of("payload"),
                              .timestamp_ms = 1,
                              .commit_ms = 2,
                              .given_timestamp = slice_of(given)};
    struct entry *entry;

    (void)state;
    assert_true(window_add(window, &message, 0));
    memset(given, 'x', sizeof(given));
    entry = window_entry(window, 0);
    assert_int_equal(entry->timestamp_ms, 1);
    assert_true(window_use_commit_time(entry));
    assert_false(window_use_commit_time(entry));
    assert_int_equal(entry->timestamp_ms, 2);
    assert_int_equal(entry->nheaders, 2);
    assert_true(slice_eq(entry->headers[0].name, slice_of("h")));
    assert_true(slice_eq(entry->headers[0].value, slice_of("v")));
    assert_true(slice_eq(entry->headers[1].name, slice_of(HEADER_GIVEN_TIMESTAMP)));
    assert_true(slice_eq(entry->headers[1].value, slice_of("1970-01-01")));
    assert_true(slice_eq(entry->payload, slice_of("payload")));
    window_free(window);
}

static void without_a_timestamp_column_there_is_nothing_to_replace(void **state)
{
    struct window *window = new_window(ENTRIES, BYTES);
    struct message message = {.timestamp_ms = 1, .commit_ms = 2};

    (void)state;
    assert_true(window_add(window, &message, 0));
    assert_false(window_use_commit_time(window_entry(window, 0)));
    assert_int_equal(window_entry(window, 0)->timestamp_ms, 1);
    window_free(window);
}

static void what_people_read_is_kept_once(void **state)
{
    enum { LONG = 1000 };
    struct window *window = new_window(ENTRIES, BYTES);
    char id[LONG];
    char key[LONG];
    struct header header = {slice_of("id"), {id, LONG}};
    struct message message = {.headers = &header,
                              .nheaders = 1,
                              .key = {key, LONG},
                              .event_id = {id, LONG},
                              .aggregate_id = {key, LONG}};
    const struct entry *entry;

    (void)state;
    memset(id, 'i', LONG);
    memset(key, 'k', LONG);
    assert_true(window_add(window, &message, 0));
    memset(id, 'x', LONG);
    memset(key, 'x', LONG);
    entry = window_entry(window, 0);
    assert_ptr_equal(entry->event_id.ptr, entry->headers[0].value.ptr);
    assert_ptr_equal(entry->aggregate_id.ptr, entry->key.ptr);
    assert_int_equal(entry->key.ptr[LONG - 1], 'k');
    assert_int_equal(entry->event_id.ptr[LONG - 1], 'i');
    /* here the two thousand bytes, in librdkafka the header once more */
    assert_in_range(window_cost_bytes(window), 3 * LONG, 4 * LONG - 1);
    window_free(window);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_stay_intact_until_they_are_done_in_any_order),
        cmocka_unit_test(it_is_full_when_its_entries_are_used_up),
        cmocka_unit_test(absent_stays_absent_and_empty_stays_empty),
        cmocka_unit_test(the_commit_time_takes_the_place_of_the_timestamp_once),
        cmocka_unit_test(without_a_timestamp_column_there_is_nothing_to_replace),
        cmocka_unit_test(what_people_read_is_kept_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
