#include "core/nearest.h"

#include <string.h>

enum {
    LONGEST = 128,
    CASE = 1,
    EDIT = LONGEST + 1, /* more than case alone can cost */
};

/* Of ASCII only; tolower() would ask the locale. */
static int lower(int c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static unsigned replace_cost(char a, char b)
{
    if (a == b)
        return 0;
    return lower(a) == lower(b) ? CASE : EDIT;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Levenshtein's distance, one row at a time: before the i-th round cost[j] is the
 * price of turning the first i bytes of a into the first j bytes of b. */
static unsigned distance(const char *a, const char *b)
{
    unsigned cost[LONGEST + 1];
    size_t alen = strnlen(a, LONGEST);
    size_t blen = strnlen(b, LONGEST);

    for (size_t j = 0; j <= blen; j++)
        cost[j] = (unsigned)j * EDIT;
    for (size_t i = 0; i < alen; i++) {
        unsigned diagonal = cost[0];

        cost[0] += EDIT;
        for (size_t j = 0; j < blen; j++) {
            unsigned replaced = diagonal + replace_cost(a[i], b[j]);

            diagonal = cost[j + 1];
            cost[j + 1] = least(replaced, least(cost[j], cost[j + 1]) + EDIT);
        }
    }
    return cost[blen];
}

const char *nearest_name(const char *wanted, const char *const *names, size_t n)
{
    const char *nearest = NULL;
    unsigned best = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned d = distance(wanted, names[i]);

        if (!nearest || d < best) {
            nearest = names[i];
            best = d;
        }
    }
    return nearest;
}
