#include "core/route.h"

#include "base/must.h"
#include "base/utf8.h"
#include "core/leaves.h"
#include "core/route_table.h"
#include "core/sqlname.h"
#include "core/strangers.h"
#include "core/timestamp.h"
#include "core/value.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    US_PER_MS = 1000,
    /* Kafka 4's message.timestamp.after.max.ms */
    MS_AHEAD_MAX = 3600 * 1000,
    /* of a value in an error's text: a topic's name has room */
    SHOWN_MAX = TOPIC_MAX,
};

static const struct slice timestamp_header = {"walrelay.timestamp",
                                              sizeof("walrelay.timestamp") - 1};

struct router {
    struct router_options options;
    struct route_table *tables;
    size_t ntables;
    struct leaves leaves;
    struct strangers strangers;
    struct header *headers; /* of the message at hand; room for any table's */
    char topic[TOPIC_MAX];
    uint64_t timestamps_replaced;
};

/* What the steps of one row share. */
struct work {
    struct router *router;
    const struct leaf *leaf;
    struct route_table *table; /* of the leaf's section */
    const struct change *row;
    struct message *ret;
    struct err *err;
};

/* ---- why a row cannot be published --------------------------------------------- */

static struct slice shown(struct slice s)
{
    return (struct slice){s.ptr, s.len < SHOWN_MAX ? s.len : SHOWN_MAX};
}

/* As it is published, or as the row has it if that could not be made out. */
static struct slice people_value(const struct route_field *field)
{
    if (!field || !field->column)
        return (struct slice){NULL, 0};
    return field->value.ptr ? field->value : field->column->value;
}

static void fill_people(const struct work *work)
{
    struct message *ret = work->ret;

    ret->table = (struct slice){work->table->name, work->table->name_len};
    ret->event_id = people_value(work->table->id);
    ret->event_type = people_value(work->table->type);
    ret->aggregate_id = people_value(work->table->aggregate_id);
    ret->place = (struct place){work->row->lsn, work->row->number, work->row->commit_us};
}

/* "table public.events (rows in public.events_2026_11), event 7f3c, LSN 0/16B3748: " */
static void add_whereabouts(struct buf *text, const struct work *work)
{
    const struct table_settings *settings = work->table->settings;
    struct slice id = shown(work->ret->event_id);

    buf_printf(text, "table %s", work->table->name);
    if (!slice_eq(work->leaf->name, slice_of(settings->name)) ||
        !slice_eq(work->leaf->schema, slice_of(settings->schema))) {
        buf_add_str(text, " (rows in ");
        sqlname_add(text, work->leaf->catalog->schema, work->leaf->catalog->name);
        buf_add_char(text, ')');
    }
    if (id.ptr)
        buf_printf(text, ", event %.*s", SLICE_ARG(id));
    buf_printf(text, ", LSN %" LSN_FMT ": ", LSN_ARG(work->row->lsn));
}

__attribute__((format(printf, 2, 3))) static enum route_verdict
poison(const struct work *work, const char *fmt, ...)
{
    char reason[ERR_TEXT_MAX];
    struct buf text;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(reason, sizeof(reason), fmt, ap);
    va_end(ap);
    fill_people(work);
    buf_init(&text, ERR_TEXT_MAX);
    add_whereabouts(&text, work);
    (void)err_set(work->err, ERR_POISON, "%s%s", buf_str(&text), reason);
    buf_done(&text);
    return ROUTE_POISON;
}

/* ---- columns to values --------------------------------------------------------- */

static const struct column *find_column(struct route_field *field,
                                        const struct change *row)
{
    if (field->place < row->ncolumns &&
        slice_eq(row->columns[field->place].name, field->name))
        return &row->columns[field->place];
    for (size_t i = 0; i < row->ncolumns; i++) {
        if (slice_eq(row->columns[i].name, field->name)) {
            field->place = i;
            return &row->columns[i];
        }
    }
    return NULL;
}

