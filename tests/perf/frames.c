#include "frames.h"

#include "base/buf.h"
#include "base/must.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { FRAME_MAX_BYTES = 4096 };

#define BEGIN_US INT64_C(849345302114523) /* 2026-11-30 09:15:02.114523, since 2000 */

static void add_number(struct buf *out, uint64_t v)
{
    for (int shift = 56; shift >= 0; shift -= 8)
        buf_add_char(out, (char)(unsigned char)(v >> shift));
}

/* As escape_json does for text without control characters. */
static void add_escaped(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            buf_add_char(out, '\\');
        buf_add_char(out, *text);
    }
}

static uint64_t next_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void add_uuid(struct buf *out, uint64_t *random)
{
    uint64_t a = next_random(random);
    uint64_t b = next_random(random);

    buf_printf(out, "%08x-%04x-4%03x-8%03x-%012" PRIx64, (unsigned)(a >> 32),
               (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff),
               (unsigned)(b >> 48 & 0xfff), b & UINT64_C(0xffffffffffff));
}

/* In the order in which jsonb keeps its keys, with as much of the note as there is room.
 */
static void make_payload(char ret[PAYLOAD_BYTES + 1], int event, int key)
{
    static const char note[] =
        "{\"note\": \"leave it with the neighbours if nobody opens, "
        "who are there most of the day, or else in the shed";
    char rest[PAYLOAD_BYTES];
    int len =
        snprintf(rest, sizeof(rest),
                 "\", \"lines\": [{\"qty\": 2, \"sku\": \"A-%d\", \"price\": 19.99}, "
                 "{\"qty\": 1, \"sku\": \"B-7\", \"price\": 5.49}], \"order\": %d, "
                 "\"total\": 45.47, \"customer\": \"Zo\u00eb-%d\"}",
                 event % 97, event, key);
    int room = PAYLOAD_BYTES - len;

    must(len > 0 && room > 0 && (size_t)room < sizeof(note));
    memcpy(ret, note, (size_t)room);
    memcpy(ret + room, rest, (size_t)len + 1);
}

/* ---- frames --------------------------------------------------------------------- */

struct writer {
    struct frames *frames;
    struct buf out;
    uint64_t random;
    lsn_t lsn;
    int64_t us; /* of the transaction at hand, since 2000 */
    int events;
};

static void add_time(struct writer *w)
{
    buf_printf(&w->out, "\"2026-11-30 09:15:%09.6f+00\"",
               (double)(w->us % 60000000) / 1000000);
}

static void begin_frame(struct writer *w, const char *action)
{
    buf_init(&w->out, FRAME_MAX_BYTES);
    buf_add_char(&w->out, 'w');
    add_number(&w->out, w->lsn);
    add_number(&w->out, w->lsn);
    add_number(&w->out, (uint64_t)w->us);
    buf_printf(&w->out, "{\"action\":\"%s\",\"timestamp\":", action);
    add_time(w);
}

static void end_frame(struct writer *w)
{
    buf_add_char(&w->out, '}');
    must(!w->out.failed);
    w->frames->all[w->frames->n++] = (struct slice){w->out.ptr, w->out.len};
    w->lsn += w->out.len;
}

static void add_column(struct writer *w, const char *name, const char *value)
{
    buf_printf(&w->out, "{\"name\":\"%s\",\"value\":\"", name);
    add_escaped(&w->out, value);
    buf_add_str(&w->out, "\"},");
}

static void add_row(struct writer *w)
{
    char text[PAYLOAD_BYTES + 1];
    int key = (int)(next_random(&w->random) % KEYS);

    begin_frame(w, "I");
    buf_add_str(&w->out,
                ",\"schema\":\"public\",\"table\":\"outbox_events\",\"columns\":["
                "{\"name\":\"id\",\"value\":\"");
    add_uuid(&w->out, &w->random);
    buf_add_str(&w->out, "\"},");
    add_column(w, "aggregate_type", "order");
    (void)snprintf(text, sizeof(text), "order-%d", key);
    add_column(w, "aggregate_id", text);
    add_column(w, "event_type", w->events % 3 == 0 ? "OrderPlaced" : "OrderPaid");
    make_payload(text, w->events++, key);
    add_column(w, "payload", text);
    buf_add_str(&w->out, "{\"name\":\"attempts\",\"value\":0},"
                         "{\"name\":\"created_at\",\"value\":");
    add_time(w);
    buf_add_str(&w->out, "},{\"name\":\"processed_at\",\"value\":null}]");
    end_frame(w);
}

static void add_transaction(struct writer *w)
{
    w->us += 12345;
    begin_frame(w, "B");
    end_frame(w);
    for (int i = 0; i < ROWS; i++)
        add_row(w);
    w->frames->end = w->lsn;
    begin_frame(w, "C");
    end_frame(w);
}

struct frames *frames_new(void)
{
    struct writer w = {.random = 1, .lsn = 0x1953570, .us = BEGIN_US};

    w.frames = calloc(1, sizeof(*w.frames));
    must(w.frames);
    for (int i = 0; i < TRANSACTIONS; i++)
        add_transaction(&w);
    return w.frames;
}

void frames_free(struct frames *frames)
{
    for (size_t i = 0; i < frames->n; i++)
        free((char *)(uintptr_t)frames->all[i].ptr);
    free(frames);
}
