#include "core/pgwire.h"

#include "unit.h"

#include <stdlib.h>

/* 2026-11-30 09:15:02.114523 UTC is 849345302114523 microseconds after 2000-01-01,
 * 0x000304799d0630db. */
#define CLOCK_BYTES "\x00\x03\x04\x79\x9d\x06\x30\xdb"
#define CLOCK_US    INT64_C(1796030102114523)

static const char keepalive[] = "k"
                                "\x00\x00\x00\x16\xb3\x74\xd8\x48" CLOCK_BYTES "\x01";
static const char data[] = "w"
                           "\x00\x00\x00\x16\xb3\x74\xd8\x48"
                           "\x00\x00\x00\x16\xb3\x74\xd8\x48" CLOCK_BYTES "{}";

enum { DATA_HEADER = 25 };

/* In memory of exactly its size, so that the address sanitizer sees any step beyond. */
static int decode(const char *bytes, size_t len, struct pgwire_msg *ret, struct err *err)
{
    char *exact = malloc(len ? len : 1);
    int rc;

    assert_non_null(exact);
    memcpy(exact, bytes, len);
    rc = pgwire_decode((struct slice){exact, len}, ret, err);
    free(exact);
    return rc;
}

static void a_keepalive_gives_position_clock_and_whether_to_reply(void **state)
{
    struct pgwire_msg msg;
    struct err err = {0};

    (void)state;
    assert_int_equal(decode(keepalive, sizeof(keepalive) - 1, &msg, &err), 0);
    assert_int_equal(msg.kind, PGWIRE_KEEPALIVE);
    assert_true(msg.lsn == UINT64_C(0x16b374d848));
    assert_true(msg.sent_us == CLOCK_US);
    assert_true(msg.reply_asked);
    assert_null(msg.data.ptr);
}

static void a_data_message_gives_position_clock_and_bytes(void **state)
{
    struct pgwire_msg msg;
    struct err err = {0};

    (void)state;
    assert_int_equal(pgwire_decode((struct slice){data, sizeof(data) - 1}, &msg, &err),
                     0);
    assert_int_equal(msg.kind, PGWIRE_DATA);
    assert_true(msg.lsn == UINT64_C(0x16b374d848));
    assert_true(msg.sent_us == CLOCK_US);
    assert_false(msg.reply_asked);
    assert_ptr_equal(msg.data.ptr, data + DATA_HEADER);
    assert_int_equal(msg.data.len, 2);
}

static void a_data_message_may_be_empty(void **state)
{
    struct pgwire_msg msg;
    struct err err = {0};

    (void)state;
    assert_int_equal(decode(data, DATA_HEADER, &msg, &err), 0);
    assert_int_equal(msg.data.len, 0);
}

static void every_truncated_message_is_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t whole;
    } messages[] = {{keepalive, sizeof(keepalive) - 1}, {data, DATA_HEADER}};

    (void)state;
    for (size_t i = 0; i < COUNT(messages); i++) {
        for (size_t len = 0; len < messages[i].whole; len++) {
            struct pgwire_msg msg = {.lsn = 42};
            struct err err = {0};

            assert_int_equal(decode(messages[i].bytes, len, &msg, &err), -1);
            assert_int_equal(err.class, ERR_INTERNAL);
            assert_true(msg.lsn == 42);
        }
    }
}

static void an_unknown_message_is_refused(void **state)
{
    struct pgwire_msg msg;
    struct err err = {0};

    (void)state;
    assert_int_equal(decode("x12345678901234567890", 21, &msg, &err), -1);
    assert_int_equal(err.class, ERR_INTERNAL);
    assert_non_null(strstr(err.text, "0x78"));
}

static void a_status_reports_the_flush_position_three_times(void **state)
{
    static const char want[] = "r"
                               "\x00\x00\x00\x16\xb3\x74\xd8\x48"
                               "\x00\x00\x00\x16\xb3\x74\xd8\x48"
                               "\x00\x00\x00\x16\xb3\x74\xd8\x48" CLOCK_BYTES "\x01";
    char got[PGWIRE_STATUS_BYTES];

    (void)state;
    assert_int_equal(sizeof(want) - 1, PGWIRE_STATUS_BYTES);
    pgwire_encode_status(got, UINT64_C(0x16b374d848), CLOCK_US, true);
    assert_memory_equal(got, want, sizeof(got));
}

static void a_status_may_confirm_nothing_and_ask_nothing(void **state)
{
    static const char want[] = "r"
                               "\x00\x00\x00\x00\x00\x00\x00\x00"
                               "\x00\x00\x00\x00\x00\x00\x00\x00"
                               "\x00\x00\x00\x00\x00\x00\x00\x00"
                               "\xff\xff\xff\xff\xff\xff\xff\xff\x00";
    char got[PGWIRE_STATUS_BYTES];

    (void)state;
    /* one microsecond before 2000-01-01 */
    pgwire_encode_status(got, LSN_NONE, INT64_C(946684799999999), false);
    assert_memory_equal(got, want, sizeof(got));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_keepalive_gives_position_clock_and_whether_to_reply),
        cmocka_unit_test(a_data_message_gives_position_clock_and_bytes),
        cmocka_unit_test(a_data_message_may_be_empty),
        cmocka_unit_test(every_truncated_message_is_refused),
        cmocka_unit_test(an_unknown_message_is_refused),
        cmocka_unit_test(a_status_reports_the_flush_position_three_times),
        cmocka_unit_test(a_status_may_confirm_nothing_and_ask_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
