/* ini.c - see ini.h.
 *
 * libini_config splits the lines into keys and values and finds duplicate keys.  It
 * is given the text with each section's name replaced by the section's number,
 * because it compares the names of sections without case ("Orders" and "orders" are
 * two tables), refuses ! in them, limits their length and does not tell the line that
 * a section stands in.  It drops a carriage return from the middle of a value, so
 * control characters are refused before it sees them. */
#include "core/ini.h"

#include "base/buf.h"
#include "base/grow.h"
#include "base/utf8.h"

#include <errno.h>
#include <ini_configobj.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_BYTES = 16 << 20 };

struct reader {
    const char *path;
    int line;
    struct ini ini;
    struct buf text; /* what libini_config gets */
};

static int out_of_memory(struct err *err)
{
    return err_set(err, ERR_INTERNAL, "out of memory");
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct slice trim(struct slice s)
{
    while (s.len > 0 && is_blank(s.ptr[0]))
        s = (struct slice){s.ptr + 1, s.len - 1};
    while (s.len > 0 && is_blank(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

static struct slice key_of(struct slice line)
{
    const char *equal = memchr(line.ptr, '=', line.len);

    return equal ? trim((struct slice){line.ptr, (size_t)(equal - line.ptr)})
                 : (struct slice){0};
}

/* ---- before libini_config ------------------------------------------------------ */

static int check_bytes(const struct reader *r, struct slice line, struct err *err)
{
    if (!utf8_valid(line))
        return err_set(err, ERR_CONFIG, "%s:%d: the line is not UTF-8", r->path, r->line);
    for (size_t i = 0; i < line.len; i++) {
        unsigned char c = (unsigned char)line.ptr[i];

        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return err_set(err, ERR_CONFIG,
                           "%s:%d: the line holds the control character 0x%02x", r->path,
                           r->line, c);
    }
    return 0;
}

static int add_section(struct reader *r, struct slice line, struct err *err)
{
    struct ini_section *sections;
    struct slice name;

    if (line.ptr[line.len - 1] != ']')
        return err_set(err, ERR_CONFIG, "%s:%d: a [section] must end with ]", r->path,
                       r->line);
    name = trim((struct slice){line.ptr + 1, line.len - 2});
    sections = grow(r->ini.sections, r->ini.nsections, sizeof(*sections));
    if (!sections)
        return out_of_memory(err);
    r->ini.sections = sections;
    sections[r->ini.nsections].line = r->line;
    sections[r->ini.nsections].name = strndup(name.ptr, name.len);
    if (!sections[r->ini.nsections].name)
        return out_of_memory(err);
    buf_printf(&r->text, "[%zu]\n", r->ini.nsections++);
    return 0;
}

static int add_key(struct reader *r, struct slice line, struct err *err)
{
    struct slice key = key_of(line);

    if (r->ini.nsections == 0)
        return err_set(err, ERR_CONFIG,
                       "%s:%d: this line stands before the first [section]", r->path,
                       r->line);
    if (key.len > 0 && memchr(key.ptr, '!', key.len))
        return err_set(err, ERR_CONFIG, "%s:%d: a key cannot hold !", r->path, r->line);
    buf_add(&r->text, line);
    buf_add_char(&r->text, '\n');
    return 0;
}

static int add_line(struct reader *r, struct slice line, struct err *err)
{
    if (check_bytes(r, line, err) < 0)
        return -1;
    line = trim(line);
    if (line.len == 0 || line.ptr[0] == '#' || line.ptr[0] == ';') {
        buf_add_char(&r->text, '\n');
        return 0;
    }
    return line.ptr[0] == '[' ? add_section(r, line, err) : add_key(r, line, err);
}

static int add_lines(struct reader *r, struct slice text, struct err *err)
{
    if (text.len >= 3 && memcmp(text.ptr, "\xef\xbb\xbf", 3) == 0)
        text = (struct slice){text.ptr + 3, text.len - 3};
    while (text.len > 0) {
        const char *newline = memchr(text.ptr, '\n', text.len);
        size_t len = newline ? (size_t)(newline - text.ptr) : text.len;
        size_t next = newline ? len + 1 : len;

        r->line++;
        if (newline && len > 0 && text.ptr[len - 1] == '\r')
            len--;
        if (add_line(r, (struct slice){text.ptr, len}, err) < 0)
            return -1;
        text = (struct slice){text.ptr + next, text.len - next};
    }
    return r->text.failed ? out_of_memory(err) : 0;
}

/* ---- libini_config ------------------------------------------------------------- */

static struct slice nth_line(const struct buf *text, unsigned n)
{
    const char *p = buf_str(text);

    while (--n > 0)
        p = strchr(p, '\n') + 1;
    return (struct slice){p, strcspn(p, "\n")};
}

static const char *reason(unsigned code)
{
    switch (code) {
    case ERR_NOEQUAL:
        return "there is no = in this line";
    case ERR_NOKEY:
        return "there is no key before =";
    case ERR_LONGKEY:
        return "the key is too long";
    default:
        return NULL;
    }
}

/* libini_config tells errors as text only: "Error (5) on line 7: Equal sign ..." */
static int parse_failed(struct reader *r, const char *said, struct err *err)
{
    unsigned code;
    unsigned line;

    // NOLINTNEXTLINE(cert-err34-c): the library prints numbers that it counted itself
    if (sscanf(said, "Error (%u) on line %u", &code, &line) != 2)
        return err_set(err, ERR_CONFIG, "%s: %s", r->path, said);
    if (code == ERR_DUPKEY && line > 0 && line <= (unsigned)r->line) {
        struct slice key = key_of(nth_line(&r->text, line));

        return err_set(err, ERR_CONFIG, "%s:%u: %.*s stands twice in this section",
                       r->path, line, SLICE_ARG(key));
    }
    return err_set(err, ERR_CONFIG, "%s:%u: %s", r->path, line,
                   reason(code) ? reason(code) : said);
}

static int parse(struct reader *r, struct ini_cfgfile *file, struct ini_cfgobj *parsed,
                 struct err *err)
{
    int rc = ini_config_parse(file, INI_STOP_ON_ANY, INI_MV1S_ERROR | INI_MS_ERROR,
                              INI_PARSE_NOWRAP | INI_PARSE_NO_C_COMMENTS, parsed);
    char **errors = NULL;

    if (rc == 0)
        return 0;
    if (rc == ENOMEM)
        return out_of_memory(err);
    if (ini_config_error_count(parsed) == 0 ||
        ini_config_get_errors(parsed, &errors) != 0)
        return err_set(err, ERR_CONFIG, "%s: cannot be read as INI: %s", r->path,
                       strerror(rc));
    (void)parse_failed(r, errors[0], err);
    ini_config_free_errors(errors);
    return -1;
}

static int add_entry(struct ini *ini, size_t section, const char *key,
                     struct value_obj *value, struct err *err)
{
    struct ini_entry *entries = grow(ini->entries, ini->nentries, sizeof(*entries));
    const char *text = NULL;
    uint32_t line = 0;

    if (!entries)
        return out_of_memory(err);
    ini->entries = entries;
    if (value_get_concatenated(value, &text) != 0 || value_get_line(value, &line) != 0)
        return out_of_memory(err);
    entries[ini->nentries] =
        (struct ini_entry){section, strdup(key), strdup(text ? text : ""), (int)line};
    ini->nentries++;
    if (!entries[ini->nentries - 1].key || !entries[ini->nentries - 1].value)
        return out_of_memory(err);
    return 0;
}

static int take_section(struct reader *r, struct ini_cfgobj *parsed, size_t section,
                        struct err *err)
{
    char number[32];
    int n = 0;
    int rc = 0;
    char **keys;

    (void)snprintf(number, sizeof(number), "%zu", section);
    keys = ini_get_attribute_list(parsed, number, &n, &rc);
    if (!keys || rc != 0)
        return out_of_memory(err);
    for (int i = 0; i < n && rc == 0; i++) {
        struct value_obj *value = NULL;

        rc =
            ini_get_config_valueobj(number, keys[i], parsed, INI_GET_FIRST_VALUE, &value);
        if (rc != 0 || !value)
            rc = out_of_memory(err);
        else
            rc = add_entry(&r->ini, section, keys[i], value, err);
    }
    ini_free_attribute_list(keys);
    return rc;
}

static int take_all(struct reader *r, struct ini_cfgobj *parsed, struct err *err)
{
    for (size_t i = 0; i < r->ini.nsections; i++) {
        if (take_section(r, parsed, i, err) < 0)
            return -1;
    }
    return 0;
}

static int parse_text(struct reader *r, struct err *err)
{
    struct ini_cfgfile *file = NULL;
    struct ini_cfgobj *parsed = NULL;
    int rc = -1;

    if (r->ini.nsections == 0)
        return 0;
    if (ini_config_file_from_mem(r->text.ptr, (uint32_t)r->text.len, &file) != 0 ||
        ini_config_create(&parsed) != 0)
        (void)out_of_memory(err);
    else if (parse(r, file, parsed, err) == 0)
        rc = take_all(r, parsed, err);
    ini_config_destroy(parsed);
    ini_config_file_destroy(file);
    return rc;
}

int ini_read(const char *path, struct slice text, struct ini *ret, struct err *err)
{
    struct reader r = {.path = path};
    int rc;

    if (text.len > MAX_BYTES)
        return err_set(err, ERR_CONFIG, "%s: over 16 MB, this is no configuration", path);
    buf_init(&r.text, 2 * (size_t)MAX_BYTES);
    rc = add_lines(&r, text, err);
    if (rc == 0)
        rc = parse_text(&r, err);
    buf_done(&r.text);
    if (rc == 0)
        *ret = r.ini;
    else
        ini_done(&r.ini);
    return rc;
}

void ini_done(struct ini *ini)
{
    for (size_t i = 0; i < ini->nsections; i++)
        free(ini->sections[i].name);
    for (size_t i = 0; i < ini->nentries; i++) {
        free(ini->entries[i].key);
        free(ini->entries[i].value);
    }
    free(ini->sections);
    free(ini->entries);
    *ini = (struct ini){0};
}
