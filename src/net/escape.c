#include "net/escape.h"

static int is_plain(unsigned char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

void escape_add(struct text *to, const char *from, size_t length, int keep_slash)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t plain = 0; /* bytes before i that are not yet added */
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)from[i];
        if (is_plain(c) || (c == '/' && keep_slash)) {
            plain++;
            continue;
        }
        char escaped[3] = {'%', digits[c >> 4], digits[c & 15]};
        text_add(to, from + i - plain, plain);
        text_add(to, escaped, sizeof(escaped));
        plain = 0;
    }
    text_add(to, from + length - plain, plain);
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int escape_decode(struct text *to, const char *from, size_t length)
{
    size_t plain = 0;
    for (size_t i = 0; i < length; i++) {
        if (from[i] != '%') {
            if (!from[i])
                return -1;
            plain++;
            continue;
        }
        int high = length - i > 2 ? digit_value(from[i + 1]) : -1;
        int low = high >= 0 ? digit_value(from[i + 2]) : -1;
        char c = low >= 0 ? (char)(high * 16 + low) : '\0';
        if (!c)
            return -1;
        text_add(to, from + i - plain, plain);
        text_add(to, &c, 1);
        plain = 0;
        i += 2;
    }
    text_add(to, from + length - plain, plain);
    return 0;
}
