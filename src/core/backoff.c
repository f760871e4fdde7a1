#include "core/backoff.h"

#include "base/must.h"

void backoff_init(struct backoff *backoff, int64_t initial_ms, int64_t max_ms)
{
    must(initial_ms > 0 && initial_ms <= max_ms);
    *backoff = (struct backoff){initial_ms, max_ms, initial_ms};
}

static int64_t doubled(const struct backoff *backoff, int64_t step)
{
    return step > backoff->max_ms / 2 ? backoff->max_ms : step * 2;
}

int64_t backoff_next(struct backoff *backoff, uint64_t random)
{
    int64_t step = backoff->current_ms;
    int64_t least = step - step / 2;

    backoff->current_ms = doubled(backoff, step);
    return least + (int64_t)(random % (uint64_t)(step / 2 + 1));
}

void backoff_resume(struct backoff *backoff, unsigned attempts)
{
    int64_t step = backoff->initial_ms;

    for (unsigned i = 0; i < attempts && step < backoff->max_ms; i++)
        step = doubled(backoff, step);
    backoff->current_ms = step;
}

void backoff_reset(struct backoff *backoff)
{
    backoff->current_ms = backoff->initial_ms;
}
