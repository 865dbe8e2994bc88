/* Dates of the proleptic Gregorian calendar, by hand: no locale, no time zone of the machine, no
 * limit of time_t. The functions are declared in series_split.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "pack/series_split.h"

#define DAY 86400
#define ERA_YEARS 400
#define ERA_DAYS 146097
#define EPOCH 719528 /* days from 0000-01-01 to 1970-01-01 */
#define BILLION 1000000000

__extension__ typedef __int128 wide;

/* Nanoseconds of a unit; 0: it is none of a calendar. */
static int64_t unit_length(const char *unit)
{
    static const struct {
        const char *name;
        int64_t length;
    } units[] = {
        {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", BILLION}, {"d", (int64_t)DAY * BILLION}};

    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (!strcmp(unit, units[i].name))
            return units[i].length;
    return 0;
}

static int is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % ERA_YEARS == 0);
}

static int64_t month_days(int64_t year, int64_t month)
{
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return days[month - 1] + (month == 2 && is_leap(year));
}

/* Days before the first of January of a year >= 0, from that of year 0, which is a leap year. */
static int64_t year_start(int64_t year)
{
    return year * 365 + (year + 3) / 4 - (year + 99) / 100 + (year + 399) / 400;
}

/* --- reading --------------------------------------------------------------------------------- */

struct cursor {
    const char *at, *end;
};

static int take(struct cursor *cursor, char wanted)
{
    if (cursor->at == cursor->end || *cursor->at != wanted)
        return 0;
    cursor->at++;
    return 1;
}

/* Exactly so many digits. */
static int take_number(struct cursor *cursor, size_t digits, int64_t *out)
{
    uint64_t number;

    if ((size_t)(cursor->end - cursor->at) < digits || !parse_u64(cursor->at, digits, &number))
        return 0;
    cursor->at += digits;
    *out = (int64_t)number;
    return 1;
}

static int take_date(struct cursor *cursor, int64_t *days)
{
    int64_t year, month, day;

    if (!take_number(cursor, 4, &year) || !take(cursor, '-') || !take_number(cursor, 2, &month) ||
        !take(cursor, '-') || !take_number(cursor, 2, &day))
        return 0;
    if (month < 1 || month > 12 || day < 1 || day > month_days(year, month))
        return 0;
    *days = year_start(year) + day - 1 - EPOCH;
    for (int64_t before = 1; before < month; before++)
        *days += month_days(year, before);
    return 1;
}

/* ".5": up to nine digits. */
static int take_fraction(struct cursor *cursor, int64_t *nanoseconds)
{
    size_t digits = 0;

    *nanoseconds = 0;
    if (!take(cursor, '.'))
        return 1;
    for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; digits++) {
        if (digits == 9)
            return 0;
        *nanoseconds = *nanoseconds * 10 + (*cursor->at++ - '0');
    }
    for (size_t i = digits; i < 9; i++)
        *nanoseconds *= 10;
    return digits > 0;
}

/* "Z", "+01:00" or nothing: seconds east. */
static int take_zone(struct cursor *cursor, int64_t *east)
{
    int64_t hours, minutes, sign = 1;

    *east = 0;
    if (cursor->at == cursor->end || take(cursor, 'Z') || take(cursor, 'z'))
        return 1;
    if (take(cursor, '-'))
        sign = -1;
    else if (!take(cursor, '+'))
        return 0;
    if (!take_number(cursor, 2, &hours) || !take(cursor, ':') || !take_number(cursor, 2, &minutes))
        return 0;
    *east = sign * (hours * 3600 + minutes * 60);
    return hours < 24 && minutes < 60;
}

/* "T12:30[:00[.5]][+01:00]", or nothing. */
static int take_clock(struct cursor *cursor, int64_t *seconds, int64_t *nanoseconds)
{
    int64_t hour, minute, second = 0, east;

    *seconds = *nanoseconds = 0;
    if (cursor->at == cursor->end)
        return 1;
    if (!take(cursor, 'T') && !take(cursor, 't') && !take(cursor, ' '))
        return 0;
    if (!take_number(cursor, 2, &hour) || !take(cursor, ':') || !take_number(cursor, 2, &minute))
        return 0;
    if (take(cursor, ':') &&
        (!take_number(cursor, 2, &second) || !take_fraction(cursor, nanoseconds)))
        return 0;
    if (hour > 23 || minute > 59 || second > 59 || !take_zone(cursor, &east))
        return 0;
    *seconds = hour * 3600 + minute * 60 + second - east;
    return 1;
}

/* A moment between two of the unit's becomes the later one: "at or after" and "before" mean the
 * same rows then. */
int series_time_parse(const char *text, size_t len, const char *unit, int64_t *out)
{
    struct cursor cursor = {text, text + len};
    int64_t days, seconds, nanoseconds, length = unit_length(unit);

    if (parse_i64(text, len, out))
        return 1;
    if (!length || !take_date(&cursor, &days) || !take_clock(&cursor, &seconds, &nanoseconds) ||
        cursor.at != cursor.end)
        return 0;
    wide moment = ((wide)days * DAY + seconds) * BILLION + nanoseconds;
    wide time = moment / length + (moment % length > 0);
    if (time < INT64_MIN || time > INT64_MAX)
        return 0;
    *out = (int64_t)time;
    return 1;
}

/* --- writing --------------------------------------------------------------------------------- */

static void format_date(int64_t days, char *out, size_t cap)
{
    int64_t era = days / ERA_DAYS, in_era = days % ERA_DAYS;
    int64_t year = in_era / 366, month = 1;

    while (year_start(year + 1) <= in_era) /* once at most: 366 is too long by a day in 1,500 */
        year++;
    int64_t day = in_era - year_start(year) + 1;
    for (; day > month_days(year, month); month++)
        day -= month_days(year, month);
    snprintf(out, cap, "%04d-%02d-%02d", (int)(era * ERA_YEARS + year), (int)month, (int)day);
}

void series_time_format(int64_t time, const char *unit, char *out, size_t cap)
{
    int64_t length = unit_length(unit);
    wide moment = (wide)time * length + (wide)EPOCH * DAY * BILLION; /* from 0000-01-01 on */
    wide days = moment / ((wide)DAY * BILLION);
    char date[32], fraction[16] = "";

    if (!length || moment < 0 || days >= year_start(10000)) {
        snprintf(out, cap, "%" PRId64, time);
        return;
    }
    format_date((int64_t)days, date, sizeof(date));
    if (length == (int64_t)DAY * BILLION) {
        snprintf(out, cap, "%s", date);
        return;
    }
    int64_t seconds = (int64_t)(moment / BILLION % DAY);
    int64_t nanoseconds = (int64_t)(moment % BILLION);
    int digits = length == 1 ? 9 : length == 1000 ? 6 : 3;
    for (int i = digits; i < 9; i++)
        nanoseconds /= 10;
    if (nanoseconds)
        snprintf(fraction, sizeof(fraction), ".%0*d", digits, (int)nanoseconds);
    snprintf(out, cap, "%sT%02d:%02d:%02d%s", date, (int)(seconds / 3600), (int)(seconds / 60 % 60),
             (int)(seconds % 60), fraction);
}
