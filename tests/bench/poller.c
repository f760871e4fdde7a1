/* poller.c - the polling relay of the outbox pattern, as its users write it.
 *
 *   poller DSN PREFIX BOOTSTRAP LIMIT INTERVAL_MS
 *
 * Again and again, in one transaction: take the oldest LIMIT rows of public.outbox_events
 * that nobody has processed or is processing now, publish them, wait until Kafka has
 * acknowledged them all, mark them as processed, commit.  Only when nothing was found
 * does it sleep, for INTERVAL_MS.  Several may run at once and share the work; then
 * events of a key may overtake each other.  Ends at SIGTERM, between two transactions, or
 * at an error of PostgreSQL.
 *
 * A record is what walrelay's defaults make of the row. */
#include <libpq-fe.h>
#include <librdkafka/rdkafka.h>

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* created_at is when the row's transaction began; the partial index serves the order. */
#define FETCH                                                                            \
    "SELECT id, aggregate_type, aggregate_id, event_type, payload"                       \
    " FROM public.outbox_events WHERE processed_at IS NULL"                              \
    " ORDER BY created_at LIMIT $1::bigint FOR UPDATE SKIP LOCKED"
#define MARK                                                                             \
    "UPDATE public.outbox_events SET processed_at = now() WHERE id = ANY ($1::uuid[])"

enum { UUID_BYTES = 36 };
enum column { ID, AGGREGATE_TYPE, AGGREGATE_ID, EVENT_TYPE, PAYLOAD };

struct poller {
    const char *prefix, *limit;
    long interval_ms;
    PGconn *conn;
    rd_kafka_t *producer;
    int failed; /* messages of this batch that Kafka did not take */
};

static volatile sig_atomic_t stopping;

static void on_signal(int signal)
{
    (void)signal;
    stopping = 1;
}

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)fputs("poller: ", stderr);
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
    va_end(arguments);
    _exit(1);
}

/* ---- PostgreSQL ---------------------------------------------------------------- */

/* The result, checked. */
static PGresult *checked(struct poller *poller, PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        die("%s", PQerrorMessage(poller->conn));
    return result;
}

static void run(struct poller *poller, const char *command)
{
    PQclear(checked(poller, PQexec(poller->conn, command)));
}

static PGresult *run_prepared(struct poller *poller, const char *name, const char *value)
{
    return checked(poller, PQexecPrepared(poller->conn, name, 1, &value, NULL, NULL, 0));
}

static void connect_database(struct poller *poller, const char *dsn)
{
    poller->conn = PQconnectdb(dsn);
    if (PQstatus(poller->conn) != CONNECTION_OK)
        die("%s", PQerrorMessage(poller->conn));
    PQclear(checked(poller, PQprepare(poller->conn, "fetch", FETCH, 0, NULL)));
    PQclear(checked(poller, PQprepare(poller->conn, "mark", MARK, 0, NULL)));
}

static void mark_processed(struct poller *poller, const PGresult *rows)
{
    int count = PQntuples(rows);
    char *ids = malloc((size_t)count * (UUID_BYTES + 1) + 2), *end = ids;

    if (ids == NULL)
        die("out of memory");
    for (int row = 0; row < count; row++) {
        *end++ = row == 0 ? '{' : ',';
        memcpy(end, PQgetvalue(rows, row, ID), UUID_BYTES);
        end += UUID_BYTES;
    }
    memcpy(end, "}", 2);
    PQclear(run_prepared(poller, "mark", ids));
    free(ids);
}

/* ---- Kafka --------------------------------------------------------------------- */

static void on_report(rd_kafka_t *producer, const rd_kafka_message_t *message,
                      void *opaque)
{
    struct poller *poller = opaque;

    (void)producer;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR)
        return;
    (void)fprintf(stderr, "poller: %s\n", rd_kafka_err2str(message->err));
    poller->failed++;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char text[512];

    if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) != RD_KAFKA_CONF_OK)
        die("%s", text);
}

