#include "io/slot.h"

#include "base/buf.h"
#include "base/clock.h"
#include "core/pgwire.h"
#include "core/place.h"
#include "core/start_replication.h"
#include "core/wal2json.h"

#include <stdlib.h>

enum {
    COMMAND_MAX_BYTES = 1 << 20,
    /* At least one status in that time keeps wal_sender_timeout away, also while we are
     * not reading and cannot see that the server asks. */
    ALIVE_MS = 1000,
    /* A server that shuts down asks without pause; the same answer need not be as often.
     */
    SAME_ANSWER_MS = 100,
    /* It asks again as soon as it has an answer, so a question follows the other after
     * SAME_ANSWER_MS and the way there and back. */
    INSISTENT_MS = 500,
    SUSPECT_ASKED = 5,
    /* Silence is normal, as our own statuses reset the server's timer.  Only a question
     * of ours that stays unanswered says that the server is wedged. */
    ASK_EVERY_MS = 10000,
};

/* A moved position is told that long after the last status. */
static const int64_t confirm_after_ms[] = {
    [CONFIRM_OTHERS] = 250, [CONFIRM_OWN] = 100, [CONFIRM_DRAINED] = 10};

enum phase { SLOT_STARTING, SLOT_STREAMING, SLOT_ENDING, SLOT_ENDED };

struct slot {
    struct source source; /* first, see source.h */
    struct pg *pg;
    enum phase phase;
    struct wal2json *decoder;
    const struct encoding *encoding;
    struct frame frame; /* the one that the last change borrows from */

    struct place row; /* the last one */
    int64_t commit_us;
    lsn_t received; /* the largest LSN that the server named on this connection */

    lsn_t sent; /* the flush position that was told last */
    int64_t sent_ms;
    lsn_t flushed;
    enum confirm_urgency urgency; /* the highest since then */
    bool stuck;                   /* libpq holds bytes that the socket does not take */
    bool reply_asked;
    int asked; /* how often since the position moved, within INSISTENT_MS each */
    int64_t asked_ms;
    bool suspect;
    int64_t answer_within_ms;
    int64_t question_ms; /* when we asked the server for an answer */
    bool question_open;
    bool silent; /* no answer in time */
};

static struct slot *slot_of(struct source *source)
{
    return (struct slot *)source;
}

static const struct slot *const_slot_of(const struct source *source)
{
    return (const struct slot *)source;
}

/* ---- reading ------------------------------------------------------------------- */

static void note_question(struct slot *slot, int64_t now_ms)
{
    slot->reply_asked = true;
    slot->asked = now_ms - slot->asked_ms <= INSISTENT_MS ? slot->asked + 1 : 1;
    slot->asked_ms = now_ms;
    if (slot->asked >= SUSPECT_ASKED)
        slot->suspect = true;
}

static void keepalive(struct slot *slot, const struct pgwire_msg *msg, int64_t now_ms,
                      struct change *ret)
{
    if (msg->reply_asked)
        note_question(slot, now_ms);
    ret->kind = CHANGE_IDLE;
    ret->lsn = msg->lsn;
    ret->sent_us = msg->sent_us;
}

/* The message's bytes as UTF-8 and writable: where they lie in the frame, or converted
 * into a frame of their own. */
static int to_utf8(struct slot *slot, struct slice data, struct slice *ret,
                   struct err *err)
{
    struct frame converted;

    *ret = data;
    if (slot->encoding->kind != ENCODING_SINGLE_BYTE)
        return 0;
    if (encoding_convert(slot->encoding, data, &converted, err) != 0)
        return -1;
    free(slot->frame.bytes);
    slot->frame = converted;
    *ret = (struct slice){converted.bytes, converted.len};
    return 0;
}

static void number(struct slot *slot, struct change *change)
{
    if (change->kind == CHANGE_BEGIN) {
        slot->row = (struct place){0};
        slot->commit_us = change->commit_us;
    }
    if (change->kind == CHANGE_INSERT) {
        slot->row = place_after(&slot->row, change->lsn, slot->commit_us);
        change->number = slot->row.number;
    }
    change->commit_us = slot->commit_us;
}

static int data(struct slot *slot, const struct pgwire_msg *msg, struct change *ret,
                struct err *err)
{
    struct change change = {.lsn = msg->lsn, .sent_us = msg->sent_us};
    struct slice bytes;

    if (to_utf8(slot, msg->data, &bytes, err) != 0 ||
        wal2json_decode(slot->decoder, (char *)(uintptr_t)bytes.ptr, bytes.len, &change,
                        err) != 0)
        return -1;
    number(slot, &change);
    change.frame = slot->frame;
    *ret = change;
    return 0;
}

