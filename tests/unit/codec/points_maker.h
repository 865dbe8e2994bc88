/* points_maker.h -- clouds for tests: small buffers that grow, and packers of our own.
 * Owns: a blob owns its bytes.   Threads: one.   Errors: a failed assertion.   Not here: any test.
 */
#ifndef TESTS_POINTS_MAKER_H
#define TESTS_POINTS_MAKER_H

#include "stoker/bytes.h"
#include "base/testing.h"

struct blob {
    uint8_t *data;
    size_t len, cap;
};

TESTING void blob_add(struct blob *blob, const void *data, size_t len)
{
    if (blob->len + len > blob->cap) {
        blob->cap = 2 * (blob->len + len);
        blob->data = realloc(blob->data, blob->cap);
        assert_non_null(blob->data);
    }
    if (len)
        memcpy(blob->data + blob->len, data, len);
    blob->len += len;
}

TESTING void blob_text(struct blob *blob, const char *text)
{
    blob_add(blob, text, strlen(text));
}

TESTING void blob_free(struct blob *blob)
{
    free(blob->data);
    *blob = (struct blob){0};
}

/* Exactly as long as its bytes, so that a read past them is seen. */
TESTING struct stk_bytes blob_bytes(struct blob *blob)
{
    blob->data = realloc(blob->data, blob->len ? blob->len : 1);
    blob->cap = blob->len;
    return (struct stk_bytes){blob->data, blob->len};
}

/* A value of `size` bytes in the wanted order; this machine is little-endian or big-endian. */
TESTING void blob_value(struct blob *blob, const void *value, size_t size, int big)
{
    uint8_t bytes[8];
    const uint16_t probe = 1;
    int here_big = *(const uint8_t *)&probe == 0;
    for (size_t i = 0; i < size; i++)
        bytes[i] = ((const uint8_t *)value)[big == here_big ? i : size - 1 - i];
    blob_add(blob, bytes, size);
}

static inline void lzf_literals(struct blob *to, const uint8_t *from, size_t len)
{
    while (len > 0) {
        uint8_t run = (uint8_t)(len < 32 ? len : 32), control = (uint8_t)(run - 1);
        blob_add(to, &control, 1);
        blob_add(to, from, run);
        from += run;
        len -= run;
    }
}

static inline size_t lzf_match(const uint8_t *from, size_t at, size_t len, size_t *distance)
{
    size_t best = 0;
    for (size_t back = 1; back <= at && back <= 8192; back++) {
        size_t same = 0;
        while (at + same < len && same < 264 && from[at + same] == from[at + same - back])
            same++;
        if (same > best) {
            best = same;
            *distance = back;
        }
    }
    return best;
}

/* The longest match at every place, by trying all: slow, small and right. */
TESTING void lzf_pack(struct blob *to, const uint8_t *from, size_t len)
{
    size_t at = 0, plain = 0, distance = 0;
    while (at < len) {
        size_t same = lzf_match(from, at, len, &distance);
        if (same < 3) {
            at++;
            continue;
        }
        lzf_literals(to, from + plain, at - plain);
        size_t code = same - 2, back = distance - 1;
        uint8_t bytes[3] = {(uint8_t)((code < 7 ? code : 7) << 5 | back >> 8),
                            (uint8_t)(code < 7 ? back : code - 7), (uint8_t)back};
        blob_add(to, bytes, code < 7 ? 2 : 3);
        at += same;
        plain = at;
    }
    lzf_literals(to, from + plain, at - plain);
}

#endif
