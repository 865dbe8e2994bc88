/* Digests as text: the part of digest.h that needs no OpenSSL. */
#include "net/digest.h"

void digest_hex(const uint8_t *bytes, size_t length, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < length; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * length] = '\0';
}

void digest_base64(struct text *to, const void *data, size_t length)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *from = data;
    for (size_t i = 0; i < length; i += 3) {
        size_t left = length - i;
        uint32_t bits = (uint32_t)from[i] << 16;
        if (left > 1)
            bits |= (uint32_t)from[i + 1] << 8;
        if (left > 2)
            bits |= from[i + 2];
        char four[4] = {letters[bits >> 18], letters[bits >> 12 & 63],
                        left > 1 ? letters[bits >> 6 & 63] : '=',
                        left > 2 ? letters[bits & 63] : '='};
        text_add(to, four, sizeof(four));
    }
    text_add(to, "", 0); /* so that nothing is "" */
}

static int letter_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int digest_base64_decode(const char *from, size_t length, uint8_t *to, size_t cap, size_t *got)
{
    *got = 0;
    if (length % 4)
        return -1;
    for (size_t i = 0; i < length; i += 4) {
        size_t bytes = 3;
        if (i + 4 == length && from[i + 3] == '=')
            bytes = from[i + 2] == '=' ? 1 : 2;
        uint32_t bits = 0;
        for (size_t k = 0; k < 4; k++) {
            int value = k <= bytes ? letter_value(from[i + k]) : 0;
            if (value < 0)
                return -1;
            bits = bits << 6 | (uint32_t)value;
        }
        if (cap - *got < bytes)
            return -1;
        for (size_t k = 0; k < bytes; k++)
            to[(*got)++] = (uint8_t)(bits >> (16 - 8 * k));
    }
    return 0;
}
