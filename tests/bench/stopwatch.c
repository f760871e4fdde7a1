/* stopwatch.c - how long events take from their COMMIT to a consumer of Kafka.
 *
 *   stopwatch DSN BOOTSTRAP TOPIC PAYLOAD RATE ROWS SECONDS WARMUP WRITERS KEYS
 *
 * Writers insert RATE events a second into public.outbox_events, ROWS to a transaction,
 * at times that do not depend on how fast anything answers; each notes when it sends a
 * COMMIT.  A consumer of TOPIC notes when it has the record.  PAYLOAD is an SQL
 * expression that makes of the bigint n a jsonb whose text begins {"n": 17, which is how
 * events are known.  Each of the KEYS keys belongs to one writer, so the numbers of a key
 * grow in the order of the commits.
 *
 * The events of the first WARMUP seconds are not counted, those of the SECONDS after them
 * are.  stdout gets the line "counting" when the warm-up is over, and one line of JSON
 * when all events have arrived, also those of the warm-up, or LIMIT_S seconds after the
 * last COMMIT.  Writers that are behind their schedule leave nothing out, but stop when
 * they have taken twice as long as they should: achieved_rate tells. */
#include <libpq-fe.h>
#include <librdkafka/rdkafka.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NS           INT64_C(1000000000)
#define PAYLOAD_HEAD "{\"n\": "

enum { MAX_WRITERS = 64, LIMIT_S = 60, TICK_MS = 5 };

struct options {
    const char *dsn, *bootstrap, *topic, *payload;
    long rate, rows, seconds, warmup, writers, keys;
};

/* Transaction t is due at start_ns + t * interval_ns, its events are t * rows and on. */
struct run {
    struct options options;
    long transactions, warmup; /* so many, the first of which are not counted */
    double interval_ns;
    int64_t start_ns;
    int64_t *sent_ns, *took_ns; /* of each COMMIT, 0: was not sent */
    int64_t *arrived_ns;        /* of each event, 0: not yet */
    atomic_long written;        /* events that have to arrive */
    atomic_long writing;        /* writers that go on */
};

struct writer {
    struct run *run;
    PGconn *conn;
    long number;
    pthread_t thread;
};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)fputs("stopwatch: ", stderr);
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
    va_end(arguments);
    _exit(1);
}

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS + now.tv_nsec;
}

static void sleep_until(int64_t when_ns)
{
    struct timespec when = {when_ns / NS, when_ns % NS};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) != 0)
        continue;
}

static void *allocate(long count, size_t size)
{
    void *memory = calloc((size_t)count + 1, size);

    if (memory == NULL)
        die("out of memory");
    return memory;
}

/* ---- writers ------------------------------------------------------------------- */

/* Parameters: the first number, the last, the writer, writers, keys of each writer. */
#define INSERT                                                                           \
    "INSERT INTO public.outbox_events"                                                   \
    " (aggregate_type, aggregate_id, event_type, payload)"                               \
    " SELECT 'order', 'order-' || $3::bigint + $4::bigint * (n %% $5::bigint),"          \
    " 'OrderPlaced', %s FROM generate_series($1::bigint, $2::bigint) n"

static void prepare(PGconn *conn, const char *name, const char *statement)
{
    PGresult *result = PQprepare(conn, name, statement, 0, NULL);

    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        die("%s: %s", statement, PQerrorMessage(conn));
    PQclear(result);
}

static PGconn *connect_writer(const struct options *options)
{
    PGconn *conn = PQconnectdb(options->dsn);
    char insert[4096];

    if (PQstatus(conn) != CONNECTION_OK)
        die("%s", PQerrorMessage(conn));
    (void)snprintf(insert, sizeof(insert), INSERT, options->payload);
    PQclear(PQexec(conn, "SET synchronous_commit = on"));
    prepare(conn, "begin", "BEGIN");
    prepare(conn, "insert", insert);
    prepare(conn, "commit", "COMMIT");
    if (PQenterPipelineMode(conn) != 1)
        die("%s", PQerrorMessage(conn));
    return conn;
}

static void send_prepared(PGconn *conn, const char *name, int count,
                          const char *const *values)
{
    if (PQsendQueryPrepared(conn, name, count, values, NULL, NULL, 0) != 1)
        die("%s: %s", name, PQerrorMessage(conn));
}

