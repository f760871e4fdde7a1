/* settings.h - the table of all settings, and what librdkafka must not be told.
 *
 * Private to config*.c.  A new setting is a new row in settings.c and a field in
 * config.h; file, environment, `walrelay config`, --help and the reference follow. */
#ifndef WALRELAY_CORE_SETTINGS_H
#define WALRELAY_CORE_SETTINGS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a value is written, and what its field in the struct is. */
enum setting_type {
    SETTING_TEXT,     /* char * */
    SETTING_SLOT,     /* char *: the name of a replication slot */
    SETTING_COLUMN,   /* char *, NULL when empty */
    SETTING_HEADER,   /* struct header_setting, column NULL when empty */
    SETTING_HEADERS,  /* headers and nheaders of struct table_settings */
    SETTING_SIZE,     /* uint64_t, bytes */
    SETTING_DURATION, /* int64_t, milliseconds */
    SETTING_COUNT,    /* uint64_t, a whole number without a unit */
    SETTING_ADDRESS,  /* struct address_setting, host NULL when empty */
    SETTING_CHOICE,   /* an enum that counts from 0 in the order of choices */
    SETTING_PROPERTY, /* one more struct kafka_property */
};

struct setting {
    const char *section; /* "table" for each [table NAME] */
    const char *key;     /* "*": any key that has no row of its own */
    enum setting_type type;
    bool filled;          /* must not be empty */
    const char *fallback; /* the default, as one would write it; NULL: must be given, or
                           * for "*" nothing */
    int64_t min;          /* SIZE, DURATION: in bytes or milliseconds; COUNT */
    int64_t max;
    const char *const *choices; /* CHOICE: ends with NULL */
    size_t offset;    /* in struct config, for "table" in struct table_settings */
    const char *help; /* Markdown, one paragraph */
};

extern const struct setting settings[];
extern const size_t nsettings;

/* A kind of section; the order is that of the rows in settings. */
struct section_kind {
    const char *name;
    const char *heading; /* as one would write it */
    const char *help;
};

extern const struct section_kind section_kinds[];
extern const size_t nsection_kinds;

/* The row for a key, NULL if there is none. */
const struct setting *setting_find(const char *section, const char *key);

/* Is "*" its key? */
bool setting_is_wildcard(const struct setting *setting);

/* The valid key in that section nearest to a wrong one; the section has keys. */
const char *setting_nearest(const char *section, const char *key);

/* The type in words, for people: "size (B, kB, MB, GB)". */
const char *setting_type_words(enum setting_type type);

/* A property of librdkafka that the promise of delivery depends on, aliases too. */
struct kafka_rule {
    const char *name;
    const char *only; /* the values allowed, between bars: "all|-1"; "": none;
                       * NULL: a whole number from min to max */
    int64_t min;
    int64_t max;
    const char *reason;
};

extern const struct kafka_rule kafka_rules[];
extern const size_t nkafka_rules;

/* The rule that forbids this value, NULL if it may pass. */
const struct kafka_rule *kafka_rule_against(const char *name, const char *value);

#endif
