#include "base/log.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/utf8.h"

#include <jansson.h>

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    MESSAGE_MAX_BYTES = ERR_TEXT_MAX + 512,
    VALUE_MAX_BYTES = 1024,
    LINE_MAX_BYTES = 1 << 20, /* no line with a reasonable number of fields is longer */
};

static struct {
    enum log_level level;
    enum log_format format;
    bool journal;
} logger = {LOG_INFO, LOG_TEXT, false};

static const char *const level_names[] = {"error", "warning", "info", "debug"};

static bool stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    char here[64];
    struct stat st;

    if (!stream || fstat(STDERR_FILENO, &st) != 0)
        return false;
    (void)snprintf(here, sizeof(here), "%ju:%ju", (uintmax_t)st.st_dev,
                   (uintmax_t)st.st_ino);
    return strcmp(stream, here) == 0;
}

void log_init(enum log_level level, enum log_format format)
{
    logger.level = level;
    logger.format = format;
    logger.journal = stderr_is_journal();
}

static void print_time(char text[32])
{
    int64_t now_us = clock_wall_us();
    time_t seconds = (time_t)(now_us / 1000000);
    struct tm tm;
    size_t len;

    (void)gmtime_r(&seconds, &tm);
    len = strftime(text, 32, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(text + len, 32 - len, ".%03dZ", (int)(now_us / 1000 % 1000));
}

/* As UTF-8, at most max bytes of it; what is no character becomes U+FFFD. */
static void add_clean(struct buf *out, struct slice text, size_t max)
{
    const char *p = text.ptr;
    size_t left = text.len < max ? text.len : max;

    /* Do not cut a character in two. */
    while (left < text.len && left > 0 && ((unsigned char)p[left] & 0xc0) == 0x80)
        left--;
    while (left > 0) {
        size_t len = utf8_character(p, left);

        if (len > 0)
            buf_add(out, (struct slice){p, len});
        else
            buf_add_str(out, UTF8_REPLACEMENT);
        p += len ? len : 1;
        left -= len ? len : 1;
    }
    if (p < text.ptr + text.len)
        buf_add_str(out, "\xe2\x80\xa6"); /* an ellipsis */
}

/* ---- text ---------------------------------------------------------------------- */

static void add_escaped(struct buf *line, struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];

        if (c < 0x20 || c == 0x7f) {
            buf_printf(line, "\\u%04x", c);
            continue;
        }
        if (c == '"' || c == '\\')
            buf_add_char(line, '\\');
        buf_add_char(line, (char)c);
    }
}

static bool is_plain(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.ptr[i] <= 0x20 || strchr("\"\\=\x7f", s.ptr[i]))
            return false;
    }
    return s.len > 0;
}

static void add_text_field(struct buf *line, const char *name, struct slice value)
{
    buf_printf(line, " %s=", name);
    if (is_plain(value)) {
        buf_add(line, value);
        return;
    }
    buf_add_char(line, '"');
    add_escaped(line, value);
    buf_add_char(line, '"');
}

static void text_line(struct buf *line, enum log_level level, struct slice message,
                      const struct log_field *fields)
{
    char now[32];

    if (!logger.journal) {
        print_time(now);
        buf_printf(line, "%s ", now);
    }
    buf_printf(line, "%s ", level_names[level]);
    for (size_t i = 0; i < message.len; i++) {
        char c = message.ptr[i];

        if ((unsigned char)c < 0x20)
            c = ' ';
        buf_add_char(line, c);
    }
    for (; fields && fields->name; fields++) {
        struct buf value;

        if (!fields->value.ptr)
            continue;
        buf_init(&value, LINE_MAX_BYTES);
        add_clean(&value, fields->value, VALUE_MAX_BYTES);
        add_text_field(line, fields->name, buf_slice(&value));
        buf_done(&value);
    }
}

/* ---- JSON ---------------------------------------------------------------------- */

static void set_member(json_t *object, const char *name, struct slice value)
{
    struct buf clean;

    buf_init(&clean, LINE_MAX_BYTES);
    add_clean(&clean, value, VALUE_MAX_BYTES);
    (void)json_object_set_new(object, name, json_stringn(buf_str(&clean), clean.len));
    buf_done(&clean);
}

static void json_line(struct buf *line, enum log_level level, struct slice message,
                      const struct log_field *fields)
{
    json_t *object = json_object();
    char now[32];
    char *text;

    print_time(now);
    (void)json_object_set_new(object, "ts", json_string(now));
    (void)json_object_set_new(object, "level", json_string(level_names[level]));
    (void)json_object_set_new(object, "msg", json_stringn(message.ptr, message.len));
    for (; fields && fields->name; fields++) {
        if (fields->value.ptr)
            set_member(object, fields->name, fields->value);
    }
    text = json_dumps(object, JSON_COMPACT);
    if (text)
        buf_add_str(line, text);
    else
        line->failed = true;
    free(text);
    json_decref(object);
}

/* ---- lines --------------------------------------------------------------------- */

/* Without memory a line says at least that there was one. */
static void end_line(struct buf *line)
{
    if (line->failed) {
        buf_reset(line);
        buf_add_str(line, logger.format == LOG_JSON
                              ? "{\"level\":\"error\",\"msg\":\"out of memory\"}"
                              : "error out of memory");
    }
    buf_add_char(line, '\n');
}

/* One write(2), so that lines of several processes do not mix. */
static void write_line(const struct buf *line)
{
    size_t done = 0;

    while (done < line->len) {
        ssize_t n = write(STDERR_FILENO, line->ptr + done, line->len - done);

        if (n > 0)
            done += (size_t)n;
        else if (n < 0 && errno != EINTR)
            return; /* a full disk or a closed pipe must not stop the relay */
    }
}

void log_event(enum log_level level, const struct log_field *fields, const char *fmt, ...)
{
    char text[MESSAGE_MAX_BYTES + 2]; /* a byte more than is shown: then it is cut */
    struct buf message;
    struct buf line;
    va_list ap;

    if (level > logger.level)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    buf_init(&message, LINE_MAX_BYTES);
    add_clean(&message, slice_of(text), MESSAGE_MAX_BYTES);
    buf_init(&line, LINE_MAX_BYTES);
    if (logger.format == LOG_JSON)
        json_line(&line, level, buf_slice(&message), fields);
    else
        text_line(&line, level, buf_slice(&message), fields);
    end_line(&line);
    write_line(&line);
    buf_done(&line);
    buf_done(&message);
}

/* An empty string is a field that is left out. */
static struct slice or_absent(const char *text)
{
    return *text ? slice_of(text) : (struct slice){0};
}

void log_err(enum log_level level, const struct err *err)
{
    const struct err_event *event = &err->event;
    char attempt[16] = "";
    struct log_field fields[] = {{"code", or_absent(err->code)},
                                 {"event_id", or_absent(event->id)},
                                 {"event_type", or_absent(event->type)},
                                 {"aggregate_id", or_absent(event->aggregate_id)},
                                 {"attempt", {0}},
                                 LOG_END};

    if (event->attempt > 0) {
        (void)snprintf(attempt, sizeof(attempt), "%u", event->attempt);
        fields[4].value = slice_of(attempt);
    }
    log_event(level, fields, "%s", err->text);
}
