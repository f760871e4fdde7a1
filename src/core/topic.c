#include "core/topic.h"

#include <stdlib.h>

/* One for each byte that a name may have.  A table: every row's topic is looked at. */
static const unsigned char legal[256] = {
    ['0'] = 1, ['1'] = 1, ['2'] = 1, ['3'] = 1, ['4'] = 1, ['5'] = 1, ['6'] = 1,
    ['7'] = 1, ['8'] = 1, ['9'] = 1, ['A'] = 1, ['B'] = 1, ['C'] = 1, ['D'] = 1,
    ['E'] = 1, ['F'] = 1, ['G'] = 1, ['H'] = 1, ['I'] = 1, ['J'] = 1, ['K'] = 1,
    ['L'] = 1, ['M'] = 1, ['N'] = 1, ['O'] = 1, ['P'] = 1, ['Q'] = 1, ['R'] = 1,
    ['S'] = 1, ['T'] = 1, ['U'] = 1, ['V'] = 1, ['W'] = 1, ['X'] = 1, ['Y'] = 1,
    ['Z'] = 1, ['a'] = 1, ['b'] = 1, ['c'] = 1, ['d'] = 1, ['e'] = 1, ['f'] = 1,
    ['g'] = 1, ['h'] = 1, ['i'] = 1, ['j'] = 1, ['k'] = 1, ['l'] = 1, ['m'] = 1,
    ['n'] = 1, ['o'] = 1, ['p'] = 1, ['q'] = 1, ['r'] = 1, ['s'] = 1, ['t'] = 1,
    ['u'] = 1, ['v'] = 1, ['w'] = 1, ['x'] = 1, ['y'] = 1, ['z'] = 1, ['.'] = 1,
    ['_'] = 1, ['-'] = 1,
};

static bool legal_bytes(struct slice s)
{
    unsigned all = 1;

    for (size_t i = 0; i < s.len; i++)
        all &= legal[(unsigned char)s.ptr[i]];
    return all == 1;
}

bool topic_legal(struct slice name)
{
    return name.len >= 1 && name.len <= TOPIC_MAX && legal_bytes(name) &&
           !slice_eq(name, slice_of(".")) && !slice_eq(name, slice_of(".."));
}

static int bad_brace(const char *text, struct err *err)
{
    return err_set(
        err, ERR_CONFIG,
        "topic template \"%s\": braces come in pairs, with the name of a column "
        "in them",
        text);
}

static int parse(const char *text, struct topic_template *t, struct err *err)
{
    const char *p = t->bytes;

    while (*p) {
        bool is_column = *p == '{';
        const char *begin = is_column ? p + 1 : p;
        size_t len = strcspn(begin, "{}");

        if (len == 0 || (is_column && begin[len] != '}'))
            return bad_brace(text, err);
        t->parts[t->nparts++] = (struct topic_part){{begin, len}, is_column};
        p = begin + len + (is_column ? 1 : 0);
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
