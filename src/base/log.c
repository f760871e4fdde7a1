#include "base/log.h"

#include "base/buf.h"
#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 16384 };

static struct {
    enum log_level level;
    enum log_format format;
    bool journal;
} logger = {LOG_INFO, LOG_TEXT, false};

static const char *const level_names[] = {"error", "warning", "info", "debug"};

static bool stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat st;
    uintmax_t dev;
    uintmax_t ino;

    return stream && sscanf(stream, "%" SCNuMAX ":%" SCNuMAX, &dev, &ino) == 2 &&
           fstat(STDERR_FILENO, &st) == 0 && (uintmax_t)st.st_dev == dev &&
           (uintmax_t)st.st_ino == ino;
}

void log_init(enum log_level level, enum log_format format)
{
    logger.level = level;
    logger.format = format;
    logger.journal = stderr_is_journal();
}

static void add_time(struct buf *line)
{
    int64_t now_us = clock_wall_us();
    time_t seconds = (time_t)(now_us / 1000000);
    struct tm tm;
    char text[32];

    (void)gmtime_r(&seconds, &tm);
    (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    buf_printf(line, "%s.%03dZ", text, (int)(now_us / 1000 % 1000));
}

/* What JSON needs, which also keeps a text line one line. */
static void add_escaped(struct buf *line, struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];

        if (c == '"' || c == '\\') {
            buf_add_char(line, '\\');
            buf_add_char(line, (char)c);
        } else if (c < 0x20 || c == 0x7f) {
            buf_printf(line, "\\u%04x", c);
        } else {
            buf_add_char(line, (char)c);
        }
    }
}

static void add_json(struct buf *line, const char *name, struct slice value)
{
    buf_printf(line, "%s\"%s\":\"", line->len > 1 ? "," : "", name);
    add_escaped(line, value);
    buf_add_char(line, '"');
}

static bool plain(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.ptr[i] <= 0x20 || strchr("\"\\=\x7f", s.ptr[i]))
            return false;
    }
    return s.len > 0;
}

static void add_text_field(struct buf *line, const struct log_field *field)
{
    buf_printf(line, " %s=", field->name);
    if (plain(field->value)) {
        buf_add(line, field->value);
        return;
    }
    buf_add_char(line, '"');
    add_escaped(line, field->value);
    buf_add_char(line, '"');
}

static void text_line(struct buf *line, enum log_level level, const char *message,
                      const struct log_field *fields)
{
    if (!logger.journal) {
        add_time(line);
        buf_add_char(line, ' ');
    }
    buf_printf(line, "%s ", level_names[level]);
    for (const char *p = message; *p; p++)
        buf_add_char(line, (unsigned char)*p < 0x20 ? ' ' : *p);
    for (; fields && fields->name; fields++) {
        if (fields->value.ptr)
            add_text_field(line, fields);
    }
}

static void json_line(struct buf *line, enum log_level level, const char *message,
                      const struct log_field *fields)
{
    buf_add_str(line, "{\"ts\":\"");
    add_time(line);
    buf_add_char(line, '"');
    add_json(line, "level", slice_of(level_names[level]));
    add_json(line, "msg", slice_of(message));
    for (; fields && fields->name; fields++) {
        if (fields->value.ptr)
            add_json(line, fields->name, fields->value);
    }
    buf_add_char(line, '}');
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
    char message[ERR_TEXT_MAX + 512];
    struct buf line;
    va_list ap;

    if (level > logger.level)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    buf_init(&line, LINE_MAX_BYTES);
    if (logger.format == LOG_JSON)
        json_line(&line, level, message, fields);
    else
        text_line(&line, level, message, fields);
    buf_add_char(&line, '\n');
    write_line(&line);
    buf_done(&line);
}

void log_err(enum log_level level, const struct err *err)
{
    struct log_field fields[] = {
        {"code", {err->code[0] ? err->code : NULL, strlen(err->code)}}, LOG_END};

    log_event(level, fields, "%s", err->text);
}
