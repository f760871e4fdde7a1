/* floor.c - the least program that can do walrelay's job, for the benchmark only.
 *
 *   floor DSN SLOT TABLE PREFIX BOOTSTRAP LINGER_MS
 *
 * Reads the slot with libpq, scans wal2json's lines in place, produces with librdkafka,
 * and confirms whenever everything is acknowledged.  No ledger, no configuration, no
 * protection of the order, no reconnect, hardly an error that is told: what remains is
 * what any relay in C has to spend. */
#include <libpq-fe.h>
#include <librdkafka/rdkafka.h>

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { STATUS_BYTES = 34, STATUS_EVERY_MS = 1000, TICK_MS = 100, COLUMNS = 5 };

struct bytes {
    char *ptr;
    size_t len;
};

enum { ID, AGGREGATE_TYPE, AGGREGATE_ID, EVENT_TYPE, PAYLOAD };
static const char *const column_names[COLUMNS] = {"id", "aggregate_type", "aggregate_id",
                                                  "event_type", "payload"};

struct floor {
    PGconn *conn;
    rd_kafka_t *rk;
    rd_kafka_topic_t *topic; /* of the aggregate type seen last */
    char topic_name[256];
    const char *prefix;
    uint64_t committed; /* end of the last transaction that was read */
    uint64_t confirmed;
    size_t pending; /* not acknowledged */
    int64_t status_ms;
    int queue_fd;
};

static volatile sig_atomic_t stopped;

static void on_signal(int signal)
{
    (void)signal;
    stopped = 1;
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "floor: %s: %s\n", what, why);
    exit(1);
}

static int64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- the slot ------------------------------------------------------------------- */

static uint64_t get64(const char *p)
{
    uint64_t x = 0;

    for (int i = 0; i < 8; i++)
        x = x << 8 | (unsigned char)p[i];
    return x;
}

static void put64(char *p, uint64_t x)
{
    for (int i = 7; i >= 0; i--, x >>= 8)
        p[i] = (char)(x & 0xff);
}

static void send_status(struct floor *f)
{
    char status[STATUS_BYTES] = "r";

    for (int i = 0; i < 3; i++)
        put64(status + 1 + i * 8, f->confirmed);
    if (PQputCopyData(f->conn, status, STATUS_BYTES) != 1 || PQflush(f->conn) < 0)
        die("status", PQerrorMessage(f->conn));
    f->status_ms = now_ms();
}

static void confirm(struct floor *f)
{
    if (f->pending == 0 && f->committed > f->confirmed) {
        f->confirmed = f->committed;
        send_status(f);
    } else if (now_ms() - f->status_ms >= STATUS_EVERY_MS) {
        send_status(f);
    }
}

static void start_replication(struct floor *f, const char *slot, const char *table)
{
    char command[512];
    PGresult *result;

    (void)snprintf(command, sizeof(command),
                   "START_REPLICATION SLOT \"%s\" LOGICAL 0/0 (\"format-version\" '2', "
                   "\"include-timestamp\" 'true', \"include-types\" 'false', "
                   "\"actions\" 'insert', \"add-tables\" '%s')",
                   slot, table);
    result = PQexec(f->conn, command);
    if (PQresultStatus(result) != PGRES_COPY_BOTH)
        die("START_REPLICATION", PQerrorMessage(f->conn));
    PQclear(result);
    if (PQsetnonblocking(f->conn, 1) != 0)
        die("PQsetnonblocking", PQerrorMessage(f->conn));
}

/* ---- one row -------------------------------------------------------------------- */

/* p stands behind the opening quote; returns what stands behind the closing one. */
static char *unquote(char *p, const char *end, struct bytes *ret)
{
    char *out = p;

    ret->ptr = p;
    for (; p < end && *p != '"'; p++) {
        if (*p == '\\' && ++p < end && *p == 'n')
            *out++ = '\n';
        else
            *out++ = *p;
    }
    ret->len = (size_t)(out - ret->ptr);
    return p + 1;
}

static char *find(char *p, const char *end, const char *text)
{
    return p < end ? memmem(p, (size_t)(end - p), text, strlen(text)) : NULL;
}

/* "columns":[{"name":"id","value":"..."},{"name":...}] */
static void scan(char *p, const char *end, struct bytes ret[COLUMNS])
{
    struct bytes name;

    while ((p = find(p, end, "{\"name\":\""))) {
        p = unquote(p + strlen("{\"name\":\""), end, &name);
        p += strlen(",\"value\":");
        for (int i = 0; i < COLUMNS && p < end && *p == '"'; i++) {
            if (strlen(column_names[i]) == name.len &&
                memcmp(column_names[i], name.ptr, name.len) == 0) {
                p = unquote(p + 1, end, &ret[i]);
                break;
            }
        }
    }
}

static rd_kafka_topic_t *topic_of(struct floor *f, struct bytes type)
{
    char name[sizeof(f->topic_name)];

    (void)snprintf(name, sizeof(name), "%s%.*s", f->prefix, (int)type.len, type.ptr);
    if (f->topic && strcmp(name, f->topic_name) == 0)
        return f->topic;
    memcpy(f->topic_name, name, sizeof(name));
    f->topic = rd_kafka_topic_new(f->rk, name, NULL);
    return f->topic;
}

