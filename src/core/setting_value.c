#include "core/setting_value.h"

#include "base/grow.h"
#include "core/identifier.h"
#include "core/nearest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int out_of_memory(struct err *err)
{
    return err_set(err, ERR_INTERNAL, "out of memory");
}

static int store_copy(char **field, const char *text, struct err *err)
{
    char *copy = strdup(text);

    if (!copy)
        return out_of_memory(err);
    free(*field);
    *field = copy;
    return 0;
}

/* ---- sizes and durations ------------------------------------------------------- */

struct unit {
    const char *name;
    int64_t factor;
};

/* As in postgresql.conf: kB is 1024 bytes, case matters. */
static const struct unit size_units[] = {
    {"GB", 1 << 30}, {"MB", 1 << 20}, {"kB", 1 << 10}, {"B", 1}, {NULL, 0}};
static const struct unit duration_units[] = {
    {"h", 3600000}, {"min", 60000}, {"s", 1000}, {"ms", 1}, {NULL, 0}};

static const struct unit count_units[] = {{"", 1}, {NULL, 0}};

static const struct unit *units_of(const struct setting *setting)
{
    if (setting->type == SETTING_COUNT)
        return count_units;
    return setting->type == SETTING_SIZE ? size_units : duration_units;
}

/* In the largest unit that gives a whole number. */
static void print_quantity(char text[32], const struct unit *units, int64_t n)
{
    const struct unit *unit = units;

    while (n == 0 ? strcmp(unit->name, "s") != 0 && unit->factor != 1
                  : n % unit->factor != 0)
        unit++;
    (void)snprintf(text, 32, "%" PRId64 "%s", n / unit->factor, unit->name);
}

static bool is_quantity(enum setting_type type)
{
    return type == SETTING_SIZE || type == SETTING_DURATION || type == SETTING_COUNT;
}

const char *setting_range(const struct setting *setting, struct range_text *range)
{
    char min[32];
    char max[32];
    size_t len = 0;

    range->text[0] = '\0';
    if (is_quantity(setting->type)) {
        print_quantity(min, units_of(setting), setting->min);
        print_quantity(max, units_of(setting), setting->max);
        (void)snprintf(range->text, sizeof(range->text), "%s to %s", min, max);
    }
    for (size_t i = 0; setting->choices && setting->choices[i]; i++) {
        (void)snprintf(range->text + len, sizeof(range->text) - len, "%s%s",
                       i > 0 ? ", " : "", setting->choices[i]);
        len = strlen(range->text);
    }
    return range->text;
}

static int out_of_range(const struct setting *setting, const char *text, struct err *err)
{
    struct range_text range;

    return err_set(err, ERR_CONFIG, "%s is out of range; it may be %s", text,
                   setting_range(setting, &range));
}

static const struct unit *find_unit(const struct unit *units, const char *name)
{
    while (units->name && strcmp(units->name, name) != 0)
        units++;
    return units->name ? units : NULL;
}

static int parse_quantity(const struct setting *setting, const char *text, int64_t *ret,
                          struct err *err)
{
    const struct unit *unit;
    const char *p = text;
    int64_t n = 0;

    for (; *p >= '0' && *p <= '9'; p++) {
        if (n > (INT64_MAX - 9) / 10)
            return out_of_range(setting, text, err);
        n = 10 * n + (*p - '0');
    }
    if (setting->type == SETTING_COUNT && (p == text || *p != '\0'))
        return err_set(err, ERR_CONFIG, "\"%s\" is no whole number", text);
    if (p == text)
        return err_set(err, ERR_CONFIG, "\"%s\" is no whole number with a unit", text);
    p += strspn(p, " \t");
    unit = find_unit(units_of(setting), p);
    if (!unit)
        return err_set(err, ERR_CONFIG, "\"%s\" has %s; a %s is needed, as in %s", text,
                       *p ? "an unknown unit" : "no unit",
                       setting_type_words(setting->type), setting->fallback);
    if (n > INT64_MAX / unit->factor || n * unit->factor < setting->min ||
        n * unit->factor > setting->max)
        return out_of_range(setting, text, err);
    *ret = n * unit->factor;
    return 0;
}

static int store_size(const struct setting *setting, const char *text, uint64_t *field,
                      struct err *err)
{
    int64_t n = 0;

    if (parse_quantity(setting, text, &n, err) < 0)
        return -1;
    *field = (uint64_t)n;
    return 0;
}

/* ---- names --------------------------------------------------------------------- */

static int store_choice(const struct setting *setting, const char *text, unsigned *field,
                        struct err *err)
{
    size_t n = 0;

    for (; setting->choices[n]; n++) {
        if (strcmp(setting->choices[n], text) == 0) {
            *field = (unsigned)n;
            return 0;
        }
    }
    return err_set(err, ERR_CONFIG, "unknown value \"%s\", the nearest valid one is %s",
                   text, nearest_name(text, setting->choices, n));
}

/* ReplicationSlotValidateName in PostgreSQL's slot.c */
static int store_slot(const char *text, char **field, struct err *err)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");

    if (text[len] != '\0' || len > IDENTIFIER_MAX)
        return err_set(err, ERR_CONFIG,
                       "\"%s\" cannot be a slot's name: at most %d lower case letters, "
                       "digits and _",
                       text, IDENTIFIER_MAX);
    return store_copy(field, text, err);
}

