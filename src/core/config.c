/* config.c - see config.h.
 *
 * Values are collected as text first, each with its origin: from the file, from the
 * environment, from the table of settings.  Then each is read into its field. */
#include "core/config.h"

#include "base/grow.h"
#include "core/config_origins.h"
#include "core/identifier.h"
#include "core/ini.h"
#include "core/nearest.h"
#include "core/setting_value.h"
#include "core/settings.h"
#include "core/topic.h"

#include <stdlib.h>
#include <string.h>

struct loader {
    const char *path;
    struct config *config;
};

static int out_of_memory(struct err *err)
{
    return err_set(err, ERR_INTERNAL, "out of memory");
}

static bool is_table(const struct setting *setting)
{
    return strcmp(setting->section, "table") == 0;
}

/* ---- sections ------------------------------------------------------------------ */

/* What follows "table" in the section's name; NULL if it is no [table] section. */
static const char *table_name(const char *section)
{
    size_t len = strlen("table");

    if (strncmp(section, "table", len) != 0 || !strchr(" \t", section[len]))
        return NULL;
    return section + len + strspn(section + len, " \t");
}

static const struct table_settings *find_table(const struct config *config,
                                               const char *schema, const char *name)
{
    for (size_t i = 0; i < config->ntables; i++) {
        if (strcmp(config->tables[i].schema, schema) == 0 &&
            strcmp(config->tables[i].name, name) == 0)
            return &config->tables[i];
    }
    return NULL;
}

static int append_table(struct config *config, const char *schema, const char *name,
                        int line, struct err *err)
{
    struct table_settings *tables =
        grow(config->tables, config->ntables, sizeof(*tables));
    struct table_settings *table;

    if (!tables)
        return out_of_memory(err);
    config->tables = tables;
    table = &tables[config->ntables++];
    *table = (struct table_settings){
        .schema = strdup(schema), .name = strdup(name), .line = line};
    return table->schema && table->name ? 0 : out_of_memory(err);
}

static int add_table(struct loader *loader, const char *text, int line, struct err *err)
{
    const struct table_settings *earlier;
    struct err why = {0};
    identifier_t schema;
    identifier_t name;

    if (*text == '\0')
        return err_set(err, ERR_CONFIG,
                       "%s:%d: [table] needs a name, as in [table public.outbox_events]",
                       loader->path, line);
    if (identifier_table(text, schema, name, &why) < 0)
        return err_set(err, ERR_CONFIG, "%s:%d: [table]: %s", loader->path, line,
                       why.text);
    earlier = find_table(loader->config, schema, name);
    if (earlier)
        return err_set(err, ERR_CONFIG,
                       "%s:%d: table \"%s\".\"%s\" has a section already, in line %d",
                       loader->path, line, schema, name, earlier->line);
    return append_table(loader->config, schema, name, line, err);
}

static int unknown_section(const struct loader *loader, const struct ini_section *section,
                           struct err *err)
{
    const char *names[16];
    size_t n = 0;

    for (; n < nsection_kinds && n < sizeof(names) / sizeof(names[0]); n++)
        names[n] = section_kinds[n].name;
    return err_set(err, ERR_CONFIG,
                   "%s:%d: unknown section [%s], the nearest valid one is [%s]",
                   loader->path, section->line, section->name,
                   nearest_name(section->name, names, n));
}

static bool is_known(const char *name)
{
    for (size_t i = 0; i < nsection_kinds; i++) {
        if (strcmp(section_kinds[i].name, name) == 0)
            return true;
    }
    return false;
}

static int check_section(const struct loader *loader, const struct ini *ini, size_t index,
                         struct err *err)
{
    const struct ini_section *section = &ini->sections[index];

    if (!is_known(section->name))
        return unknown_section(loader, section, err);
    for (size_t i = 0; i < index; i++) {
        if (strcmp(ini->sections[i].name, section->name) == 0)
            return err_set(err, ERR_CONFIG,
                           "%s:%d: section [%s] stands in line %d already", loader->path,
                           section->line, section->name, ini->sections[i].line);
    }
    return 0;
}

/* ---- the file ------------------------------------------------------------------ */