static void produce(struct floor *f, char *p, const char *end)
{
    struct bytes c[COLUMNS] = {{0}};
    rd_kafka_headers_t *headers = rd_kafka_headers_new(2);
    rd_kafka_resp_err_t error;

    scan(p, end, c);
    (void)rd_kafka_header_add(headers, "id", 2, c[ID].ptr, (ssize_t)c[ID].len);
    (void)rd_kafka_header_add(headers, "type", 4, c[EVENT_TYPE].ptr,
                              (ssize_t)c[EVENT_TYPE].len);
    for (;;) {
        error =
            rd_kafka_producev(f->rk, RD_KAFKA_V_RKT(topic_of(f, c[AGGREGATE_TYPE])),
                              RD_KAFKA_V_PARTITION(RD_KAFKA_PARTITION_UA),
                              RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                              RD_KAFKA_V_KEY(c[AGGREGATE_ID].ptr, c[AGGREGATE_ID].len),
                              RD_KAFKA_V_VALUE(c[PAYLOAD].ptr, c[PAYLOAD].len),
                              RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
        if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            break;
        (void)rd_kafka_poll(f->rk, 1);
        confirm(f);
    }
    if (error != 0)
        die("produce", rd_kafka_err2str(error));
    f->pending++;
}

/* 'w', three times eight bytes, then the line; or 'k', walEnd, clock, reply asked. */
static void take_frame(struct floor *f, char *bytes, int len)
{
    enum { HEADER = 25, REPLY_ASKED = 17, ACTION = HEADER + 11 };

    if (bytes[0] == 'k') {
        if (f->pending == 0 && get64(bytes + 1) > f->committed)
            f->committed = get64(bytes + 1);
        if (bytes[REPLY_ASKED])
            send_status(f);
    } else if (bytes[ACTION] == 'I') {
        produce(f, bytes + HEADER, bytes + len);
    } else if (bytes[ACTION] == 'C') {
        f->committed = get64(bytes + 1);
    }
}

/* ---- Kafka ---------------------------------------------------------------------- */

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    struct floor *f = opaque;

    (void)rk;
    if (message->err)
        die("delivery", rd_kafka_err2str(message->err));
    f->pending--;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char why[256];

    if (rd_kafka_conf_set(conf, name, value, why, sizeof(why)) != RD_KAFKA_CONF_OK)
        die(name, why);
}

static void connect_kafka(struct floor *f, const char *bootstrap, const char *linger_ms)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_queue_t *queue;
    char why[256];

    set(conf, "bootstrap.servers", bootstrap);
    set(conf, "linger.ms", linger_ms);
    set(conf, "enable.idempotence", "true");
    set(conf, "compression.type", "lz4");
    set(conf, "partitioner", "murmur2_random");
    set(conf, "queue.buffering.max.messages", "20000");
    rd_kafka_conf_set_opaque(conf, f);
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    f->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
    if (!f->rk)
        die("Kafka", why);
    f->queue_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    queue = rd_kafka_queue_get_main(f->rk);
    rd_kafka_queue_io_event_enable(queue, f->queue_fd, &(uint64_t){1}, sizeof(uint64_t));
    rd_kafka_queue_destroy(queue);
}

/* ---- the loop ------------------------------------------------------------------- */

/* True: more may be there. */
static bool take_frames(struct floor *f)
{
    char *bytes;
    int len;
    bool any = false;

    if (!PQconsumeInput(f->conn))
        die("read", PQerrorMessage(f->conn));
    while ((len = PQgetCopyData(f->conn, &bytes, 1)) > 0) {
        take_frame(f, bytes, len);
        PQfreemem(bytes);
        any = true;
    }
    if (len < 0)
        die("stream", PQerrorMessage(f->conn));
    return any;
}

static void run(struct floor *f)
{
    uint64_t count;

    while (!stopped) {
        struct pollfd fds[] = {{PQsocket(f->conn), POLLIN, 0}, {f->queue_fd, POLLIN, 0}};

        (void)poll(fds, 2, TICK_MS);
        (void)!read(f->queue_fd, &count, sizeof(count));
        (void)rd_kafka_poll(f->rk, 0);
        while (take_frames(f))
            (void)rd_kafka_poll(f->rk, 0);
        confirm(f);
    }
}

int main(int argc, char **argv)
{
    struct floor f = {0};

    if (argc != 7)
        die("usage", "floor DSN SLOT TABLE PREFIX BOOTSTRAP LINGER_MS");
    (void)signal(SIGTERM, on_signal);
    f.prefix = argv[4];
    f.conn = PQconnectdb(argv[1]);
    if (PQstatus(f.conn) != CONNECTION_OK)
        die("PostgreSQL", PQerrorMessage(f.conn));
    connect_kafka(&f, argv[5], argv[6]);
    start_replication(&f, argv[2], argv[3]);
    run(&f);
    PQfinish(f.conn);
    rd_kafka_destroy(f.rk);
    return 0;
}