static int add_place(lsn_t lsn, struct err *err)
{
    struct err why = *err;

    err_clear(err);
    return err_set_code(err, why.class, why.code, "the message at %" LSN_FMT ": %s",
                        LSN_ARG(lsn), why.text);
}

static int decode(struct slot *slot, int64_t now_ms, struct change *ret, struct err *err)
{
    struct pgwire_msg msg;
    int rc;

    rc = pgwire_decode((struct slice){slot->frame.bytes, slot->frame.len}, &msg, err);
    if (rc != 0)
        return -1;
    if (msg.lsn > slot->received)
        slot->received = msg.lsn;
    slot->question_open = false; /* whatever comes, the server is there */
    if (msg.kind == PGWIRE_KEEPALIVE) {
        keepalive(slot, &msg, now_ms, ret);
        return 0;
    }
    return data(slot, &msg, ret, err) == 0 ? 0 : add_place(msg.lsn, err);
}

static int start(struct slot *slot, struct err *err)
{
    int rc = pg_copy_begun(slot->pg, err);

    if (rc == 1) {
        slot->phase = SLOT_STREAMING;
        slot->question_open = false;
    }
    return rc;
}

static int next(struct source *source, int64_t now_ms, struct change *ret,
                struct err *err)
{
    struct slot *slot = slot_of(source);
    struct frame frame;
    int rc;

    if (slot->phase == SLOT_STARTING && start(slot, err) != 1)
        return err->class == ERR_NONE ? 0 : -1;
    if (slot->phase == SLOT_ENDED)
        return 0;
    rc = pg_copy_get(slot->pg, &frame, err);
    if (rc == 2) {
        if (slot->phase != SLOT_ENDING)
            return err_set(err, ERR_RETRY, "the server ended the stream");
        slot->phase = SLOT_ENDED;
        return 0;
    }
    if (rc != 1)
        return rc;
    free(slot->frame.bytes);
    slot->frame = frame;
    return decode(slot, now_ms, ret, err) == 0 ? 1 : -1;
}

static int read_some(struct source *source, struct err *err)
{
    return pg_consume(slot_of(source)->pg, err);
}

/* ---- confirming ---------------------------------------------------------------- */

/* Never above what this connection has named: a position of another history would move
 * the slot there for good, and skip what commits below it. */
static lsn_t may_tell(const struct slot *slot)
{
    return slot->flushed <= slot->received ? slot->flushed : slot->sent;
}

static bool moved(const struct slot *slot)
{
    return may_tell(slot) > slot->sent;
}

static int flush_out(struct slot *slot, struct err *err)
{
    int rc = pg_flush(slot->pg, err);

    slot->stuck = rc == 1;
    return rc < 0 ? -1 : 0;
}

static int tell(struct slot *slot, int64_t now_ms, struct err *err)
{
    char status[PGWIRE_STATUS_BYTES];
    bool ask = !slot->question_open && now_ms - slot->question_ms >= ASK_EVERY_MS;
    lsn_t flush = may_tell(slot);

    /* LSN_NONE until there is something to tell: it leaves the slot where it is. */
    pgwire_encode_status(status, flush, clock_wall_us(), ask);
    if (pg_copy_put(slot->pg, (struct slice){status, sizeof(status)}, err) != 0)
        return -1;
    if (ask) {
        slot->question_open = true;
        slot->question_ms = now_ms;
    }
    if (flush != slot->sent)
        slot->asked = 0;
    slot->sent = flush;
    slot->sent_ms = now_ms;
    slot->reply_asked = false;
    slot->urgency = CONFIRM_OTHERS;
    return flush_out(slot, err);
}

static int64_t status_due(const struct slot *slot)
{
    int64_t due = slot->sent_ms + ALIVE_MS;

    if (moved(slot))
        due = slot->sent_ms + confirm_after_ms[slot->urgency];
    if (slot->reply_asked)
        due =
            clock_min(due, moved(slot) ? slot->asked_ms : slot->sent_ms + SAME_ANSWER_MS);
    return due;
}

static int64_t deadline(const struct source *source)
{
    const struct slot *slot = const_slot_of(source);

    if (slot->phase == SLOT_STARTING)
        return slot->question_ms + slot->answer_within_ms;
    if (slot->phase != SLOT_STREAMING || slot->stuck)
        return CLOCK_NEVER;
    return status_due(slot);
}

/* While we do not read, the answer lies behind what we did not read. */
static int check_answer(struct slot *slot, bool reading, int64_t now_ms, struct err *err)
{
    if (!slot->question_open)
        return 0;
    if (!reading)
        slot->question_ms = now_ms;
    if (now_ms - slot->question_ms < slot->answer_within_ms)
        return 0;
    slot->silent = true;
    return err_set(err, ERR_RETRY, "the server has not answered for %d s",
                   (int)(slot->answer_within_ms / 1000));
}

