/* wav_pcm.h -- plain wav files (integers or floats, not compressed) read without a library: most
 * training sets of sound are such, and opening a library's handle costs more than their samples.
 * Owns: nothing; it points into the bytes.   Threads: any.   Errors: 0: not such a file; libsndfile
 * will read it, or say what is wrong.   Not here: other kinds (sndfile_audio.c). */
#ifndef CODEC_WAV_PCM_H
#define CODEC_WAV_PCM_H

#include "codec/audio_codec.h"

enum wav_type { WAV_U8, WAV_I16, WAV_I24, WAV_I32, WAV_F32, WAV_F64 };

struct wav_pcm {
    enum wav_type type;
    struct audio_header header;
    const uint8_t *data;
};

int wav_pcm_find(const struct stk_bytes *bytes, struct wav_pcm *wav);
/* As audio_read; the same values, bit for bit, as libsndfile's. */
void wav_pcm_read(const struct wav_pcm *wav, int64_t first, int64_t count, float *to);

#endif
