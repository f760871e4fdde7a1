/* What librdkafka is told, what it tells, and how records look when they arrive. */
#include "io/kafka_error.h"

#include "rig.h"

#include <stdlib.h>
#include <string.h>

static void a_record_arrives_with_all_that_belongs_to_it(void **state)
{
    struct rig *rig = rig_new(1, 1);
    struct header headers[] = {{slice_of("id"), slice_of("e-1")},
                               {slice_of("empty"), slice_of("")},
                               {slice_of("absent"), {NULL, 0}}};
    struct message message = rig_message("events", "order-7");
    struct record_list list;

    (void)state;
    message.headers = headers;
    message.nheaders = COUNT(headers);
    message.timestamp_ms = 1234567890123;
    rig_start(rig);
    rig_put_message(rig, message);
    rig_run_until_all_acked(rig);
    list = rig_read(rig, "events");
    assert_int_equal(list.n, 1);
    assert_int_equal(list.records[0].value, 0);
    assert_string_equal(list.records[0].key, "order-7");
    assert_int_equal(list.records[0].timestamp_ms, 1234567890123);
    assert_string_equal(list.records[0].headers, "id=e-1;empty=;absent=NULL;");
    record_list_free(&list);
    rig_free(rig);
}

static void a_message_over_the_limit_is_refused_and_the_sink_goes_on(void **state)
{
    static char payload[2000];
    struct rig *rig = rig_new(1, 1);
    struct message message = rig_message("events", "k");

    (void)state;
    rig_set(rig, "message.max.bytes", "1000");
    rig_set(rig, "batch.size", "1000");
    rig_start(rig);
    memset(payload, 'x', sizeof(payload));
    message.payload = (struct slice){payload, 964}; /* 1 byte more than fits */
    assert_int_equal(rig_offer(rig, message), -1);
    assert_int_equal(rig->err.class, ERR_POISON);
    assert_string_equal(rig->err.code, "MSG_SIZE_TOO_LARGE");
    rig->err = (struct err){0};
    message.payload.len = 963;
    assert_int_equal(rig_offer(rig, message), 1);
    rig_run_until_all_acked(rig);
    rig_free(rig);
}

/* librdkafka counts each length of a header as a varint, of two bytes from 64 on. */
static void headers_count_to_the_byte(void **state)
{
    static char bytes[1000];
    struct rig *rig = rig_new(1, 1);
    struct message message = rig_message("events", "k");
    struct header headers[] = {{slice_of("trace"), {bytes, 70}},
                               {slice_of("id"), {bytes, 3}}};
    size_t rest = 1000 - 36 - 1 - (1 + 5 + 2 + 70) - (1 + 2 + 1 + 3);

    (void)state;
    rig_set(rig, "message.max.bytes", "1000");
    rig_set(rig, "batch.size", "1000");
    rig_start(rig);
    memset(bytes, 'x', sizeof(bytes));
    message.headers = headers;
    message.nheaders = 2;
    message.payload = (struct slice){bytes, rest + 1};
    assert_int_equal(rig_offer(rig, message), -1);
    rig->err = (struct err){0};
    message.payload.len = rest;
    assert_int_equal(rig_offer(rig, message), 1);
    rig_run_until_all_acked(rig);
    rig_free(rig);
}

static void a_start_says_nothing(void **state)
{
    struct rig *rig = rig_new(1, 1);

    (void)state;
    rig_start(rig);
    rig_put(rig, "events", "k", 1);
    rig_run_until_all_acked(rig);
    assert_int_equal(rig->nnotices, 0);
    rig_free(rig);
}

static int refused(const char *name, const char *value, struct err *err)
{
    struct kafka_property property = {strdup(name), strdup(value)};
    struct sink_options options = {
        .properties = &property, .nproperties = 1, .memory_bytes = 1 << 20};
    struct sink *sink = sink_new(&options, err);
    int no = !sink;

    sink_free(sink);
    free(property.name);
    free(property.value);
    return no;
}

static void scram_needs_a_librdkafka_that_can_do_it(void **state)
{
    struct err err = {0};

    (void)state;
    assert_int_equal(refused("sasl.mechanism", "SCRAM-SHA-256", &err),
                     rd_kafka_version() < 0x020601ff);
    if (rd_kafka_version() < 0x020601ff) {
        assert_int_equal(err.class, ERR_CONFIG);
        assert_non_null(strstr(err.text, "2.6.1"));
    }
}

static void an_unknown_property_is_refused_with_its_name(void **state)
{
    struct err err = {0};

    (void)state;
    assert_true(refused("no.such.property", "1", &err));
    assert_int_equal(err.class, ERR_CONFIG);
    assert_non_null(strstr(err.text, "no.such.property"));
}

static void errors_have_their_names_and_cures(void **state)
{
    (void)state;
    assert_string_equal(kafka_error_name(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED),
                        "TOPIC_AUTHORIZATION_FAILED");
    assert_non_null(
        strstr(kafka_error_cure(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART), "create"));
    assert_string_equal(kafka_error_cure(RD_KAFKA_RESP_ERR_UNKNOWN), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_arrives_with_all_that_belongs_to_it),
        cmocka_unit_test(a_message_over_the_limit_is_refused_and_the_sink_goes_on),
        cmocka_unit_test(headers_count_to_the_byte),
        cmocka_unit_test(a_start_says_nothing),
        cmocka_unit_test(scram_needs_a_librdkafka_that_can_do_it),
        cmocka_unit_test(an_unknown_property_is_refused_with_its_name),
        cmocka_unit_test(errors_have_their_names_and_cures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
