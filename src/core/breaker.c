#include "core/breaker.h"

#include <stdlib.h>

struct breaker {
    size_t limit;
    int64_t window_ms;
    bool open;
    size_t n;    /* of the times, at most limit */
    size_t next; /* the oldest when all are taken */
    int64_t times[];
};

struct breaker *breaker_new(size_t limit, int64_t window_ms)
{
    struct breaker *breaker = NULL;

    if (limit <= ((size_t)-1 - sizeof(*breaker)) / sizeof(int64_t))
        breaker = calloc(1, sizeof(*breaker) + limit * sizeof(int64_t));
    if (!breaker)
        return NULL;
    breaker->limit = limit;
    breaker->window_ms = window_ms;
    return breaker;
}

void breaker_free(struct breaker *breaker)
{
    free(breaker);
}

void breaker_count(struct breaker *breaker, int64_t now_ms)
{
    if (breaker->limit == 0)
        return;
    /* the one that is limit before this one is still in the window */
    if (breaker->n == breaker->limit &&
        now_ms - breaker->times[breaker->next] < breaker->window_ms)
        breaker->open = true;
    breaker->times[breaker->next] = now_ms;
    breaker->next = (breaker->next + 1) % breaker->limit;
    if (breaker->n < breaker->limit)
        breaker->n++;
}

bool breaker_is_open(const struct breaker *breaker)
{
    return breaker->open;
}

void breaker_reset(struct breaker *breaker)
{
    breaker->open = false;
    breaker->n = 0;
    breaker->next = 0;
}
