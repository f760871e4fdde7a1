/* timestamp.c - see timestamp.h; the form is EncodeDateTime's with USE_ISO_DATES
 * (src/backend/utils/adt/datetime.c). */
#include "core/timestamp.h"

enum { SECOND_US = 1000000, DAY_S = 86400, MAX_ZONE_HOURS = 15, EPOCH_DAY = 719468 };

/* Days that begin before this have microseconds that an int64_t can count. */
#define MAX_SECONDS (INT64_MAX / SECOND_US - DAY_S)

struct cursor {
    const char *p;
    const char *end;
};

static bool take(struct cursor *c, char wanted)
{
    if (c->p == c->end || *c->p != wanted)
        return false;
    c->p++;
    return true;
}

/* At least min and at most max digits. */
static bool take_digits(struct cursor *c, int min, int max, int *ret)
{
    int n = 0;

    *ret = 0;
    while (n < max && c->p < c->end && *c->p >= '0' && *c->p <= '9') {
        *ret = *ret * 10 + (*c->p++ - '0');
        n++;
    }
    return n >= min;
}

static bool take_two(struct cursor *c, int most, int *ret)
{
    return take_digits(c, 2, 2, ret) && *ret <= most;
}

/* The year needs its era, which stands at the end, to be checked. */
static bool take_date(struct cursor *c, int *year, int *month, int *day)
{
    return take_digits(c, 4, 6, year) && *year > 0 && take(c, '-') &&
           take_two(c, 12, month) && *month > 0 && take(c, '-') && take_two(c, 31, day) &&
           *day > 0;
}

static bool take_time(struct cursor *c, int64_t *us)
{
    int hour;
    int minute;
    int second;
    int fraction = 0;
    const char *start;

    if (!take_two(c, 23, &hour) || !take(c, ':') || !take_two(c, 59, &minute) ||
        !take(c, ':') || !take_two(c, 59, &second))
        return false;
    if (take(c, '.')) {
        start = c->p;
        if (!take_digits(c, 1, 6, &fraction))
            return false;
        for (long n = c->p - start; n < 6; n++)
            fraction *= 10;
    }
    *us = ((hour * 60 + minute) * 60 + second) * (int64_t)SECOND_US + fraction;
    return true;
}

/* Seconds east of Greenwich; none is UTC. */
static bool take_zone(struct cursor *c, int *ret)
{
    bool west = take(c, '-');
    int hours;
    int minutes = 0;
    int seconds = 0;

    *ret = 0;
    if (!west && !take(c, '+'))
        return true;
    if (!take_two(c, MAX_ZONE_HOURS, &hours))
        return false;
    if (take(c, ':') && !take_two(c, 59, &minutes))
        return false;
    if (take(c, ':') && !take_two(c, 59, &seconds))
        return false;
    *ret = (hours * 60 + minutes) * 60 + seconds;
    if (west)
        *ret = -*ret;
    return true;
}

static int days_in_month(int year, int month)
{
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    if (month == 2)
        return leap ? 29 : 28;
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

/* Days since 1970-01-01.  Years are counted from March, so that the leap day is the
 * last of its year and (153 * m + 2) / 5 days lie before month m; after
 * https://howardhinnant.github.io/date_algorithms.html#days_from_civil */
static int64_t days_since_epoch(int year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH_DAY;
}

bool timestamp_parse(struct slice text, int64_t *ret)
{
    struct cursor c = {text.ptr, text.ptr ? text.ptr + text.len : NULL};
    int year;
    int month;
    int day;
    int zone_s;
    int64_t us;
    int64_t seconds;

    if (!take_date(&c, &year, &month, &day) || !take(&c, ' ') || !take_time(&c, &us) ||
        !take_zone(&c, &zone_s))
        return false;
    /* 1 BC is year 0 of the proleptic calendar. */
    if (take(&c, ' ')) {
        if (!take(&c, 'B') || !take(&c, 'C'))
            return false;
        year = 1 - year;
    }
    if (c.p != c.end || day > days_in_month(year, month))
        return false;
    seconds = days_since_epoch(year, month, day) * DAY_S - zone_s;
    if (seconds >= MAX_SECONDS || seconds <= -MAX_SECONDS)
        return false;
    *ret = seconds * SECOND_US + us;
    return true;
}
