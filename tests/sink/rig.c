#include "rig.h"

#include "base/clock.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    assert_int_equal(rd_kafka_conf_set(conf, name, value, NULL, 0), RD_KAFKA_CONF_OK);
}

static rd_kafka_t *client(rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
    char text[256];
    rd_kafka_t *rk;

    rd_kafka_conf_set_log_cb(conf, NULL);
    rk = rd_kafka_new(type, conf, text, sizeof(text));
    assert_non_null(rk);
    return rk;
}

static rd_kafka_t *consumer(const struct rig *rig)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();

    set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(rig->mock));
    set(conf, "group.id", "reader");
    set(conf, "fetch.wait.max.ms", "10");
    return client(RD_KAFKA_CONSUMER, conf);
}

struct rig *rig_new(int brokers, int partitions)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    assert_non_null(rig);
    rig->rk = client(RD_KAFKA_PRODUCER, rd_kafka_conf_new());
    rig->mock = rd_kafka_mock_cluster_new(rig->rk, brokers);
    assert_non_null(rig->mock);
    rd_kafka_mock_topic_create(rig->mock, "events", partitions, 1);
    rig->memory_bytes = 4 << 20;
    rig_set(rig, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(rig->mock));
    return rig;
}

void rig_free(struct rig *rig)
{
    sink_free(rig->sink);
    rd_kafka_mock_cluster_destroy(rig->mock);
    rd_kafka_destroy(rig->rk);
    for (size_t i = 0; i < rig->nproperties; i++) {
        free(rig->properties[i].name);
        free(rig->properties[i].value);
    }
    free(rig);
}

void rig_set(struct rig *rig, const char *name, const char *value)
{
    assert_true(rig->nproperties < COUNT(rig->properties));
    rig->properties[rig->nproperties++] =
        (struct kafka_property){strdup(name), strdup(value)};
}

static void copy_field(char *to, size_t size, struct slice from)
{
    (void)snprintf(to, size, "%.*s", SLICE_ARG(from));
}

static void on_notice(void *arg, enum log_level level, const struct log_field *fields,
                      const char *text)
{
    struct rig *rig = arg;
    struct notice *notice = &rig->notices[rig->nnotices];

    if (getenv("RIG_VERBOSE"))
        (void)fprintf(stderr, "%lld notice %d: %s\n", (long long)clock_mono_ms(),
                      (int)level, text);
    if (rig->nnotices == RIG_NOTICES)
        return;
    rig->nnotices++;
    notice->level = level;
    copy_field(notice->text, sizeof(notice->text), slice_of(text));
    for (; fields && fields->name; fields++) {
        if (strcmp(fields->name, "code") == 0)
            copy_field(notice->code, sizeof(notice->code), fields->value);
        if (strcmp(fields->name, "topic") == 0)
            copy_field(notice->topic, sizeof(notice->topic), fields->value);
    }
}

static void on_refused(void *arg, struct slice event_type)
{
    struct rig *rig = arg;

    assert_true(slice_eq(event_type, slice_of("OrderPlaced")));
    rig->refused++;
}

void rig_start(struct rig *rig)
{
    struct sink_options options = {
        .properties = rig->properties,
        .nproperties = rig->nproperties,
        .memory_bytes = rig->memory_bytes,
        .topic_wait_ms = rig->topic_wait_ms,
        .notice = on_notice,
        .notice_arg = rig,
        .refused = on_refused,
        .refused_arg = rig,
    };
    struct err err = {0};

    rig->sink = sink_new(&options, &err);
    if (!rig->sink)
        print_error("sink_new: %s\n", err.text);
    assert_non_null(rig->sink);
}

struct message rig_message(const char *topic, const char *key)
{
    return (struct message){
        .topic = slice_of(topic),
        .key = slice_of(key),
        .partition = PARTITION_ANY,
        .timestamp_ms = 1700000000000,
        .commit_ms = 1700000001000,
        .table = slice_of("public.outbox_events"),
        .event_type = slice_of("OrderPlaced"),
    };
}

int rig_offer(struct rig *rig, struct message message)
{
    char value[24];
    struct err err = {0};
    int rc;

    assert_true(rig->next < RIG_TICKETS);
    (void)snprintf(value, sizeof(value), "%lld", (long long)rig->next);
    if (!message.payload.ptr)
        message.payload = slice_of(value);
    message.event_id = slice_of(value);
    message.place.lsn = rig->next;
    rc = sink_put(rig->sink, &message, rig->next, &err);
    if (rc == 1)
        rig->next++;
    if (rc == -1)
        rig->err = err;
    return rc;
}

