#include "core/topic.h"

#include <stdlib.h>

static bool legal_byte(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '.' || c == '_' || c == '-';
}

static bool legal_bytes(struct slice s)
{
    bool legal = true;

    for (size_t i = 0; i < s.len; i++)
        legal &= legal_byte((unsigned char)s.ptr[i]);
    return legal;
}

bool topic_legal(struct slice name)
{
    return name.len >= 1 && name.len <= TOPIC_MAX && legal_bytes(name) &&
           !slice_eq(name, slice_of(".")) && !slice_eq(name, slice_of(".."));
}

/* Where the parser stands: `from` is yet to be read, `to` is where unescaped bytes
 * go.  Both in the template's own bytes, to never ahead of from. */
struct parser {
    const char *from;
    char *to;
};

/* Literal text up to a single brace or the end. */
static struct slice literal(struct parser *p)
{
    char *begin = p->to;

    while (*p->from) {
        if (*p->from == '{' || *p->from == '}') {
            if (p->from[1] != *p->from)
                break;
            p->from++;
        }
        *p->to++ = *p->from++;
    }
    return (struct slice){begin, (size_t)(p->to - begin)};
}

/* The name in "{name}"; absent if it is empty or its brace is missing. */
static struct slice column(struct parser *p)
{
    size_t len = *p->from == '{' ? strcspn(p->from + 1, "{}") : 0;
    char *begin = p->to;

    if (len == 0 || p->from[1 + len] != '}')
        return (struct slice){NULL, 0};
    memmove(begin, p->from + 1, len);
    p->from += len + 2;
    p->to += len;
    return (struct slice){begin, len};
}

static void add_part(struct topic_template *t, struct slice text, bool is_column)
{
    t->parts[t->nparts++] = (struct topic_part){text, is_column};
}

static int parse(const char *text, struct topic_template *t, struct err *err)
{
    struct parser p = {t->bytes, t->bytes};

    while (*p.from) {
        struct slice s = literal(&p);

        if (s.len > 0)
            add_part(t, s, false);
        if (!*p.from)
            break;
        s = column(&p);
        if (!s.ptr)
            return err_set(err, ERR_CONFIG,
                           "topic template \"%s\": a column's name stands in braces, "
                           "{name}; a brace itself is {{ or }}",
                           text);
        add_part(t, s, true);
    }
    return 0;
}

/* What is wrong in every row is found before the first. */
static int check(const char *text, const struct topic_template *t, struct err *err)
{
    size_t len = 0;

    for (size_t i = 0; i < t->nparts; i++) {
        if (t->parts[i].is_column)
            continue;
        len += t->parts[i].text.len;
        if (len > TOPIC_MAX || !legal_bytes(t->parts[i].text))
            return err_set(err, ERR_CONFIG,
                           "topic template \"%s\": a topic's name has up to %d of ASCII "
                           "letters, digits, '.', '_' and '-'",
                           text, TOPIC_MAX);
    }
    if (t->nparts == 0 || (t->is_constant && !topic_legal(t->parts[0].text)))
        return err_set(err, ERR_CONFIG, "topic template \"%s\" is no name of a topic",
                       text);
    return 0;
}

int topic_parse(const char *text, struct topic_template *ret, struct err *err)
{
    /* A part takes one byte of text at least. */
    struct topic_template t = {
        .parts = calloc(strlen(text) + 1, sizeof(*t.parts)),
        .bytes = strdup(text),
    };

    if (!t.parts || !t.bytes) {
        topic_done(&t);
        return err_set(err, ERR_INTERNAL, "out of memory for a topic template");
    }
    if (parse(text, &t, err) < 0)
        goto fail;
    t.is_constant = t.nparts == 1 && !t.parts[0].is_column;
    if (check(text, &t, err) < 0)
        goto fail;
    *ret = t;
    return 0;
fail:
    topic_done(&t);
    return -1;
}

void topic_done(struct topic_template *topic_template)
{
    free(topic_template->parts);
    free(topic_template->bytes);
    *topic_template = (struct topic_template){0};
}