static int store_column(const char *text, char **field, struct err *err)
{
    identifier_t name;

    if (*text == '\0') {
        free(*field);
        *field = NULL;
        return 0;
    }
    if (identifier_column(&text, "", name, err) < 0)
        return -1;
    return store_copy(field, name, err);
}

static void header_done(struct header_setting *header)
{
    free(header->column);
    free(header->header);
    *header = (struct header_setting){0};
}

/* The alias behind a colon: up to a byte of stops, without the blanks around it. */
static int take_alias(const char **text, const char *stops, char **ret, struct err *err)
{
    const char *begin = *text + 1 + strspn(*text + 1, " \t");
    size_t len = strcspn(begin, stops);

    *text = begin + len;
    while (len > 0 && strchr(" \t", begin[len - 1]))
        len--;
    if (len == 0)
        return err_set(err, ERR_CONFIG, "there is no header's name after the colon");
    *ret = strndup(begin, len);
    return *ret ? 0 : out_of_memory(err);
}

/* COLUMN[:HEADER], and *text moved behind it. */
static int take_header(const char **text, bool is_list, struct header_setting *ret,
                       struct err *err)
{
    struct header_setting header = {0};
    identifier_t column;
    int rc;

    if (identifier_column(text, is_list ? ":," : ":", column, err) < 0)
        return -1;
    if (**text == ':')
        rc = take_alias(text, is_list ? "," : "", &header.header, err);
    else
        rc = store_copy(&header.header, column, err);
    if (rc == 0)
        rc = store_copy(&header.column, column, err);
    if (rc < 0) {
        header_done(&header);
        return -1;
    }
    *ret = header;
    return 0;
}

static int store_header(const char *text, struct header_setting *field, struct err *err)
{
    struct header_setting header = {0};

    if (*text != '\0' && take_header(&text, false, &header, err) < 0)
        return -1;
    header_done(field);
    *field = header;
    return 0;
}

static int store_headers(const char *text, struct table_settings *table, struct err *err)
{
    while (*text != '\0') {
        struct header_setting *headers =
            grow(table->headers, table->nheaders, sizeof(*headers));

        if (!headers)
            return out_of_memory(err);
        table->headers = headers;
        if (take_header(&text, true, &headers[table->nheaders], err) < 0)
            return -1;
        table->nheaders++;
        if (*text == ',' && *++text == '\0')
            return err_set(err, ERR_CONFIG, "the list ends with a comma");
    }
    return 0;
}

/* ---- addresses ----------------------------------------------------------------- */

static int no_address(const char *text, struct err *err)
{
    return err_set(err, ERR_CONFIG,
                   "\"%s\" is no address to listen at; it may be 127.0.0.1:8464, "
                   "[::1]:8464 or name:8464",
                   text);
}

/* 1 to 65535. */
static bool take_port(const char *text, uint16_t *ret)
{
    unsigned long port = 0;

    for (; *text >= '0' && *text <= '9' && port <= UINT16_MAX; text++)
        port = 10 * port + (unsigned long)(*text - '0');
    if (*text != '\0' || port == 0 || port > UINT16_MAX)
        return false;
    *ret = (uint16_t)port;
    return true;
}

/* host:port, or [v6]:port. */
static int store_address(const char *text, struct address_setting *field, struct err *err)
{
    bool is_v6 = text[0] == '[';
    const char *host = text + is_v6;
    size_t len = strcspn(host, is_v6 ? "]" : ":");
    const char *colon = host + len + (is_v6 && host[len] == ']');
    struct address_setting address = {0};

    if (*text != '\0') {
        if (len == 0 || strcspn(host, " \t") < len || *colon != ':' ||
            !take_port(colon + 1, &address.port))
            return no_address(text, err);
        address.host = strndup(host, len);
        if (!address.host)
            return out_of_memory(err);
    }
    free(field->host);
    *field = address;
    return 0;
}

int setting_store(const struct setting *setting, const char *text, void *record,
                  struct err *err)
{
    void *field = (char *)record + setting->offset;

    if (setting->filled && *text == '\0')
        return err_set(err, ERR_CONFIG, "it must not be empty");
    switch (setting->type) {
    case SETTING_TEXT:
        return store_copy(field, text, err);
    case SETTING_SLOT:
        return store_slot(text, field, err);
    case SETTING_COLUMN:
        return store_column(text, field, err);
    case SETTING_HEADER:
        return store_header(text, field, err);
    case SETTING_HEADERS:
        return store_headers(text, record, err);
    case SETTING_SIZE:
    case SETTING_COUNT:
        return store_size(setting, text, field, err);
    case SETTING_DURATION:
        return parse_quantity(setting, text, field, err);
    case SETTING_ADDRESS:
        return store_address(text, field, err);
    case SETTING_CHOICE:
        return store_choice(setting, text, field, err);
    case SETTING_PROPERTY:
        break;
    }
    return err_set(err, ERR_INTERNAL, "%s is no setting of its own", setting->key);
}
