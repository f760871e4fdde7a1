#include "core/dead_letter.h"

#include "unit.h"

enum { TEXT_MAX = 4096, ROW_LSN = 0, ROW_NUMBER, COMMITTED_AT, BEGIN_LSN, COMMIT_LSN };

static const struct message bare = {.partition = PARTITION_ANY};

static void each_row_of_the_statement_has_its_parameters(void **state)
{
    struct buf sql;

    (void)state;
    buf_init(&sql, 1 << 16);
    dead_letter_insert(&sql, "s.t", 2);
    assert_non_null(strstr(buf_str(&sql), "VALUES (0, $3::text, $4::text"));
    assert_non_null(strstr(buf_str(&sql), "$26::text), (1, $27::text"));
    assert_non_null(strstr(buf_str(&sql), "$50::text)), done"));
    assert_null(strstr(buf_str(&sql), "$51"));
    assert_non_null(strstr(buf_str(&sql), "INSERT INTO s.t AS d (slot, row_lsn"));
    buf_done(&sql);
}

static void
the_parameters_of_the_longest_statement_can_be_counted_in_16_bits(void **state)
{
    (void)state;
    assert_true(2 + 100 * DEAD_LETTER_PARAMS < 65536);
}

/* All texts end with a NUL that does not count. */
static void assert_text(struct dead_letter_param param, const char *text)
{
    assert_false(param.binary);
    assert_int_equal(param.value.len, strlen(text));
    assert_string_equal(param.value.ptr, text);
}

static void what_is_not_known_is_null(void **state)
{
    struct dead_letter_param params[2 * DEAD_LETTER_PARAMS];
    struct dead_letter letters[2] = {
        {.place = {0x1000000AB, 3, -7}, .begin = 1, .message = &bare},
        {.place = {2, 1, 1}, .begin = 1, .end = 0x200000000, .message = &bare},
    };
    struct buf text;

    (void)state;
    buf_init(&text, TEXT_MAX);
    assert_true(dead_letter_bind(letters, 2, &text, params));
    assert_text(params[ROW_LSN], "1/AB");
    assert_text(params[ROW_NUMBER], "3");
    assert_text(params[COMMITTED_AT], "-7");
    assert_text(params[BEGIN_LSN], "0/1");
    assert_null(params[COMMIT_LSN].value.ptr);
    assert_text(params[DEAD_LETTER_PARAMS + COMMIT_LSN], "2/0");
    for (size_t i = COMMIT_LSN + 1; i < 13; i++)
        assert_null(params[i].value.ptr);
    assert_text(params[13], "{}");
    assert_text(params[14], "{}");
    assert_text(params[DEAD_LETTER_PARAMS - 1], "waiting");
    buf_done(&text);
}

static void what_the_server_takes_for_no_text_is_written_as_digits(void **state)
{
    struct message message = bare;
    struct dead_letter letter = {.message = &message};
    struct dead_letter_param params[DEAD_LETTER_PARAMS];
    struct buf text;

    (void)state;
    message.event_id = (struct slice){"a\0b", 3};
    message.event_type = (struct slice){"\xff", 1};
    message.aggregate_id = (struct slice){"", 0};
    buf_init(&text, TEXT_MAX);
    assert_true(dead_letter_bind(&letter, 1, &text, params));
    assert_text(params[6], "\\x610062");
    assert_text(params[7], "\\xff");
    assert_text(params[9], "");
    buf_done(&text);
}

static void key_and_payload_are_borrowed_as_they_are(void **state)
{
    struct message message = bare;
    struct dead_letter letter = {.message = &message, .held = true};
    struct dead_letter_param params[DEAD_LETTER_PARAMS];
    struct buf text;

    (void)state;
    message.key = (struct slice){"k\0", 2};
    message.payload = (struct slice){"", 0};
    buf_init(&text, TEXT_MAX);
    assert_true(dead_letter_bind(&letter, 1, &text, params));
    assert_true(params[11].binary && params[11].value.ptr == message.key.ptr);
    assert_true(params[12].binary && params[12].value.len == 0 && params[12].value.ptr);
    assert_text(params[DEAD_LETTER_PARAMS - 1], "held");
    assert_null(params[DEAD_LETTER_PARAMS - 2].value.ptr);
    buf_done(&text);
}

static void too_little_room_is_a_failure(void **state)
{
    struct dead_letter letter = {.message = &bare};
    struct dead_letter_param params[DEAD_LETTER_PARAMS];
    struct buf text;

    (void)state;
    buf_init(&text, 10);
    assert_false(dead_letter_bind(&letter, 1, &text, params));
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_of_the_statement_has_its_parameters),
        cmocka_unit_test(
            the_parameters_of_the_longest_statement_can_be_counted_in_16_bits),
        cmocka_unit_test(what_is_not_known_is_null),
        cmocka_unit_test(what_the_server_takes_for_no_text_is_written_as_digits),
        cmocka_unit_test(key_and_payload_are_borrowed_as_they_are),
        cmocka_unit_test(too_little_room_is_a_failure),
    };

    return cmocka_run_group_tests_name("dead_letter", tests, NULL, NULL);
}