/* Sends what is in the pipeline and waits until the server has done it. */
static void finish(PGconn *conn)
{
    ExecStatusType status = PGRES_COMMAND_OK;

    if (PQpipelineSync(conn) != 1)
        die("%s", PQerrorMessage(conn));
    while (status != PGRES_PIPELINE_SYNC) {
        PGresult *result = PQgetResult(conn);

        if (result == NULL && PQstatus(conn) == CONNECTION_OK)
            continue; /* the end of one statement's results */
        status = PQresultStatus(result);
        if (status != PGRES_COMMAND_OK && status != PGRES_PIPELINE_SYNC)
            die("%s", PQerrorMessage(conn));
        PQclear(result);
    }
}

static void send_insert(const struct writer *writer, long transaction)
{
    const struct options *options = &writer->run->options;
    long first = 1 + transaction * options->rows;
    long numbers[5] = {first, first + options->rows - 1, writer->number, options->writers,
                       options->keys / options->writers};
    char text[5][24];
    const char *values[] = {text[0], text[1], text[2], text[3], text[4]};

    for (int i = 0; i < 5; i++)
        (void)snprintf(text[i], sizeof(text[i]), "%ld", numbers[i]);
    send_prepared(writer->conn, "insert", 5, values);
}

static void write_transaction(const struct writer *writer, long transaction)
{
    struct run *run = writer->run;

    send_prepared(writer->conn, "begin", 0, NULL);
    send_insert(writer, transaction);
    finish(writer->conn);
    atomic_fetch_add(&run->written, run->options.rows);
    run->sent_ns[transaction] = now_ns();
    send_prepared(writer->conn, "commit", 0, NULL);
    finish(writer->conn);
    run->took_ns[transaction] = now_ns() - run->sent_ns[transaction];
}

static int64_t due_ns(const struct run *run, long transaction)
{
    return run->start_ns + (int64_t)((double)transaction * run->interval_ns);
}

static void *write_all(void *arg)
{
    const struct writer *writer = arg;
    struct run *run = writer->run;
    int64_t end_ns = due_ns(run, 2 * run->transactions);

    for (long t = writer->number; t < run->transactions; t += run->options.writers) {
        sleep_until(due_ns(run, t));
        if (now_ns() > end_ns)
            break;
        write_transaction(writer, t);
    }
    atomic_fetch_sub(&run->writing, 1);
    return NULL;
}

static void start_writers(struct writer *writers, struct run *run)
{
    for (long w = 0; w < run->options.writers; w++)
        writers[w] = (struct writer){run, connect_writer(&run->options), w, 0};
    atomic_store(&run->writing, run->options.writers);
    run->start_ns = now_ns();
    for (long w = 0; w < run->options.writers; w++)
        if (pthread_create(&writers[w].thread, NULL, write_all, &writers[w]) != 0)
            die("no thread");
}

static void join_writers(struct writer *writers, const struct run *run)
{
    for (long w = 0; w < run->options.writers; w++) {
        pthread_join(writers[w].thread, NULL);
        PQfinish(writers[w].conn);
    }
}

/* ---- consumer ------------------------------------------------------------------ */

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char text[512];

    if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) != RD_KAFKA_CONF_OK)
        die("%s", text);
}

/* A fetch is answered as soon as there is a record: to wait less long only costs. */
static rd_kafka_t *new_consumer(const struct options *options)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *consumer;
    char text[512];

    set(conf, "bootstrap.servers", options->bootstrap);
    set(conf, "group.id", "stopwatch");
    set(conf, "enable.auto.commit", "false");
    set(conf, "fetch.error.backoff.ms", "5");
    consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text));
    if (consumer == NULL)
        die("%s", text);
    rd_kafka_poll_set_consumer(consumer);
    return consumer;
}

static int count_partitions(rd_kafka_t *consumer, const char *topic)
{
    rd_kafka_topic_t *handle = rd_kafka_topic_new(consumer, topic, NULL);
    const struct rd_kafka_metadata *metadata;
    rd_kafka_resp_err_t error = rd_kafka_metadata(consumer, 0, handle, &metadata, 30000);
    int count;

    if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
        die("metadata: %s", rd_kafka_err2str(error));
    count = metadata->topics[0].partition_cnt;
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(handle);
    if (count == 0)
        die("no topic %s", topic);
    return count;
}

