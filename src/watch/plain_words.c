#include "watch/plain_words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void words_put(char *out, size_t room, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(out, room, format, args);
    va_end(args);
    if (len < 0)
        out[0] = '\0';
    if (len < 0 || (size_t)len < room || room < 5)
        return;
    size_t end = room - 4;
    while (end && ((unsigned char)out[end] & 0xc0) == 0x80)
        end--; /* back to where a character begins */
    memcpy(out + end, "...", 4);
}

struct word word_percent(double share)
{
    struct word word;
    double percent = 100 * share;
    int digits = percent >= 0.05 && percent < 0.95 ? 1 : 0;
    words_put(word.text, sizeof word.text, "%.*f %%", digits, percent);
    return word;
}

struct word word_count(uint64_t count)
{
    struct word word;
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, count);
    size_t at = 0;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            word.text[at++] = ',';
        word.text[at++] = digits[i];
    }
    word.text[at] = '\0';
    return word;
}

struct word word_bytes(double bytes)
{
    static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB", "PB"};
    struct word word;
    size_t unit = 0;
    while (bytes >= 999.5 && unit + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1000;
        unit++;
    }
    words_put(word.text, sizeof word.text, "%.*f %s", unit && bytes < 9.95 ? 1 : 0, bytes,
              units[unit]);
    return word;
}

struct word word_seconds(double seconds)
{
    struct word word;
    const char *unit = seconds >= 0.9995 ? "s" : seconds >= 0.9995e-3 ? "ms" : "us";
    double value = seconds >= 0.9995 ? seconds : seconds * (seconds >= 0.9995e-3 ? 1e3 : 1e6);
    words_put(word.text, sizeof word.text, "%.*f %s", value < 9.95 ? 1 : 0, value, unit);
    return word;
}

struct word word_gain(double gain)
{
    struct word word;
    words_put(word.text, sizeof word.text, "%.*fx", gain < 1.095 ? 2 : gain < 9.95 ? 1 : 0, gain);
    return word;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

struct word word_function(const struct summary_function *function)
{
    struct word word;
    const char *name = function->function ? function->function : "";
    if (function->file && function->file[0])
        words_put(word.text, sizeof word.text, "%.44s (%.36s:%" PRIu32 ")", name,
                  last_part(function->file), function->line);
    else
        words_put(word.text, sizeof word.text, "%.80s", name);
    return word;
}

struct word word_loader(const struct summary_loader *loader)
{
    struct word word;
    const char *name = loader->class_name[0] ? loader->class_name : "DataLoader";
    if (loader->file[0] && loader->line)
        words_put(word.text, sizeof word.text, "the %.40s (%.36s:%" PRIu32 ")", name,
                  last_part(loader->file), loader->line);
    else
        words_put(word.text, sizeof word.text, "the %.80s", name);
    return word;
}