/* Before any value is read, so that an error can name the event. */
static void find_columns(const struct work *work)
{
    for (size_t i = 0; i < work->table->nfields; i++) {
        struct route_field *field = &work->table->fields[i];

        field->column = find_column(field, work->row);
        field->value = (struct slice){NULL, 0};
    }
}

static enum route_verdict unknown_kind(const struct work *work,
                                       const struct route_field *field)
{
    if (!work->router->options.typed)
        return ROUTE_NEED_TYPES;
    return poison(work,
                  "column %s had type %.*s when the row was written and has %s now; its "
                  "value may be text or bytes of a domain over bytea",
                  field->catalog->name, SLICE_ARG(field->column->type),
                  field->catalog->type);
}

/* The value's bytes, to write to: they belong to the row's frame. */
static char *bytes_of(const struct change *row, struct slice value)
{
    size_t offset = (size_t)(value.ptr - row->frame.bytes);

    must(offset <= row->frame.len && value.len <= row->frame.len - offset);
    return row->frame.bytes + offset;
}

static enum route_verdict read_text(const struct work *work, struct route_field *field)
{
    struct slice value = field->column->value;

    if (work->router->options.check_utf8 && !utf8_valid(value))
        return poison(work, "the value of column %s is not valid UTF-8",
                      field->catalog->name);
    /* Not only the catalog's word counts: the column may have been a bytea when the
     * row was written, and pg_attribute tells its type of today. */
    if (field == work->table->payload && !work->router->options.typed &&
        value_ambiguous(value))
        return ROUTE_NEED_TYPES;
    field->value = value;
    return ROUTE_MESSAGE;
}

static enum route_verdict read_field(const struct work *work, struct route_field *field)
{
    const struct column *column = field->column;
    enum value_kind kind;

    if (!column && field->required)
        return poison(work, "the row has no column %s; it had none when it was written",
                      field->catalog->name);
    if (!column || !column->value.ptr)
        return ROUTE_MESSAGE;
    kind = value_kind(column, field->catalog, work->router->options.typed);
    if (kind == VALUE_TEXT)
        return read_text(work, field);
    if (kind == VALUE_UNKNOWN)
        return unknown_kind(work, field);
    if (!value_read(kind, bytes_of(work->row, column->value), column->value.len,
                    &field->value))
        return poison(work, "the value of bytea column %s is not hexadecimal",
                      field->catalog->name);
    return ROUTE_MESSAGE;
}

/* A field that cannot be read does not keep the others from being read: the table of dead
 * letters has what there is. */
static enum route_verdict read_fields(const struct work *work)
{
    enum route_verdict ret = ROUTE_MESSAGE;

    for (size_t i = 0; i < work->table->nfields; i++) {
        enum route_verdict verdict = read_field(work, &work->table->fields[i]);

        if (verdict == ROUTE_NEED_TYPES)
            return verdict;
        if (verdict != ROUTE_MESSAGE)
            ret = verdict;
    }
    return ret;
}

/* ---- values to the record ------------------------------------------------------ */

static struct slice value_of(const struct route_field *field)
{
    return field ? field->value : (struct slice){NULL, 0};
}

static enum route_verdict add_topic_part(const struct work *work, size_t part)
{
    const struct topic_part *p = &work->table->topic.parts[part];
    struct slice text = p->is_column ? work->table->topic_fields[part]->value : p->text;
    struct slice *topic = &work->ret->topic;

    if (!text.ptr)
        return poison(work, "column %.*s is NULL, and the topic is named after it",
                      SLICE_ARG(p->text));
    if (text.len > TOPIC_MAX - topic->len)
        return poison(work, "the topic's name would be longer than %d bytes", TOPIC_MAX);
    memcpy(work->router->topic + topic->len, text.ptr, text.len);
    if (p->is_column && !work->ret->aggregate_type.ptr)
        work->ret->aggregate_type = (struct slice){topic->ptr + topic->len, text.len};
    topic->len += text.len;
    return ROUTE_MESSAGE;
}

static enum route_verdict make_topic(const struct work *work)
{
    const struct topic_template *template = &work->table->topic;
    struct slice *topic = &work->ret->topic;