/* The offset behind the last record.  A partition that is new may have no leader for a
 * while. */
static int64_t end_of(rd_kafka_t *consumer, const char *topic, int32_t partition)
{
    int64_t low, high, deadline_ns = now_ns() + 30 * NS;
    rd_kafka_resp_err_t error;

    do {
        error = rd_kafka_query_watermark_offsets(consumer, topic, partition, &low, &high,
                                                 10000);
        if (error == RD_KAFKA_RESP_ERR_NO_ERROR)
            return high;
        sleep_until(now_ns() + NS / 20);
    } while (now_ns() < deadline_ns);
    die("%s[%" PRId32 "]: %s", topic, partition, rd_kafka_err2str(error));
}

/* Ends are asked for first: RD_KAFKA_OFFSET_END is found out while the writers write. */
static void assign_from_end(rd_kafka_t *consumer, const char *topic)
{
    int count = count_partitions(consumer, topic);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(count);
    rd_kafka_resp_err_t error;

    for (int32_t p = 0; p < count; p++)
        rd_kafka_topic_partition_list_add(list, topic, p)->offset =
            end_of(consumer, topic, p);
    error = rd_kafka_assign(consumer, list);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
        die("%s: %s", topic, rd_kafka_err2str(error));
    rd_kafka_topic_partition_list_destroy(list);
}

/* The place of the message's event among those of this run, -1 if it is none of them. */
static long event_of(const struct run *run, const rd_kafka_message_t *message)
{
    const size_t head = sizeof(PAYLOAD_HEAD) - 1;
    char digits[24];
    size_t length;
    long event;

    if (message->len < head || memcmp(message->payload, PAYLOAD_HEAD, head) != 0)
        return -1;
    length = message->len - head;
    if (length >= sizeof(digits))
        length = sizeof(digits) - 1;
    memcpy(digits, (const char *)message->payload + head, length);
    digits[length] = '\0';
    event = strtol(digits, NULL, 10) - 1;
    return event >= 0 && event < run->transactions * run->options.rows ? event : -1;
}

/* Notes the message's time; is it the first copy of an event? */
static bool take(struct run *run, const rd_kafka_message_t *message)
{
    int64_t now = now_ns();
    long event;

    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        (void)fprintf(stderr, "stopwatch: %s\n", rd_kafka_message_errstr(message));
        return false;
    }
    event = event_of(run, message);
    if (event < 0 || run->arrived_ns[event] != 0)
        return false;
    run->arrived_ns[event] = now;
    return true;
}

/* Tells, once, that the warm-up is over. */
static void tell_counting(const struct run *run, bool *told)
{
    if (*told || now_ns() < due_ns(run, run->warmup))
        return;
    *told = true;
    (void)puts("counting");
    (void)fflush(stdout);
}

static void consume(struct run *run, rd_kafka_t *consumer)
{
    int64_t deadline_ns = INT64_MAX;
    long seen = 0;
    bool told = false;

    while ((deadline_ns == INT64_MAX || seen < run->written) && now_ns() < deadline_ns) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, TICK_MS);

        if (message != NULL) {
            seen += take(run, message);
            rd_kafka_message_destroy(message);
        }
        tell_counting(run, &told);
        if (deadline_ns == INT64_MAX && run->writing == 0)
            deadline_ns = now_ns() + LIMIT_S * NS;
    }
}

/* ---- result -------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double ms(int64_t ns)
{
    return (double)ns / 1e6;
}

/* The smallest value that so many thousandths of the sorted values do not exceed. */
static double quantile(const double *sorted, long count, long thousandths)
{
    return count == 0 ? 0 : sorted[(count * thousandths + 999) / 1000 - 1];
}

/* Milliseconds from COMMIT to arrival, sorted, of the counted events that arrived. */
static double *latencies(const struct run *run, long *count)
{
    long rows = run->options.rows, events = run->transactions * rows;
    double *values = allocate(events, sizeof(*values));

    *count = 0;
    for (long e = run->warmup * rows; e < events; e++)
        if (run->arrived_ns[e] != 0)
            values[(*count)++] = ms(run->arrived_ns[e] - run->sent_ns[e / rows]);
    qsort(values, (size_t)*count, sizeof(*values), compare);
    return values;
}

