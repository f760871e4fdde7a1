#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

static void one_line(char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++) {
        char c = *from;

        if (c == '\n' || c == '\r' || c == '\t')
            c = ' ';
        if (c != ' ' || (to > text && to[-1] != ' '))
            *to++ = c;
    }
    while (to > text && to[-1] == ' ')
        to--;
    *to = '\0';
}

static int fill(struct err *err, enum err_class class, const char *code, const char *fmt,
                va_list ap)
{
    if (!err || err->class != ERR_NONE)
        return -1;
    err->class = class;
    (void)snprintf(err->code, sizeof(err->code), "%s", code ? code : "");
    (void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
    one_line(err->text);
    return -1;
}

int err_set(struct err *err, enum err_class class, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)fill(err, class, NULL, fmt, ap);
    va_end(ap);
    return -1;
}

int err_set_code(struct err *err, enum err_class class, const char *code, const char *fmt,
                 ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)fill(err, class, code, fmt, ap);
    va_end(ap);
    return -1;
}

static void put(char to[128], struct slice from)
{
    (void)snprintf(to, 128, "%.*s", SLICE_ARG(from));
}

void err_set_event(struct err *err, struct slice id, struct slice type,
                   struct slice aggregate_id, unsigned attempt)
{
    if (!err || err->class == ERR_NONE || err->event.attempt > 0)
        return;
    put(err->event.id, id);
    put(err->event.type, type);
    put(err->event.aggregate_id, aggregate_id);
    err->event.attempt = attempt;
}
