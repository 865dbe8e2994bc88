#include "net/aws_time.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t seconds_of(int year, int month, int day, const int clock[3])
{
    struct tm parts = {.tm_year = year - 1900,
                       .tm_mon = month - 1,
                       .tm_mday = day,
                       .tm_hour = clock[0],
                       .tm_min = clock[1],
                       .tm_sec = clock[2]};
    if (year < 1970 || year > 9999 || month < 1 || month > 12 || day < 1 || day > 31 ||
        clock[0] > 23 || clock[1] > 59 || clock[2] > 60)
        return 0;
    return (int64_t)timegm(&parts);
}

/* What stands behind the seconds: nothing, Z, or an offset to be taken off. */
static int read_offset(const char *text, int64_t *offset_s)
{
    unsigned hours, minutes;
    *offset_s = 0;
    if (*text == '.')
        text += 1 + strspn(text + 1, "0123456789");
    if (!*text || !strcmp(text, "Z"))
        return 1;
    if ((*text != '+' && *text != '-') || (sscanf(text + 1, "%2u:%2u", &hours, &minutes) != 2 &&
                                           sscanf(text + 1, "%2u%2u", &hours, &minutes) != 2))
        return 0;
    *offset_s = ((int64_t)hours * 60 + minutes) * (*text == '-' ? -60 : 60);
    return 1;
}

int64_t aws_time_read(const char *text)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    unsigned year, month, day, hour, minute, second;
    int length = 0;
    int64_t offset_s = 0;
    char name[4];
    /* Programs that print credentials write a blank for the T, too, as Python does. */
    if (sscanf(text, "%4u-%2u-%2u%*1[T ]%2u:%2u:%2u%n", &year, &month, &day, &hour, &minute,
               &second, &length) == 6) {
        if (!read_offset(text + length, &offset_s))
            return 0;
    } else if (sscanf(text, "%*3[A-Za-z], %2u %3[A-Za-z] %4u %2u:%2u:%2u GMT", &day, name, &year,
                      &hour, &minute, &second) == 6) {
        const char *at = strstr(months, name);
        if (!at || (at - months) % 3)
            return 0;
        month = (unsigned)(at - months) / 3 + 1;
    } else {
        return 0;
    }
    int64_t seconds =
        seconds_of((int)year, (int)month, (int)day, (int[]){(int)hour, (int)minute, (int)second});
    return seconds ? seconds - offset_s : 0;
}