void rig_put_message(struct rig *rig, struct message message)
{
    int64_t until = clock_mono_ms() + RIG_LIMIT_MS;
    int rc = rig_offer(rig, message);

    while (rc == 0 && clock_mono_ms() < until) {
        rig_turn(rig, 100);
        rc = rig_offer(rig, message);
    }
    if (rc == -1)
        print_error("sink_put: %s\n", rig->err.text);
    assert_int_equal(rc, 1);
}

void rig_put(struct rig *rig, const char *topic, const char *key, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rig_put_message(rig, rig_message(topic, key));
}

static int wait_of(const struct rig *rig, int wait_ms)
{
    int64_t left = sink_deadline(rig->sink) - clock_mono_ms();

    return left < 0 ? 0 : left < wait_ms ? (int)left : wait_ms;
}

void rig_turn(struct rig *rig, int wait_ms)
{
    struct pollfd fds[SINK_FDS];
    size_t n = sink_fds(rig->sink, fds);
    struct err err = {0};
    ticket_t ticket;

    sink_push(rig->sink);
    (void)poll(fds, n, wait_of(rig, wait_ms));
    if (sink_serve(rig->sink, clock_mono_ms(), &err) != 0 && rig->err.class == ERR_NONE)
        rig->err = err;
    while (sink_done(rig->sink, &ticket)) {
        assert_true(ticket < rig->next);
        rig->times_acked[ticket]++;
        rig->acked++;
    }
}

void rig_run_for(struct rig *rig, int64_t ms)
{
    int64_t until = clock_mono_ms() + ms;

    for (int64_t now = clock_mono_ms(); now < until; now = clock_mono_ms())
        rig_turn(rig, (int)(until - now));
}

static void must_be_well(const struct rig *rig)
{
    if (rig->err.class != ERR_NONE)
        print_error("sink_serve: %s\n", rig->err.text);
    assert_int_equal(rig->err.class, ERR_NONE);
}

void rig_run_until_acked(struct rig *rig, size_t acked)
{
    int64_t until = clock_mono_ms() + RIG_LIMIT_MS;

    while (rig->acked < acked && clock_mono_ms() < until) {
        rig_turn(rig, 100);
        must_be_well(rig);
    }
    assert_true(rig->acked >= acked);
}

void rig_run_until_all_acked(struct rig *rig)
{
    rig_run_until_acked(rig, (size_t)rig->next);
    assert_int_equal(rig->acked, rig->next);
    assert_int_equal(sink_pending(rig->sink), 0);
    for (ticket_t t = 0; t < rig->next; t++)
        assert_int_equal(rig->times_acked[t], 1);
}

void rig_run_until_failed(struct rig *rig)
{
    int64_t until = clock_mono_ms() + RIG_LIMIT_MS;

    while (rig->err.class == ERR_NONE && clock_mono_ms() < until)
        rig_turn(rig, 100);
    assert_int_not_equal(rig->err.class, ERR_NONE);
}

void rig_run_until_noticed(struct rig *rig, const char *part)
{
    int64_t until = clock_mono_ms() + RIG_LIMIT_MS;

    while (!rig_notice(rig, part) && clock_mono_ms() < until)
        rig_turn(rig, 100);
    assert_non_null(rig_notice(rig, part));
}

size_t rig_count_notices(const struct rig *rig, const char *part)
{
    size_t n = 0;

    for (size_t i = 0; i < rig->nnotices; i++)
        n += strstr(rig->notices[i].text, part) ? 1 : 0;
    return n;
}

const struct notice *rig_notice(const struct rig *rig, const char *part)
{
    for (size_t i = 0; i < rig->nnotices; i++) {
        if (strstr(rig->notices[i].text, part))
            return &rig->notices[i];
    }
    return NULL;
}

/* ---- what arrived ----------------------------------------------------------------- */

static void read_headers(const rd_kafka_message_t *message, struct record *record)
{
    rd_kafka_headers_t *headers;
    const char *name;
    const void *value;
    size_t size;
    size_t used = 0;

    if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return;
    for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &size) == 0 &&
                       used < sizeof(record->headers);
         i++)
        used += (size_t)snprintf(record->headers + used, sizeof(record->headers) - used,
                                 "%s=%.*s;", name, value ? (int)size : 4,
                                 value ? (const char *)value : "NULL");
}

