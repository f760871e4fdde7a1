/* topic.h - the name of a topic, made from a template. */
#ifndef WALRELAY_CORE_TOPIC_H
#define WALRELAY_CORE_TOPIC_H

#include "base/err.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

/* Longest name that Kafka takes, in bytes (org.apache.kafka.common.internals.Topic). */
#define TOPIC_MAX 249

/* By the same source: 1 to 249 of a-z A-Z 0-9 . _ - but neither "." nor "..". */
bool topic_legal(struct slice name);

/* Either literal text or the name of a column whose value takes its place. */
struct topic_part {
    struct slice text;
    bool is_column;
};

struct topic_template {
    struct topic_part *parts;
    size_t nparts;
    bool is_constant; /* no column; the name is that of the first and only part */
    char *bytes;      /* what the parts borrow from */
};

/* "outbox.event.{aggregate_type}": text, and columns in braces.  Braces need no escape:
 * no topic may have one.  0, or -1 with err set: ERR_CONFIG for a brace without its
 * partner, an empty name in braces or text that no topic may have; ERR_INTERNAL without
 * memory. */
int topic_parse(const char *text, struct topic_template *ret, struct err *err)
    __attribute__((warn_unused_result));
void topic_done(struct topic_template *topic_template);

#endif
