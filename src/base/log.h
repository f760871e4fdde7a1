/* log.h - one line per event, to stderr, for a person or for a machine.
 *
 *   text  2026-11-30T09:15:02.114Z warning topic orders does not exist topic=orders
 *   json  {"ts":"2026-11-30T09:15:02.114Z","level":"warning","msg":"…","topic":"orders"}
 *
 * The logger is the one global of the program.  base, core and io do not log.
 * Nobody passes a payload or a password. */
#ifndef WALRELAY_BASE_LOG_H
#define WALRELAY_BASE_LOG_H

#include "base/err.h"
#include "base/slice.h"

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_TEXT, LOG_JSON };

/* The end of a list of fields. */
#define LOG_END                                                                          \
    {                                                                                    \
        0                                                                                \
    }

/* A name and a value beside the sentence.  A field whose value is absent is left out. */
struct log_field {
    const char *name;
    struct slice value;
};

/* Lines above level are dropped.  In text format the time is left out when the
 * journal adds its own: stderr is the stream that JOURNAL_STREAM names (see
 * systemd.exec(5)). */
void log_init(enum log_level level, enum log_format format);

/* fields may be NULL, else it ends with LOG_END.  Bytes that would break the line are
 * escaped, those that are no UTF-8 become U+FFFD, and what is long ends with an
 * ellipsis: 1536 bytes of the message and 1024 of each value are shown.  A line goes
 * out in one write(2); one that cannot be written is dropped. */
void log_event(enum log_level level, const struct log_field *fields, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The text of err; its code and the event it is about as fields where there are any. */
void log_err(enum log_level level, const struct err *err);

#endif
