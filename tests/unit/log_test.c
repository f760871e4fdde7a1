#include "base/log.h"

#include "unit.h"

#include <jansson.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT(literal)                                                                    \
    {                                                                                    \
        literal, sizeof(literal) - 1                                                     \
    }

static const size_t time_length = sizeof("2026-11-30T09:15:02.114Z ") - 1;

/* stderr goes to a file while a test runs. */
static FILE *captured;
static int real_stderr;
static char text[1 << 17];

static int capture(void **state)
{
    (void)state;
    (void)unsetenv("JOURNAL_STREAM");
    captured = tmpfile();
    real_stderr = dup(STDERR_FILENO);
    return captured && dup2(fileno(captured), STDERR_FILENO) >= 0 ? 0 : -1;
}

static int release(void **state)
{
    (void)state;
    (void)dup2(real_stderr, STDERR_FILENO);
    (void)close(real_stderr);
    (void)fclose(captured);
    return 0;
}

/* What was written since the test began. */
static const char *written(void)
{
    ssize_t n = pread(fileno(captured), text, sizeof(text) - 1, 0);

    assert_true(n >= 0);
    text[n] = '\0';
    return text;
}

static void assert_time(const char *line)
{
    const char *pattern = "dddd-dd-ddTdd:dd:dd.dddZ";

    for (; *pattern; pattern++, line++) {
        if (*pattern == 'd')
            assert_in_range(*line, '0', '9');
        else
            assert_int_equal(*line, *pattern);
    }
}

static void a_text_line_has_time_level_and_message(void **state)
{
    (void)state;
    log_init(LOG_INFO, LOG_TEXT);
    log_event(LOG_WARNING, NULL, "topic %s does not exist", "orders");
    assert_time(written());
    assert_string_equal(written() + time_length, "warning topic orders does not exist\n");
}

static void fields_follow_the_message(void **state)
{
    struct log_field fields[] = {{"topic", TEXT("orders")},
                                 {"absent", {NULL, 0}},
                                 {"empty", TEXT("")},
                                 {"text", TEXT("two words")},
                                 {"quoted", TEXT("a\"b\\c")},
                                 {"utf8", TEXT("caf\xc3\xa9")},
                                 LOG_END};

    (void)state;
    log_init(LOG_INFO, LOG_TEXT);
    log_event(LOG_INFO, fields, "x");
    assert_string_equal(written() + time_length,
                        "info x topic=orders empty=\"\" text=\"two words\" "
                        "quoted=\"a\\\"b\\\\c\" utf8=caf\xc3\xa9\n");
}

static void nothing_breaks_a_text_line(void **state)
{
    struct log_field fields[] = {{"id", TEXT("a\nb\0c\x7f\xff")}, LOG_END};

    (void)state;
    log_init(LOG_INFO, LOG_TEXT);
    log_event(LOG_INFO, fields, "one\ntwo \xc3");
    assert_string_equal(written() + time_length,
                        "info one two \xef\xbf\xbd "
                        "id=\"a\\u000ab\\u0000c\\u007f\xef\xbf\xbd"
                        "\"\n");
}

static json_t *read_json(void)
{
    json_error_t error;
    json_t *line = json_loads(written(), JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);

    if (!line)
        fail_msg("%s in %s", error.text, written());
    assert_int_equal(written()[strlen(written()) - 1], '\n');
    return line;
}

static const char *member(const json_t *line, const char *name)
{
    return json_string_value(json_object_get(line, name));
}

static void a_json_line_is_one_object(void **state)
{
    struct log_field fields[] = {
        {"topic", TEXT("or\"ders")}, {"absent", {NULL, 0}}, LOG_END};
    json_t *line;

    (void)state;
    log_init(LOG_INFO, LOG_JSON);
    log_event(LOG_ERROR, fields, "a \\ \"b\"\n\x01");
    line = read_json();
    assert_int_equal(json_object_size(line), 4);
    assert_time(member(line, "ts"));
    assert_string_equal(member(line, "level"), "error");
    assert_string_equal(member(line, "msg"), "a \\ \"b\"\n\x01");
    assert_string_equal(member(line, "topic"), "or\"ders");
    assert_memory_equal(written(), "{\"ts\":", 6);
    assert_ptr_equal(strchr(written(), '\n'), written() + strlen(written()) - 1);
    json_decref(line);
}

static void bytes_that_are_no_utf8_do_not_lose_the_line(void **state)
{
    struct log_field fields[] = {{"id", TEXT("\xff\0\xc3\xa9\xed\xa0\x80z")}, LOG_END};
    json_t *line;
    const json_t *id;

    (void)state;
    log_init(LOG_INFO, LOG_JSON);
    log_event(LOG_INFO, fields, "caf\xe9!");
    line = read_json();
    assert_string_equal(member(line, "msg"), "caf\xef\xbf\xbd!");
    id = json_object_get(line, "id");
    assert_int_equal(json_string_length(id), 3 + 1 + 2 + 9 + 1);
    assert_memory_equal(json_string_value(id),
                        "\xef\xbf\xbd\0\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz",
                        16);
    json_decref(line);
}

/* n times the two bytes of é behind one x, so that an even limit falls inside one. */
static struct slice long_text(char *buffer, size_t n)
{
    buffer[0] = 'x';
    for (size_t i = 0; i < n; i++)
        memcpy(buffer + 1 + 2 * i, "\xc3\xa9", 2);
    buffer[1 + 2 * n] = '\0';
    return (struct slice){buffer, 1 + 2 * n};
}

