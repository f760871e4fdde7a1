/* config.h - every setting, from one table.
 *
 * The table in settings.c (section, key, type, unit, default, range, help) is the
 * whole configuration: it loads the file and the environment, prints
 * `walrelay config`, `walrelay run --help` and docs/reference.md's settings. */
#ifndef WALRELAY_CORE_CONFIG_H
#define WALRELAY_CORE_CONFIG_H

#include "base/err.h"
#include "base/log.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A column and the name of the header it becomes: "trace_id:x-trace-id".  Without
 * an alias the header has the column's name. */
struct header_setting {
    char *column;
    char *header;
};

/* Where to listen. */
struct address_setting {
    char *host;
    uint16_t port;
};

/* One [table ...] section.  Column settings are names as they stand in
 * pg_attribute, case and all; NULL where the setting is empty: not used. */
struct table_settings {
    char *schema; /* from the section's name, folded as SQL folds identifiers */
    char *name;
    int line; /* of the section, for messages */

    char *topic; /* a template: text with {column} in it; see core/topic.h */
    char *key;
    char *payload;
    struct header_setting id;   /* column NULL: no such header */
    struct header_setting type; /* the same */
    struct header_setting *headers;
    size_t nheaders;
    char *aggregate_id; /* for log lines only; the key's column by default */
    char *partition;
    char *timestamp;
};

/* One property of librdkafka, as written. */
struct kafka_property {
    char *name;
    char *value;
};

/* What becomes of an event that Kafka can never take. */
enum on_poison { ON_POISON_DEAD_LETTER, ON_POISON_STOP };

/* And of those of its key that follow. */
enum poison_order { ORDER_HOLD, ORDER_SKIP };

struct config {
    struct {
        char *dsn; /* any connection string of libpq; may hold a password */
        char *slot;
    } postgres;
    struct table_settings *tables;
    size_t ntables;
    struct kafka_property *kafka;
    size_t nkafka;
    struct {
        uint64_t memory_bytes; /* ceiling of unacknowledged events */
        int64_t shutdown_timeout_ms;
        enum log_format log_format;
        enum log_level log_level;
    } relay;
    struct {
        char *schema; /* of the table of dead letters */
        enum on_poison on_poison;
        enum poison_order order;
        int64_t retry_initial_ms;
        int64_t retry_max_ms;
        uint64_t max_attempts;
        uint64_t held_per_key;
        uint64_t held_total;
        uint64_t limit; /* dead letters within limit_window_ms; 0: no limit */
        int64_t limit_window_ms;
        int64_t topic_wait_ms; /* 0: for ever */
        char *topic;           /* where dead letters go besides; "": nowhere */
    } dead_letters;
    struct {
        struct address_setting listen; /* host NULL: nowhere */
    } http;

    struct config_origins *origins; /* where each value comes from; private */
};

/* An environment of NAME=value strings that ends with NULL, as in environ(7). */
typedef const char *const *config_env_t;

/* Reads `text`, the bytes of the file called `path` (for messages only), then lets
 * WALRELAY_<SECTION>_<KEY> (upper case, dots as underscores) and
 * WALRELAY_<SECTION>_<KEY>_FILE (a file that holds the value; one trailing newline
 * is dropped) win over it.  [table] sections are not in the environment, and only
 * variables that begin with WALRELAY_<SECTION>_ are looked at.
 *
 * NULL with err set (ERR_CONFIG) for: an unknown section or key, with the nearest
 * valid name; a duplicate; a number out of range or without its unit; a variable that
 * names no setting; a [kafka] property that would break the promise of delivery, with
 * the reason.  The text begins with "file:line: " where there is a line, with the
 * variable's name where there is one, and never holds a password. */
struct config *config_parse(const char *path, struct slice text, config_env_t env,
                            struct err *err) __attribute__((warn_unused_result));
void config_free(struct config *config);

/* Effective values in the file's own syntax, each with a comment that says where it
 * comes from (default, file:line, environment variable).  Passwords in the dsn and
 * secret Kafka properties print as ********. */
void config_print(const struct config *config, FILE *out);

/* The settings of the table, for --help: a line or two each. */
void config_help(FILE *out);

/* The same as Markdown, the settings part of docs/reference.md. */
void config_reference(FILE *out);

#endif