static int take_entry(struct loader *loader, const struct ini_section *section,
                      const struct ini_entry *entry, struct err *err)
{
    bool of_table = table_name(section->name) != NULL;
    const char *kind = of_table ? "table" : section->name;
    char origin[512];
    struct config_value value = {
        .setting = setting_find(kind, entry->key),
        .table = of_table ? loader->config->ntables - 1 : 0,
        .key = entry->key,
        .text = entry->value,
        .origin = origin,
    };

    (void)snprintf(origin, sizeof(origin), "%s:%d", loader->path, entry->line);
    if (!value.setting)
        return err_set(err, ERR_CONFIG,
                       "%s: unknown key %s in [%s], the nearest valid one is %s", origin,
                       entry->key, section->name, setting_nearest(kind, entry->key));
    return origins_set(loader->config->origins, value, err);
}

/* Entries stand in the order of their sections: *next is the first of this one. */
static int take_section(struct loader *loader, const struct ini *ini, size_t index,
                        size_t *next, struct err *err)
{
    const struct ini_section *section = &ini->sections[index];
    const char *table = table_name(section->name);
    int rc = table ? add_table(loader, table, section->line, err)
                   : check_section(loader, ini, index, err);

    for (; rc == 0 && *next < ini->nentries && ini->entries[*next].section == index;
         (*next)++)
        rc = take_entry(loader, section, &ini->entries[*next], err);
    return rc;
}

static int take_file(struct loader *loader, struct slice text, struct err *err)
{
    struct ini ini = {0};
    size_t next = 0;
    int rc;

    if (ini_read(loader->path, text, &ini, err) < 0)
        return -1;
    rc = 0;
    for (size_t i = 0; rc == 0 && i < ini.nsections; i++)
        rc = take_section(loader, &ini, i, &next, err);
    ini_done(&ini);
    return rc;
}

/* ---- defaults ------------------------------------------------------------------ */

static int take_default(struct loader *loader, const struct setting *setting,
                        size_t table, struct err *err)
{
    struct config_origins *origins = loader->config->origins;
    struct config_value value = {.setting = setting,
                                 .table = table,
                                 .key = (char *)setting->key,
                                 .text = (char *)setting->fallback,
                                 .origin = (char[]){"default"}};

    if (setting_is_wildcard(setting) ||
        origins_find(origins, setting, table, setting->key))
        return 0;
    if (!setting->fallback)
        return err_set(err, ERR_CONFIG, "%s: %s is missing in [%s]", loader->path,
                       setting->key, setting->section);
    return origins_set(origins, value, err);
}

static int take_defaults(struct loader *loader, struct err *err)
{
    for (size_t i = 0; i < nsettings; i++) {
        size_t n = is_table(&settings[i]) ? loader->config->ntables : 1;

        for (size_t table = 0; table < n; table++) {
            if (take_default(loader, &settings[i], table, err) < 0)
                return -1;
        }
    }
    return 0;
}

/* ---- text to fields ------------------------------------------------------------ */

/* All of librdkafka's names are in lower case, and it tells cases apart; libini_config
 * does not, so Acks beside acks would be a duplicate. */