static void what_is_long_is_shortened_and_the_line_stays_whole(void **state)
{
    char buffer[20000];
    struct slice long_one = long_text(buffer, 9000);
    struct log_field fields[] = {
        {"a", long_one}, {"b", long_one}, {"c", TEXT("end")}, LOG_END};
    json_t *line;

    (void)state;
    log_init(LOG_INFO, LOG_JSON);
    log_event(LOG_INFO, fields, "%s", long_one.ptr);
    line = read_json();
    assert_int_equal(strlen(member(line, "msg")), 1535 + 3);
    assert_int_equal(strlen(member(line, "a")), 1023 + 3);
    assert_string_equal(member(line, "a") + 1023, "\xe2\x80\xa6");
    assert_string_equal(member(line, "c"), "end");
    json_decref(line);
    assert_int_equal(ftruncate(fileno(captured), 0), 0);
    assert_int_equal(lseek(fileno(captured), 0, SEEK_SET), 0);
    log_init(LOG_INFO, LOG_TEXT);
    log_event(LOG_INFO, fields, "%s", long_one.ptr);
    assert_non_null(strstr(written(), "\xe2\x80\xa6 c=end\n"));
}

static void a_value_at_the_limit_is_not_shortened(void **state)
{
    char buffer[20000];
    struct log_field fields[] = {{"a", {buffer, 1024}}, LOG_END};

    (void)state;
    memset(buffer, 'x', 1024);
    log_init(LOG_INFO, LOG_TEXT);
    log_event(LOG_INFO, fields, "m");
    assert_int_equal(strlen(written()), time_length + strlen("info m a=\n") + 1024);
}

static void lines_above_the_level_are_dropped(void **state)
{
    (void)state;
    log_init(LOG_WARNING, LOG_TEXT);
    log_event(LOG_INFO, NULL, "not this");
    log_event(LOG_DEBUG, NULL, "nor this");
    assert_string_equal(written(), "");
    log_event(LOG_WARNING, NULL, "this");
    log_event(LOG_ERROR, NULL, "and this");
    assert_non_null(strstr(written(), "warning this\n"));
    assert_non_null(strstr(written(), "error and this\n"));
}

static void an_error_is_a_line_with_its_code(void **state)
{
    struct err err = {0};

    (void)state;
    log_init(LOG_INFO, LOG_TEXT);
    (void)err_set_code(&err, ERR_SLOT, "42704", "slot \"w\" is missing");
    log_err(LOG_ERROR, &err);
    assert_string_equal(written() + time_length,
                        "error slot \"w\" is missing code=42704\n");
}

static void an_error_about_an_event_names_it(void **state)
{
    struct err err = {0};

    (void)state;
    log_init(LOG_INFO, LOG_TEXT);
    err_set_event(&err, slice_of("no error, no event"), (struct slice){0},
                  (struct slice){0}, 1);
    (void)err_set(&err, ERR_POISON, "refused");
    err_set_event(&err, slice_of("7f3c"), (struct slice){0}, slice_of("a 1"), 3);
    err_set_event(&err, slice_of("another"), slice_of("x"), slice_of("y"), 1);
    log_err(LOG_ERROR, &err);
    assert_string_equal(written() + time_length,
                        "error refused event_id=7f3c aggregate_id=\"a 1\" attempt=3\n");
}

static void an_error_without_code_has_no_such_field(void **state)
{
    struct err err = {0};

    (void)state;
    log_init(LOG_INFO, LOG_TEXT);
    (void)err_set(&err, ERR_CONFIG, "f:1: wrong");
    log_err(LOG_ERROR, &err);
    assert_string_equal(written() + time_length, "error f:1: wrong\n");
}

static void the_journals_own_time_is_enough(void **state)
{
    char stream[64];
    struct stat st;

    (void)state;
    assert_int_equal(fstat(STDERR_FILENO, &st), 0);
    (void)snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev,
                   (uintmax_t)st.st_ino);
    assert_int_equal(setenv("JOURNAL_STREAM", stream, 1), 0);
    log_init(LOG_INFO, LOG_TEXT);
    log_event(LOG_INFO, NULL, "x");
    assert_string_equal(written(), "info x\n");
}

static void a_redirected_stderr_is_not_the_journal(void **state)
{
    (void)state;
    assert_int_equal(setenv("JOURNAL_STREAM", "1:1", 1), 0);
    log_init(LOG_INFO, LOG_TEXT);
    log_event(LOG_INFO, NULL, "x");
    assert_time(written());
}

#define captured_test(name) cmocka_unit_test_setup_teardown(name, capture, release)

int main(void)
{
    const struct CMUnitTest tests[] = {
        captured_test(a_text_line_has_time_level_and_message),
        captured_test(fields_follow_the_message),
        captured_test(nothing_breaks_a_text_line),
        captured_test(a_json_line_is_one_object),
        captured_test(bytes_that_are_no_utf8_do_not_lose_the_line),
        captured_test(what_is_long_is_shortened_and_the_line_stays_whole),
        captured_test(a_value_at_the_limit_is_not_shortened),
        captured_test(lines_above_the_level_are_dropped),
        captured_test(an_error_is_a_line_with_its_code),
        captured_test(an_error_about_an_event_names_it),
        captured_test(an_error_without_code_has_no_such_field),
        captured_test(the_journals_own_time_is_enough),
        captured_test(a_redirected_stderr_is_not_the_journal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