static struct record to_record(const rd_kafka_message_t *message)
{
    struct record record = {
        .partition = message->partition, .offset = message->offset, .value = -1};
    char value[24] = "";

    if (message->payload) {
        copy_field(value, sizeof(value), (struct slice){message->payload, message->len});
        record.value = strtoll(value, NULL, 10);
    }
    record.has_key = message->key != NULL;
    copy_field(record.key, sizeof(record.key),
               (struct slice){message->key, message->key_len});
    record.timestamp_ms = rd_kafka_message_timestamp(message, NULL);
    read_headers(message, &record);
    return record;
}

/* How many records there are, and the consumer is told to read them all. */
static size_t assign_all(rd_kafka_t *rk, const char *topic, int partitions)
{
    rd_kafka_topic_partition_list_t *where =
        rd_kafka_topic_partition_list_new(partitions);
    size_t n = 0;

    for (int i = 0; i < partitions; i++) {
        int64_t low;
        int64_t high;

        assert_int_equal(
            rd_kafka_query_watermark_offsets(rk, topic, i, &low, &high, RIG_LIMIT_MS),
            RD_KAFKA_RESP_ERR_NO_ERROR);
        n += (size_t)(high - low);
        rd_kafka_topic_partition_list_add(where, topic, i)->offset = low;
    }
    assert_int_equal(rd_kafka_assign(rk, where), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(where);
    return n;
}

static void read_all(rd_kafka_t *rk, struct record_list *list, size_t n)
{
    int64_t until = clock_mono_ms() + RIG_LIMIT_MS;

    list->records = calloc(n + 1, sizeof(*list->records));
    assert_non_null(list->records);
    while (list->n < n && clock_mono_ms() < until) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 100);

        if (message && message->err == RD_KAFKA_RESP_ERR_NO_ERROR)
            list->records[list->n++] = to_record(message);
        if (message)
            rd_kafka_message_destroy(message);
    }
    assert_int_equal(list->n, n);
}

static int by_place(const void *a, const void *b)
{
    const struct record *x = a;
    const struct record *y = b;

    if (x->partition != y->partition)
        return x->partition < y->partition ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int partitions_of(rd_kafka_t *rk, const char *topic)
{
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
    const struct rd_kafka_metadata *metadata;
    int n;

    assert_int_equal(rd_kafka_metadata(rk, 0, rkt, &metadata, RIG_LIMIT_MS),
                     RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(metadata->topic_cnt, 1);
    n = metadata->topics[0].partition_cnt;
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(rkt);
    return n;
}

struct record_list rig_read(struct rig *rig, const char *topic)
{
    rd_kafka_t *rk = consumer(rig);
    struct record_list list = {0};

    read_all(rk, &list, assign_all(rk, topic, partitions_of(rk, topic)));
    qsort(list.records, list.n, sizeof(*list.records), by_place);
    rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    return list;
}

void record_list_free(struct record_list *list)
{
    free(list->records);
    *list = (struct record_list){0};
}

size_t record_list_count(const struct record_list *list, int64_t first, int64_t end)
{
    unsigned char *seen = calloc((size_t)(end - first), 1);
    size_t n = 0;

    assert_non_null(seen);
    for (size_t i = 0; i < list->n; i++) {
        int64_t value = list->records[i].value;

        if (value < first || value >= end || seen[value - first])
            continue;
        seen[value - first] = 1;
        n++;
    }
    free(seen);
    return n;
}

void record_list_must_ascend(const struct record_list *list)
{
    int64_t highest = -1;

    for (size_t i = 0; i < list->n; i++) {
        const struct record *record = &list->records[i];
        bool repeated = false;

        if (i > 0 && record->partition != list->records[i - 1].partition)
            highest = -1;
        if (record->value > highest) {
            highest = record->value;
            continue;
        }
        for (size_t j = i; j-- > 0 && !repeated;)
            repeated = list->records[j].partition == record->partition &&
                       list->records[j].value == record->value;
        if (!repeated)
            print_error("partition %d: %lld came after %lld\n", (int)record->partition,
                        (long long)record->value, (long long)highest);
        assert_true(repeated);
    }
}