    work->ret->aggregate_type = (struct slice){NULL, 0};
    if (template->is_constant) {
        *topic = template->parts[0].text;
        return ROUTE_MESSAGE;
    }
    *topic = (struct slice){work->router->topic, 0};
    for (size_t i = 0; i < template->nparts; i++) {
        if (add_topic_part(work, i) != ROUTE_MESSAGE)
            return ROUTE_POISON;
    }
    if (!topic_legal(*topic))
        return poison(
            work,
            "\"%.*s\" is no name for a topic: Kafka takes ASCII letters, digits, "
            "'.', '_' and '-', and neither \".\" nor \"..\"",
            SLICE_ARG(*topic));
    return ROUTE_MESSAGE;
}

/* Nothing but digits after an optional minus, and no overflow. */
static bool parse_integer(struct slice text, int64_t *ret)
{
    bool minus = text.len > 0 && text.ptr[0] == '-';
    int64_t value = 0;

    if (text.len == (minus ? 1u : 0u))
        return false;
    for (size_t i = minus; i < text.len; i++) {
        int digit = text.ptr[i] - '0';

        if (digit < 0 || digit > 9 || value > (INT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *ret = minus ? -value : value;
    return true;
}

static enum route_verdict set_partition(const struct work *work)
{
    struct slice text = value_of(work->table->partition);
    int64_t partition;

    work->ret->partition = PARTITION_ANY;
    if (!text.ptr)
        return ROUTE_MESSAGE;
    if (!parse_integer(text, &partition) || partition < 0 || partition > PARTITION_MAX)
        return poison(work,
                      "column %s holds \"%.*s\", which is no number of a partition (0 to "
                      "%d, or NULL to go by the key)",
                      work->table->partition->catalog->name, SLICE_ARG(shown(text)),
                      PARTITION_MAX);
    work->ret->partition = (int32_t)partition;
    return ROUTE_MESSAGE;
}

static int64_t floor_ms(int64_t us)
{
    int64_t ms = us / US_PER_MS;

    return us % US_PER_MS < 0 ? ms - 1 : ms;
}

/* A timestamp as PostgreSQL writes it, or a number: milliseconds since 1970. */
static bool read_timestamp(struct slice text, int64_t *ret_ms)
{
    int64_t us;

    if (parse_integer(text, ret_ms))
        return true;
    if (!timestamp_parse(text, &us))
        return false;
    *ret_ms = floor_ms(us);
    return true;
}

static void set_timestamp(const struct work *work, int64_t now_ms)
{
    struct slice text = value_of(work->table->timestamp);
    struct message *ret = work->ret;
    int64_t ms;

    ret->commit_ms = floor_ms(work->row->commit_us);
    ret->timestamp_ms = ret->commit_ms;
    ret->given_timestamp = (struct slice){NULL, 0};
    if (!text.ptr)
        return;
    /* Not 0 either: librdkafka reads that as "now" (RD_KAFKA_V_TIMESTAMP). */
    if (!read_timestamp(text, &ms) || ms <= 0 || ms > now_ms + MS_AHEAD_MAX) {
        work->router->headers[ret->nheaders++] = (struct header){timestamp_header, text};
        work->router->timestamps_replaced++;
        return;
    }
    ret->timestamp_ms = ms;
    ret->given_timestamp = text;
}

static void set_headers(const struct work *work)
{
    struct header *headers = work->router->headers;
    size_t n = 0;

    for (size_t i = 0; i < work->table->nheaders; i++) {
        const struct route_header *h = &work->table->headers[i];

        if (h->field->value.ptr)
            headers[n++] = (struct header){h->name, h->field->value};
    }
    work->ret->headers = headers;
    work->ret->nheaders = n;
}

/* ---- rows of tables that no section knows --------------------------------------- */

static enum route_verdict without_leaf(const struct router *router,
                                       const struct change *row)
{
    for (size_t i = 0; i < router->ntables; i++) {
        if (route_table_may_own(&router->tables[i], row))
            return strangers_have(&router->strangers, row->schema, row->table,
                                  row->commit_us)
                       ? ROUTE_OTHER
                       : ROUTE_UNKNOWN;
    }
    return ROUTE_OTHER;
}

int router_pass(struct router *router, struct slice schema, struct slice table,
                int64_t before_us)
{
    return strangers_add(&router->strangers, schema, table, before_us);
}

/* ---- one row -------------------------------------------------------------------- */

/* A wrong key would hold the wrong events. */
static bool key_is_right(const struct work *work)
{
    const struct route_field *key = work->table->key;

    return !key || key->value.ptr || !people_value(key).ptr;
}

enum route_verdict router_message(struct router *router, struct change *change,
                                  int64_t now_ms, struct message *ret, struct err *err)
{
    struct work work = {.router = router, .row = change, .ret = ret, .err = err};
    enum route_verdict verdict;

    work.leaf = leaves_find(&router->leaves, change->schema, change->table);
    if (!work.leaf)
        return without_leaf(router, change);
    work.table = &router->tables[work.leaf->section];
    find_columns(&work);
    verdict = read_fields(&work);
    if (verdict == ROUTE_NEED_TYPES)
        return verdict;
    /* What is poison by now is filled as far as it goes. */
    if (make_topic(&work) != ROUTE_MESSAGE ||
        (verdict == ROUTE_POISON && !key_is_right(&work))) {
        ret->topic = ret->aggregate_type = (struct slice){NULL, 0};
        verdict = ROUTE_POISON;
    }
    if (set_partition(&work) != ROUTE_MESSAGE)
        verdict = ROUTE_POISON;
    ret->key = people_value(work.table->key);
    ret->payload = people_value(work.table->payload);
    set_headers(&work);
    set_timestamp(&work, now_ms); /* may add a header */
    fill_people(&work);
    return verdict;
}

uint64_t router_timestamps_replaced(const struct router *router)
{
    return router->timestamps_replaced;
}

/* ---- making one ---------------------------------------------------------------- */

/* A row has one section: no table may be reached through two. */
static int check_leaves(const struct router *router, struct err *err)
{
    const struct leaf *twice = leaves_duplicate(&router->leaves);

    if (!twice)
        return 0;
    return err_set(err, ERR_CONFIG,
                   "the rows of table %s.%s belong to two sections, [table %s] and "
                   "[table %s]: remove one",
                   twice->catalog->schema, twice->catalog->name,
                   router->tables[twice[0].section].name,
                   router->tables[twice[1].section].name);
}

static int init(struct router *router, const struct config *config,
                const struct catalog *catalog, struct err *err)
{
    size_t most_headers = 0;

    router->tables = calloc(config->ntables + 1, sizeof(*router->tables));
    if (!router->tables || leaves_init(&router->leaves, catalog) < 0)
        return err_set(err, ERR_INTERNAL, "out of memory for the router");
    for (size_t i = 0; i < config->ntables; i++) {
        struct route_table *table = &router->tables[i];

        if (route_table_init(table, &config->tables[i], &catalog->tables[i], err) < 0)
            return -1;
        router->ntables++;
        if (table->nheaders > most_headers)
            most_headers = table->nheaders;
    }
    /* one more: walrelay.timestamp */
    router->headers = calloc(most_headers + 1, sizeof(*router->headers));
    if (!router->headers)
        return err_set(err, ERR_INTERNAL, "out of memory for the router");
    return check_leaves(router, err);
}

struct router *router_new(const struct config *config, const struct catalog *catalog,
                          struct router_options options, struct err *err)
{
    struct router *router = calloc(1, sizeof(*router));

    must(config->ntables == catalog->ntables);
    if (!router) {
        (void)err_set(err, ERR_INTERNAL, "out of memory for the router");
        return NULL;
    }
    router->options = options;
    if (init(router, config, catalog, err) < 0) {
        router_free(router);
        return NULL;
    }
    return router;
}

void router_free(struct router *router)
{
    if (!router)
        return;
    for (size_t i = 0; i < router->ntables; i++)
        route_table_done(&router->tables[i]);
    leaves_done(&router->leaves);
    strangers_done(&router->strangers);
    free(router->tables);
    free(router->headers);
    free(router);
}