static void connect_kafka(struct poller *poller, const char *bootstrap)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[512];

    set(conf, "bootstrap.servers", bootstrap);
    set(conf, "enable.idempotence", "true");
    set(conf, "acks", "all");
    set(conf, "compression.type", "lz4");
    set(conf, "linger.ms", "5");
    set(conf, "partitioner", "murmur2_random");
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    rd_kafka_conf_set_opaque(conf, poller);
    poller->producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    if (poller->producer == NULL)
        die("%s", text);
}

struct text {
    const char *bytes; /* NULL for a NULL */
    size_t length;
};

static struct text text_at(const PGresult *rows, int row, enum column column)
{
    struct text text = {PQgetvalue(rows, row, (int)column),
                        (size_t)PQgetlength(rows, row, (int)column)};

    return PQgetisnull(rows, row, (int)column) ? (struct text){NULL, 0} : text;
}

/* librdkafka borrows the payload: the rows stay until all of them are acknowledged. */
static void produce(struct poller *poller, const PGresult *rows, int row)
{
    struct text id = text_at(rows, row, ID), type = text_at(rows, row, EVENT_TYPE);
    struct text key = text_at(rows, row, AGGREGATE_ID);
    struct text payload = text_at(rows, row, PAYLOAD);
    char topic[256];
    rd_kafka_resp_err_t error;

    (void)snprintf(topic, sizeof(topic), "%s%s", poller->prefix,
                   text_at(rows, row, AGGREGATE_TYPE).bytes);
    error = rd_kafka_producev(
        poller->producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_KEY(key.bytes, key.length),
        RD_KAFKA_V_VALUE((void *)(uintptr_t)payload.bytes, payload.length),
        RD_KAFKA_V_HEADER("id", id.bytes, (ssize_t)id.length),
        RD_KAFKA_V_HEADER("type", type.bytes, (ssize_t)type.length), RD_KAFKA_V_END);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
        die("produce: %s", rd_kafka_err2str(error));
}

/* Publishes the rows; has Kafka acknowledged them all? */
static bool publish(struct poller *poller, const PGresult *rows)
{
    poller->failed = 0;
    for (int row = 0; row < PQntuples(rows); row++)
        produce(poller, rows, row);
    while (rd_kafka_flush(poller->producer, 1000) != RD_KAFKA_RESP_ERR_NO_ERROR)
        continue;
    return poller->failed == 0;
}

/* ---- the loop ------------------------------------------------------------------ */

/* One transaction; has it published anything? */
static bool work(struct poller *poller)
{
    PGresult *rows;
    bool nothing, published;

    run(poller, "BEGIN");
    rows = run_prepared(poller, "fetch", poller->limit);
    nothing = PQntuples(rows) == 0;
    published = !nothing && publish(poller, rows);
    if (published)
        mark_processed(poller, rows);
    run(poller, nothing || published ? "COMMIT" : "ROLLBACK");
    PQclear(rows);
    return published;
}

static void rest(const struct poller *poller)
{
    struct timespec interval = {poller->interval_ms / 1000,
                                poller->interval_ms % 1000 * 1000000};

    nanosleep(&interval, NULL); /* a signal ends it */
}

int main(int argc, char **argv)
{
    struct poller poller = {0};
    struct sigaction action = {.sa_handler = on_signal};

    if (argc != 6)
        die("usage: poller DSN PREFIX BOOTSTRAP LIMIT INTERVAL_MS");
    poller.prefix = argv[2];
    poller.limit = argv[4];
    poller.interval_ms = strtol(argv[5], NULL, 10);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    connect_database(&poller, argv[1]);
    connect_kafka(&poller, argv[3]);
    while (!stopping)
        if (!work(&poller))
            rest(&poller);
    PQfinish(poller.conn);
    rd_kafka_destroy(poller.producer);
    return 0;
}
