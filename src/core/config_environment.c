/* The environment's part of a configuration: WALRELAY_<SECTION>_<KEY>, and with _FILE
 * behind it the name of a file that holds the value. */
#include "base/buf.h"
#include "core/config_origins.h"
#include "core/nearest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_LENGTH = 256, FILE_MAX_BYTES = 1 << 20 };

/* A variable's name; cut when longer, no setting has such a name. */
typedef char variable_t[NAME_LENGTH];

static char upper(char c)
{
    return (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c == '.' ? '_' : c);
}

static void name_variable(const char *section, const char *key, variable_t ret)
{
    (void)snprintf(ret, NAME_LENGTH, "WALRELAY_%s_%s", section, key);
    for (char *p = ret; *p; p++)
        *p = upper(*p);
}

/* The section whose variables begin as this one, NULL if it is none of ours.  Other
 * WALRELAY_ variables are left alone: Kubernetes makes WALRELAY_PORT for a service that
 * is called walrelay. */
static const struct section_kind *section_of(const char *variable)
{
    for (size_t i = 0; i < nsection_kinds; i++) {
        variable_t prefix;
        size_t len;

        name_variable(section_kinds[i].name, "", prefix);
        len = strlen(prefix);
        if (strncmp(variable, prefix, len) == 0)
            return &section_kinds[i];
    }
    return NULL;
}

/* Names of librdkafka's properties are made of dots, with two exceptions. */
static void name_property(const char *rest, variable_t ret)
{
    (void)snprintf(ret, NAME_LENGTH, "%s", rest);
    for (char *p = ret; *p; p++)
        *p = (char)(*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p == '_' ? '.' : *p);
    if (strcmp(ret, "log.level") == 0 || strcmp(ret, "enabled.events") == 0)
        *strchr(ret, '.') = '_';
}

/* The setting that a variable means, and the property's name in key. */
static const struct setting *setting_of(const struct section_kind *kind,
                                        const char *variable, const char *rest,
                                        variable_t key)
{
    for (size_t i = 0; i < nsettings; i++) {
        variable_t name;

        if (strcmp(settings[i].section, kind->name) != 0)
            continue;
        if (setting_is_wildcard(&settings[i])) {
            name_property(rest, key);
            return &settings[i];
        }
        name_variable(kind->name, settings[i].key, name);
        if (strcmp(name, variable) == 0) {
            (void)snprintf(key, NAME_LENGTH, "%s", settings[i].key);
            return &settings[i];
        }
    }
    return NULL;
}

static int unknown_variable(const struct section_kind *kind, const char *variable,
                            struct err *err)
{
    variable_t *names = calloc(nsettings, sizeof(*names));
    const char **list = calloc(nsettings, sizeof(*list));
    size_t n = 0;

    for (size_t i = 0; names && list && i < nsettings; i++) {
        if (strcmp(settings[i].section, kind->name) != 0 ||
            setting_is_wildcard(&settings[i]))
            continue;
        name_variable(kind->name, settings[i].key, names[n]);
        list[n] = names[n];
        n++;
    }
    if (n == 0)
        (void)err_set(err, ERR_INTERNAL, "out of memory");
    else
        (void)err_set(err, ERR_CONFIG,
                      "%s: no setting has this variable, the nearest valid one is %s",
                      variable, nearest_name(variable, list, n));
    free(list);
    free(names);
    return -1;
}

/* ---- files --------------------------------------------------------------------- */

static int read_all(FILE *file, struct buf *text)
{
    char chunk[4096];
    size_t n;

    while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0)
        buf_add(text, (struct slice){chunk, n});
    return ferror(file) ? -1 : 0;
}

static int read_file(const char *variable, const char *path, struct buf *text,
                     struct err *err)
{
    FILE *file = fopen(path, "re");
    int rc;

