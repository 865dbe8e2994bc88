/* The format: a control byte, then what it announces.
 *     000LLLLL                    L + 1 bytes follow as they are
 *     LLLhhhhh llllllll           L + 2 bytes again from h * 256 + l + 1 bytes back; L is 1 to 6
 *     111hhhhh LLLLLLLL llllllll  the same for L + 9 bytes
 * What is copied may overlap what it makes: a distance of 1 repeats one byte. */
#include "codec/lzf.h"

#include <string.h>

/* Both lie in the output, so that bytes made a moment ago are read again. */
static void copy_back(uint8_t *to, size_t distance, size_t len)
{
    const uint8_t *from = to - distance;
    if (distance >= len) {
        memcpy(to, from, len);
        return;
    }
    for (size_t i = 0; i < len; i++)
        to[i] = from[i];
}

int lzf_unpack(const uint8_t *from, size_t from_len, uint8_t *to, size_t to_len)
{
    size_t at = 0, made = 0;
    while (at < from_len) {
        size_t control = from[at++];
        size_t len = control >> 5;
        if (len == 0) {
            len = control + 1;
            if (len > from_len - at || len > to_len - made)
                return 0;
            memcpy(to + made, from + at, len);
            at += len;
            made += len;
            continue;
        }
        if (len == 7) {
            if (at == from_len)
                return 0;
            len += from[at++];
        }
        if (at == from_len)
            return 0;
        size_t distance = ((control & 31) << 8 | from[at++]) + 1;
        len += 2;
        if (distance > made || len > to_len - made)
            return 0;
        copy_back(to + made, distance, len);
        made += len;
    }
    return made == to_len;
}
