/* err.h - why a call failed, in words an operator can act on.
 *
 * The function that detects the failure fills the struct, once; every caller
 * above it passes it on untouched.  Only app/ turns it into a log line. */
#ifndef WALRELAY_BASE_ERR_H
#define WALRELAY_BASE_ERR_H

#include "base/slice.h"

#define ERR_TEXT_MAX 1024

/* What the process does about it.  All but RETRY end `walrelay run`; the exit
 * code that belongs to each class is in app/exit_code.h. */
enum err_class {
    ERR_NONE = 0,
    ERR_RETRY,    /* the peer is away or busy: wait, reconnect, go on */
    ERR_POISON,   /* this one event can never be published */
    ERR_SLOT,     /* the slot is missing, lost or of another server */
    ERR_DENIED,   /* authentication or rights */
    ERR_CONFIG,   /* the configuration is wrong, or the server's is */
    ERR_USAGE,    /* what somebody typed names nothing that is there */
    ERR_INTERNAL, /* out of memory, or a peer that breaks its protocol */
};

/* The event that an error is about: what the log says of it beside the text. */
struct err_event {
    char id[128]; /* each cut if it is longer, "" if it is not known */
    char type[128];
    char aggregate_id[128];
    unsigned attempt; /* how often it was sent to Kafka; 0: there is no event */
};

struct err {
    enum err_class class;
    char code[48]; /* SQLSTATE or Kafka error name, may be empty */
    char text[ERR_TEXT_MAX];
    struct err_event event;
};

/* Both: the first error wins, a later one leaves err as it is; err may be NULL;
 * text longer than ERR_TEXT_MAX is cut; line breaks become spaces, so that a
 * peer's multi-line message stays one line.  Return -1, so that
 * `return err_set(err, ...)` is one line. */
int err_set(struct err *err, enum err_class class, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with the peer's own code, which may be NULL. */
int err_set_code(struct err *err, enum err_class class, const char *code, const char *fmt,
                 ...) __attribute__((format(printf, 4, 5)));

/* Names the event.  attempt counts from 1.  Nothing happens if one is named already, or
 * while there is no error. */
void err_set_event(struct err *err, struct slice id, struct slice type,
                   struct slice aggregate_id, unsigned attempt);

/* No error, for the first or the next attempt.  Where it is made for every event this is
 * cheaper than {0}, which writes all of the texts. */
static inline void err_clear(struct err *err)
{
    err->class = ERR_NONE;
    err->code[0] = '\0';
    err->text[0] = '\0';
    err->event.id[0] = '\0';
    err->event.type[0] = '\0';
    err->event.aggregate_id[0] = '\0';
    err->event.attempt = 0;
}

#endif
