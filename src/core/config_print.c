/* What config.h shows to people: the effective values, --help, the reference. */
#include "base/buf.h"
#include "core/config.h"
#include "core/config_origins.h"
#include "core/kafka_default.h"
#include "core/secret.h"
#include "core/setting_value.h"
#include "core/settings.h"

#include <inttypes.h>
#include <string.h>

enum { VALUE_MAX_BYTES = 32 << 20, WIDTH = 78 };

/* ---- effective values ---------------------------------------------------------- */

/* Only the environment can give a value of several lines: the file cannot say it. */
static void print_one_line(const char *text, FILE *out)
{
    for (; *text; text++)
        (void)fputc((unsigned char)*text < 0x20 && *text != '\t' ? ' ' : *text, out);
}

static void add_shown(struct buf *shown, const struct config_value *value)
{
    if (value->setting->type == SETTING_PROPERTY && secret_is_property(value->key))
        buf_add_str(shown, "********");
    else if (strcmp(value->key, "dsn") == 0)
        secret_add_dsn(shown, value->text);
    else
        buf_add_str(shown, value->text);
}

static void print_value(const struct config_value *value, FILE *out)
{
    struct buf shown;

    buf_init(&shown, VALUE_MAX_BYTES);
    add_shown(&shown, value);
    (void)fprintf(out, "# %s%s\n%s =%s", value->origin,
                  strchr(buf_str(&shown), '\n') ? ", several lines" : "", value->key,
                  shown.len > 0 ? " " : "");
    print_one_line(buf_str(&shown), out);
    (void)fputc('\n', out);
    buf_done(&shown);
}

static void print_values(const struct config *config, const char *section, size_t table,
                         FILE *out)
{
    for (size_t i = 0; i < nsettings; i++) {
        if (strcmp(settings[i].section, section) != 0)
            continue;
        for (size_t j = 0; j < config->origins->n; j++) {
            const struct config_value *value = &config->origins->values[j];

            if (value->setting == &settings[i] && value->table == table)
                print_value(value, out);
        }
    }
}

static bool is_given(const struct config *config, const char *name)
{
    for (size_t i = 0; name && i < config->nkafka; i++) {
        const char *given = config->kafka[i].name;

        /* librdkafka takes topic.acks for acks */
        if (strcmp(given, name) == 0 ||
            (strncmp(given, "topic.", 6) == 0 && strcmp(given + 6, name) == 0))
            return true;
    }
    return false;
}

static void print_kafka_defaults(const struct config *config, FILE *out)
{
    for (size_t i = 0; i < nkafka_defaults; i++) {
        const struct kafka_default *property = &kafka_defaults[i];

        if (!is_given(config, property->name) && !is_given(config, property->alias))
            (void)fprintf(out, "# default\n%s = %s\n", property->name, property->value);
    }
}

/* Doubles the quotes, as SQL does. */
static void print_quoted(const char *name, FILE *out)
{
    (void)fputc('"', out);
    for (; *name; name++)
        (void)fputs(*name == '"' ? "\"\"" : (char[]){*name, '\0'}, out);
    (void)fputc('"', out);
}

static void print_tables(const struct config *config, FILE *out)
{
    for (size_t i = 0; i < config->ntables; i++) {
        (void)fputs(i > 0 ? "\n[table " : "[table ", out);
        print_quoted(config->tables[i].schema, out);
        (void)fputc('.', out);
        print_quoted(config->tables[i].name, out);
        (void)fputs("]\n", out);
        print_values(config, "table", i, out);
    }
}

void config_print(const struct config *config, FILE *out)
{
    for (size_t i = 0; i < nsection_kinds; i++) {
        const char *name = section_kinds[i].name;

        if (i > 0)
            (void)fputc('\n', out);
        if (strcmp(name, "table") == 0) {
            print_tables(config, out);
        } else {
            (void)fprintf(out, "[%s]\n", name);
            print_values(config, name, 0, out);
        }
        if (strcmp(name, "kafka") == 0)
            print_kafka_defaults(config, out);
    }
}

/* ---- the table of settings ----------------------------------------------------- */

static void print_type(const struct setting *setting, FILE *out)
{
    struct range_text range;
    const char *text = setting_range(setting, &range);
    bool is_choice = setting->type == SETTING_CHOICE;

    (void)fputs(setting_type_words(setting->type), out);
    if (text[0])
        (void)fprintf(out, "%s%s", is_choice ? " " : ", ", text);
}