/* How long the counted COMMITs took, in the median. */
static double commit_ms(const struct run *run)
{
    double *values = allocate(run->transactions, sizeof(*values)), median;
    long count = 0;

    for (long t = run->warmup; t < run->transactions; t++)
        if (run->sent_ns[t] != 0)
            values[count++] = ms(run->took_ns[t]);
    qsort(values, (size_t)count, sizeof(*values), compare);
    median = quantile(values, count, 500);
    free(values);
    return median;
}

/* Events a second, those of the warm-up too, until an interval after the last COMMIT. */
static double achieved_rate(const struct run *run)
{
    int64_t last_ns = run->start_ns;
    long count = 0;

    for (long t = 0; t < run->transactions; t++) {
        count += run->sent_ns[t] != 0;
        if (run->sent_ns[t] > last_ns)
            last_ns = run->sent_ns[t];
    }
    return (double)(count * run->options.rows) * (double)NS /
           ((double)(last_ns - run->start_ns) + run->interval_ns);
}

/* Events after the warm-up whose COMMIT was sent. */
static long counted(const struct run *run)
{
    long transactions = 0;

    for (long t = run->warmup; t < run->transactions; t++)
        transactions += run->sent_ns[t] != 0;
    return transactions * run->options.rows;
}

static void print_result(const struct run *run)
{
    long arrived, events = counted(run);
    double *sorted = latencies(run, &arrived);

    (void)printf("{\"events\": %ld, \"missing\": %ld, ", events, events - arrived);
    (void)printf("\"achieved_rate\": %.1f, ", achieved_rate(run));
    (void)printf("\"p50_ms\": %.3f, ", quantile(sorted, arrived, 500));
    (void)printf("\"p90_ms\": %.3f, ", quantile(sorted, arrived, 900));
    (void)printf("\"p99_ms\": %.3f, ", quantile(sorted, arrived, 990));
    (void)printf("\"p999_ms\": %.3f, ", quantile(sorted, arrived, 999));
    (void)printf("\"max_ms\": %.3f, ", quantile(sorted, arrived, 1000));
    (void)printf("\"commit_p50_ms\": %.3f}\n", commit_ms(run));
    (void)fflush(stdout);
    free(sorted);
}

/* ---- start --------------------------------------------------------------------- */

static long number_of(const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);

    if (*text == '\0' || *end != '\0' || number < 0)
        die("'%s' is not a number", text);
    return number;
}

static void plan(struct run *run)
{
    const struct options *options = &run->options;
    long rows = options->rows;

    if (options->rate < 1 || rows < 1 || options->writers < 1 ||
        options->writers > MAX_WRITERS || options->keys < options->writers)
        die("a number is out of range");
    run->interval_ns = (double)NS * (double)rows / (double)options->rate;
    run->warmup = (options->warmup * options->rate + rows - 1) / rows;
    run->transactions =
        run->warmup + (options->seconds * options->rate + rows - 1) / rows;
    run->sent_ns = allocate(run->transactions, sizeof(int64_t));
    run->took_ns = allocate(run->transactions, sizeof(int64_t));
    run->arrived_ns = allocate(run->transactions * rows, sizeof(int64_t));
}

int main(int argc, char **argv)
{
    struct run run = {0};
    struct writer writers[MAX_WRITERS];
    rd_kafka_t *consumer;

    if (argc != 11)
        die("usage: stopwatch DSN BOOTSTRAP TOPIC PAYLOAD RATE ROWS SECONDS WARMUP "
            "WRITERS"
            " KEYS");
    run.options = (struct options){argv[1],
                                   argv[2],
                                   argv[3],
                                   argv[4],
                                   number_of(argv[5]),
                                   number_of(argv[6]),
                                   number_of(argv[7]),
                                   number_of(argv[8]),
                                   number_of(argv[9]),
                                   number_of(argv[10])};
    plan(&run);
    consumer = new_consumer(&run.options);
    assign_from_end(consumer, run.options.topic);
    start_writers(writers, &run);
    consume(&run, consumer);
    join_writers(writers, &run);
    print_result(&run);
    _exit(0); /* an orderly end of librdkafka would take seconds and help nobody */
}
