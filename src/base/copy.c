#include "base/copy.h"

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)

#include <emmintrin.h>

#define LINE 64

static inline void copy_line(uint8_t *to, const uint8_t *from)
{
    __m128i a = _mm_loadu_si128((const __m128i *)from);
    __m128i b = _mm_loadu_si128((const __m128i *)(from + 16));
    __m128i c = _mm_loadu_si128((const __m128i *)(from + 32));
    __m128i d = _mm_loadu_si128((const __m128i *)(from + 48));
    _mm_stream_si128((__m128i *)to, a);
    _mm_stream_si128((__m128i *)(to + 16), b);
    _mm_stream_si128((__m128i *)(to + 32), c);
    _mm_stream_si128((__m128i *)(to + 48), d);
}

/* Whole lines of `to` are streamed; the ragged ends are copied as usual. */
void copy_past_caches(void *to, const void *from, size_t len)
{
    uint8_t *out = to;
    const uint8_t *in = from;
    size_t head = -(uintptr_t)out & (LINE - 1);
    head = head < len ? head : len;
    memcpy(out, in, head);
    size_t at = head;
    for (; at + LINE <= len; at += LINE)
        copy_line(out + at, in + at);
    memcpy(out + at, in + at, len - at);
    _mm_sfence(); /* streamed bytes are not ordered by a mutex or an atomic alone */
}

#else

void copy_past_caches(void *to, const void *from, size_t len)
{
    memcpy(to, from, len);
}

#endif