/* Words of Markdown in lines of WIDTH, without its backquotes. */
static void print_wrapped(const char *text, int indent, FILE *out)
{
    int column = 0;

    while (*text) {
        char word[WIDTH + 1] = "";
        int len = 0;

        for (; *text && *text != ' '; text++) {
            if (*text != '`' && len < WIDTH)
                word[len++] = *text;
        }
        text += *text == ' ';
        if (column > 0 && column + 1 + len > WIDTH) {
            (void)fputc('\n', out);
            column = 0;
        }
        column += fprintf(out, "%*s%.*s", column > 0 ? 1 : indent, "", len, word);
    }
    (void)fputc('\n', out);
}

static void print_setting_help(const struct setting *setting, FILE *out)
{
    if (setting_is_wildcard(setting))
        (void)fputs("  ...", out);
    else if (setting->fallback)
        (void)fprintf(out, "  %s = %s", setting->key, setting->fallback);
    else
        (void)fprintf(out, "  %s (required)", setting->key);
    (void)fputs("  # ", out);
    print_type(setting, out);
    (void)fputc('\n', out);
    print_wrapped(setting->help, 6, out);
}

void config_help(FILE *out)
{
    for (size_t i = 0; i < nsection_kinds; i++) {
        (void)fprintf(out, "%s%s\n", i > 0 ? "\n" : "", section_kinds[i].heading);
        print_wrapped(section_kinds[i].help, 2, out);
        for (size_t j = 0; j < nsettings; j++) {
            if (strcmp(settings[j].section, section_kinds[i].name) == 0)
                print_setting_help(&settings[j], out);
        }
    }
}

/* A bar would end the cell of a Markdown table. */
static void print_cell(const char *text, FILE *out)
{
    for (; *text; text++)
        (void)fputs(*text == '|' ? "\\|" : (char[]){*text, '\0'}, out);
}

static void print_row(const struct setting *setting, FILE *out)
{
    (void)fprintf(out, "| `%s` | ", setting->key);
    print_type(setting, out);
    if (setting_is_wildcard(setting))
        (void)fputs(" |  | ", out);
    else if (!setting->fallback)
        (void)fputs(" | required | ", out);
    else if (setting->fallback[0] == '\0')
        (void)fputs(" | empty | ", out);
    else
        (void)fprintf(out, " | `%s` | ", setting->fallback);
    print_cell(setting->help, out);
    (void)fputs(" |\n", out);
}

static void print_rule(const struct kafka_rule *rule, FILE *out)
{
    (void)fprintf(out, "| `%s` | ", rule->name);
    if (!rule->only && rule->min == rule->max)
        (void)fprintf(out, "%" PRId64, rule->min);
    else if (!rule->only && rule->max == INT32_MAX)
        (void)fprintf(out, "%" PRId64 " or more", rule->min);
    else if (!rule->only)
        (void)fprintf(out, "%" PRId64 " to %" PRId64, rule->min, rule->max);
    else if (rule->only[0])
        (void)fprintf(out, "%.*s", (int)strcspn(rule->only, "|"), rule->only);
    else
        (void)fputs("not at all", out);
    (void)fprintf(out, " | %s |\n", rule->reason);
}

static void print_properties(FILE *out)
{
    (void)fputs(
        "\nUnless the section says otherwise the relay sets:\n\n| property | value "
        "|\n|---|---|\n",
        out);
    for (size_t i = 0; i < nkafka_defaults; i++)
        (void)fprintf(out, "| `%s` | `%s` |\n", kafka_defaults[i].name,
                      kafka_defaults[i].value);
}

static void print_rules(FILE *out)
{
    (void)fputs("\nThese properties may be given only a value that keeps the promise of "
                "delivery:\n\n| property | allowed | because |\n|---|---|---|\n",
                out);
    for (size_t i = 0; i < nkafka_rules; i++)
        print_rule(&kafka_rules[i], out);
}

void config_reference(FILE *out)
{
    for (size_t i = 0; i < nsection_kinds; i++) {
        (void)fprintf(out, "%s### `%s`\n\n%s\n\n", i > 0 ? "\n" : "",
                      section_kinds[i].heading, section_kinds[i].help);
        (void)fputs("| key | value | default | meaning |\n|---|---|---|---|\n", out);
        for (size_t j = 0; j < nsettings; j++) {
            if (strcmp(settings[j].section, section_kinds[i].name) == 0)
                print_row(&settings[j], out);
        }
        if (strcmp(section_kinds[i].name, "kafka") == 0) {
            print_properties(out);
            print_rules(out);
        }
    }
}