    if (!file)
        return err_set(err, errno == ENOMEM ? ERR_INTERNAL : ERR_CONFIG,
                       "%s: cannot open %s: %s", variable, path, strerror(errno));
    rc = read_all(file, text);
    if (rc < 0)
        (void)err_set(err, ERR_CONFIG, "%s: cannot read %s: %s", variable, path,
                      strerror(errno));
    (void)fclose(file);
    if (rc == 0 && text->no_memory)
        rc = err_set(err, ERR_INTERNAL, "%s: out of memory for %s", variable, path);
    if (rc == 0 && text->failed)
        rc = err_set(err, ERR_CONFIG, "%s: %s holds more than 1 MB", variable, path);
    if (rc == 0 && text->len > 0 && memchr(text->ptr, '\0', text->len))
        rc = err_set(err, ERR_CONFIG, "%s: %s holds a NUL byte", variable, path);
    return rc;
}

static void drop_newline(struct buf *text)
{
    if (text->len == 0 || text->ptr[text->len - 1] != '\n')
        return;
    text->ptr[--text->len] = '\0';
    if (text->len > 0 && text->ptr[text->len - 1] == '\r')
        text->ptr[--text->len] = '\0';
}

/* ---- variables ----------------------------------------------------------------- */

static int set(struct config_origins *origins, struct config_value value, struct err *err)
{
    const struct config_value *earlier =
        origins_find(origins, value.setting, value.table, value.key);

    if (earlier && earlier->from_environment)
        return err_set(err, ERR_CONFIG, "%s: %s gives the same setting", value.origin,
                       earlier->origin);
    return origins_set(origins, value, err);
}

static int set_from_file(struct config_origins *origins, struct config_value value,
                         struct err *err)
{
    struct buf text;
    int rc;

    buf_init(&text, FILE_MAX_BYTES);
    rc = read_file(value.origin, value.text, &text, err);
    if (rc == 0) {
        drop_newline(&text);
        value.text = text.len > 0 ? text.ptr : (char[]){""};
        rc = set(origins, value, err);
    }
    buf_done(&text);
    return rc;
}

static bool cut_suffix(char *text, const char *suffix)
{
    size_t len = strlen(text);
    size_t n = strlen(suffix);

    if (len <= n || strcmp(text + len - n, suffix) != 0)
        return false;
    text[len - n] = '\0';
    return true;
}

static int take_variable(struct config_origins *origins, const struct section_kind *kind,
                         char *name, char *text, struct err *err)
{
    variable_t shorter;
    variable_t key;
    struct config_value value = {
        .key = key, .text = text, .origin = name, .from_environment = true};
    size_t prefix = strlen("WALRELAY_") + strlen(kind->name) + 1;
    bool is_file;

    if (strcmp(kind->name, "table") == 0)
        return err_set(err, ERR_CONFIG, "%s: tables are set in the file only", name);
    (void)snprintf(shorter, sizeof(shorter), "%s", name);
    is_file = cut_suffix(shorter + prefix, "_FILE");
    value.setting = setting_of(kind, shorter, shorter + prefix, key);
    if (!value.setting || key[0] == '\0' ||
        name[strcspn(name, "abcdefghijklmnopqrstuvwxyz")])
        return unknown_variable(kind, name, err);
    return is_file ? set_from_file(origins, value, err) : set(origins, value, err);
}

static int take_entry(struct config_origins *origins, const char *entry, struct err *err)
{
    const char *equal = strchr(entry, '=');
    const struct section_kind *kind;
    char *name;
    char *text;
    int rc;

    kind = equal ? section_of(entry) : NULL;
    if (!kind)
        return 0;
    name = strdup(entry);
    if (!name)
        return err_set(err, ERR_INTERNAL, "out of memory");
    text = name + (equal - entry);
    *text++ = '\0';
    rc = take_variable(origins, kind, name, text, err);
    free(name);
    return rc;
}

int origins_read_environment(struct config_origins *origins, config_env_t env,
                             struct err *err)
{
    for (; *env; env++) {
        if (take_entry(origins, *env, err) < 0)
            return -1;
    }
    return 0;
}