/* Until the stream has begun its failure must be noticed, whoever reads. */
static int await_start(struct slot *slot, bool reading, struct err *err)
{
    if (flush_out(slot, err) != 0)
        return -1;
    if (reading)
        return 0;
    return pg_consume(slot->pg, err) == 0 && start(slot, err) >= 0 ? 0 : -1;
}

static int confirm(struct source *source, lsn_t flushed, enum confirm_urgency urgency,
                   bool reading, int64_t now_ms, struct err *err)
{
    struct slot *slot = slot_of(source);

    slot->flushed = flushed;
    if (urgency > slot->urgency)
        slot->urgency = urgency;
    if (slot->phase == SLOT_STARTING)
        return check_answer(slot, true, now_ms, err) != 0
                   ? -1
                   : await_start(slot, reading, err);
    if (slot->phase != SLOT_STREAMING)
        return 0;
    if (check_answer(slot, reading, now_ms, err) != 0)
        return -1;
    if (slot->stuck)
        return flush_out(slot, err);
    return now_ms >= status_due(slot) ? tell(slot, now_ms, err) : 0;
}

static bool suspect(struct source *source)
{
    struct slot *slot = slot_of(source);
    bool was = slot->suspect;

    slot->suspect = false;
    return was;
}

static bool is_silent(const struct source *source)
{
    return const_slot_of(source)->silent;
}

/* ---- ending -------------------------------------------------------------------- */

static int end(struct source *source, lsn_t flushed, int64_t now_ms, struct err *err)
{
    struct slot *slot = slot_of(source);

    slot->flushed = flushed;
    if (slot->phase == SLOT_STREAMING) {
        slot->phase = SLOT_ENDING;
        return tell(slot, now_ms, err) != 0 || pg_copy_end(slot->pg, err) != 0
                   ? -1
                   : flush_out(slot, err);
    }
    if (slot->phase == SLOT_STARTING)
        slot->phase = SLOT_ENDED;
    else if (slot->stuck)
        return flush_out(slot, err);
    return 0;
}

static bool ended(const struct source *source)
{
    return const_slot_of(source)->phase == SLOT_ENDED;
}

static struct pollfd fd(const struct source *source, bool reading)
{
    const struct slot *slot = const_slot_of(source);
    struct pollfd pollfd = {pg_socket(slot->pg), 0, 0};

    if (reading || slot->phase != SLOT_STREAMING)
        pollfd.events |= POLLIN;
    if (slot->stuck)
        pollfd.events |= POLLOUT;
    return pollfd;
}

static void free_slot(struct source *source)
{
    struct slot *slot = slot_of(source);

    pg_close(slot->pg);
    wal2json_free(slot->decoder);
    free(slot->frame.bytes);
    free(slot);
}

static lsn_t received(const struct source *source)
{
    return const_slot_of(source)->received;
}

static const struct source_ops ops = {
    .next = next,
    .read = read_some,
    .fd = fd,
    .deadline = deadline,
    .confirm = confirm,
    .suspect = suspect,
    .is_silent = is_silent,
    .end = end,
    .ended = ended,
    .received = received,
    .free = free_slot,
};

static int send_command(struct slot *slot, const struct slot_options *options,
                        struct err *err)
{
    struct buf command;
    int rc;

    buf_init(&command, COMMAND_MAX_BYTES);
    start_replication(&command, options->name, options->start, options->catalog,
                      options->typed);
    if (command.no_memory)
        rc = err_set(err, ERR_INTERNAL, "out of memory for START_REPLICATION");
    else if (command.failed)
        rc = err_set(
            err, ERR_CONFIG,
            "START_REPLICATION for slot %s is over %d bytes; configure fewer tables",
            options->name, COMMAND_MAX_BYTES);
    else
        rc = pg_send(slot->pg, buf_str(&command), err);
    buf_done(&command);
    return rc;
}

struct source *slot_open(struct pg *pg, const struct slot_options *options,
                         int64_t now_ms, struct err *err)
{
    struct slot *slot = calloc(1, sizeof(*slot));

    if (!slot) {
        pg_close(pg);
        (void)err_set(err, ERR_INTERNAL, "out of memory for a source");
        return NULL;
    }
    slot->source.ops = &ops;
    slot->pg = pg;
    slot->encoding = options->encoding;
    slot->sent_ms = now_ms;
    slot->question_ms = now_ms;
    slot->question_open = true; /* START_REPLICATION */
    slot->answer_within_ms = options->answer_within_ms;
    slot->decoder = wal2json_new();
    if (!slot->decoder)
        (void)err_set(err, ERR_INTERNAL, "out of memory for a decoder");
    if (!slot->decoder || send_command(slot, options, err) != 0 ||
        flush_out(slot, err) != 0) {
        free_slot(&slot->source);
        return NULL;
    }
    return &slot->source;
}
