/* little_endian.h -- numbers as RIFF files store them: the lowest byte first.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: samples and pixels, which lie in
 * memory as files want them: this library runs on little-endian machines. */
#ifndef PACK_LITTLE_ENDIAN_H
#define PACK_LITTLE_ENDIAN_H

#include <stdint.h>

static inline void little_put(uint8_t *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

#endif
