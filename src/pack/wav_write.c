#include "pack/wav_write.h"

#include <string.h>

#include "pack/little_endian.h"

#define HEADER 44
#define PCM 1

void wav_write(const struct sound *sound, struct text *to)
{
    uint32_t frame = sound->channels * 2;
    uint32_t bytes = (uint32_t)sound->frames * frame;
    uint8_t header[HEADER];

    memcpy(header, "RIFF", 4);
    little_put(header + 4, HEADER - 8 + bytes, 4);
    memcpy(header + 8, "WAVEfmt ", 8);
    little_put(header + 16, 16, 4); /* bytes of what follows, up to "data" */
    little_put(header + 20, PCM, 2);
    little_put(header + 22, sound->channels, 2);
    little_put(header + 24, sound->rate, 4);
    little_put(header + 28, sound->rate * frame, 4);
    little_put(header + 32, frame, 2);
    little_put(header + 34, 16, 2);
    memcpy(header + 36, "data", 4);
    little_put(header + 40, bytes, 4);
    text_add(to, (const char *)header, HEADER);
    text_add(to, (const char *)sound->samples, bytes);
}
