/* wav_write.h -- sound -> a WAV file in memory: PCM of 16 bits.
 * Owns: nothing.   Threads: any.   Errors: `failed` of the text tells when memory ran out.
 * Not here: reading (codec/wav_pcm.h), other formats (sndfile_write.h). */
#ifndef PACK_WAV_WRITE_H
#define PACK_WAV_WRITE_H

#include <stdint.h>

#include "base/text.h"

struct sound {
    const int16_t *samples; /* channels interleaved */
    uint64_t frames;        /* frames * channels is below 2^30 */
    uint32_t channels, rate;
};

void wav_write(const struct sound *sound, struct text *to);

#endif