static bool has_upper_case(const char *name)
{
    return strpbrk(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != NULL;
}

static int store_property(struct config *config, const struct config_value *value,
                          struct err *err)
{
    const struct kafka_rule *rule = kafka_rule_against(value->key, value->text);
    struct kafka_property *kafka;

    if (value->setting->filled && value->text[0] == '\0')
        return err_set(err, ERR_CONFIG, "it must not be empty");
    if (has_upper_case(value->key))
        return err_set(err, ERR_CONFIG, "librdkafka's names are in lower case");
    if (rule)
        return err_set(err, ERR_CONFIG, "%s would break the promise of delivery: %s",
                       value->text[0] ? value->text : "an empty value", rule->reason);
    kafka = grow(config->kafka, config->nkafka, sizeof(*kafka));
    if (!kafka)
        return out_of_memory(err);
    config->kafka = kafka;
    kafka = &kafka[config->nkafka++];
    *kafka = (struct kafka_property){strdup(value->key), strdup(value->text)};
    return kafka->name && kafka->value ? 0 : out_of_memory(err);
}

static int store_value(struct config *config, const struct config_value *value,
                       struct err *err)
{
    struct err why = {0};
    int rc;

    if (value->setting->type == SETTING_PROPERTY)
        rc = store_property(config, value, &why);
    else if (is_table(value->setting))
        rc = setting_store(value->setting, value->text, &config->tables[value->table],
                           &why);
    else
        rc = setting_store(value->setting, value->text, config, &why);
    if (rc < 0)
        return err_set(err, why.class, "%s: %s: %s", value->origin, value->key, why.text);
    return 0;
}

static int store_all(struct config *config, struct err *err)
{
    for (size_t i = 0; i < config->origins->n; i++) {
        if (store_value(config, &config->origins->values[i], err) < 0)
            return -1;
    }
    return 0;
}

/* aggregate_id is the one setting whose default is another setting. */
static int finish_tables(struct config *config, struct err *err)
{
    for (size_t i = 0; i < config->ntables; i++) {
        struct table_settings *table = &config->tables[i];

        if (table->aggregate_id || !table->key)
            continue;
        table->aggregate_id = strdup(table->key);
        if (!table->aggregate_id)
            return out_of_memory(err);
    }
    return 0;
}

/* Among the events of a topic nobody would look for dead letters. */
static int check_dead_letter_topic(const struct loader *loader, struct err *err)
{
    const struct config *config = loader->config;
    const char *topic = config->dead_letters.topic;

    if (topic[0] != '\0' && !topic_legal(slice_of(topic)))
        return err_set(err, ERR_CONFIG,
                       "%s: dead_letter_topic in [dead_letters]: %s is no name for a "
                       "topic",
                       loader->path, topic);
    for (size_t i = 0; i < config->ntables; i++) {
        if (strcmp(config->tables[i].topic, topic) == 0)
            return err_set(err, ERR_CONFIG,
                           "%s: dead_letter_topic in [dead_letters] is the topic of "
                           "[table %s.%s], too",
                           loader->path, config->tables[i].schema,
                           config->tables[i].name);
    }
    return 0;
}

/* What one setting says of another. */
static int check_dead_letters(const struct loader *loader, struct err *err)
{
    const struct config *config = loader->config;

    if (config->dead_letters.retry_initial_ms > config->dead_letters.retry_max_ms)
        return err_set(err, ERR_CONFIG,
                       "%s: retry_initial in [dead_letters] is longer than retry_max",
                       loader->path);
    return check_dead_letter_topic(loader, err);
}

static int load(struct loader *loader, struct slice text, config_env_t env,
                struct err *err)
{
    struct config *config = loader->config;

    config->origins = calloc(1, sizeof(*config->origins));
    if (!config->origins)
        return out_of_memory(err);
    if (take_file(loader, text, err) < 0 ||
        origins_read_environment(config->origins, env, err) < 0)
        return -1;
    if (config->ntables == 0)
        return err_set(
            err, ERR_CONFIG,
            "%s: there is no [table] section; write one for each outbox table, "
            "as in [table public.outbox_events]",
            loader->path);
    if (take_defaults(loader, err) < 0 || store_all(config, err) < 0)
        return -1;
    if (finish_tables(config, err) < 0)
        return -1;
    return check_dead_letters(loader, err);
}

struct config *config_parse(const char *path, struct slice text, config_env_t env,
                            struct err *err)
{
    struct loader loader = {.path = path, .config = calloc(1, sizeof(struct config))};

    if (!loader.config) {
        (void)out_of_memory(err);
        return NULL;
    }
    if (load(&loader, text, env, err) < 0) {
        config_free(loader.config);
        return NULL;
    }
    return loader.config;
}

static void header_done(struct header_setting *header)
{
    free(header->column);
    free(header->header);
}

static void table_done(struct table_settings *table)
{
    free(table->schema);
    free(table->name);
    free(table->topic);
    free(table->key);
    free(table->payload);
    header_done(&table->id);
    header_done(&table->type);
    for (size_t i = 0; i < table->nheaders; i++)
        header_done(&table->headers[i]);
    free(table->headers);
    free(table->aggregate_id);
    free(table->partition);
    free(table->timestamp);
}

void config_free(struct config *config)
{
    if (!config)
        return;
    for (size_t i = 0; i < config->ntables; i++)
        table_done(&config->tables[i]);
    for (size_t i = 0; i < config->nkafka; i++) {
        free(config->kafka[i].name);
        free(config->kafka[i].value);
    }
    free(config->postgres.dsn);
    free(config->postgres.slot);
    free(config->dead_letters.schema);
    free(config->dead_letters.topic);
    free(config->http.listen.host);
    free(config->tables);
    free(config->kafka);
    origins_free(config->origins);
    free(config);
}
