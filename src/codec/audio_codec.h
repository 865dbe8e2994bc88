/* audio_codec.h -- recordings (wav, flac, ogg, mp3 ... by libsndfile) -> float32.
 * Owns: a decoder owns its library's handle and buffers.   Threads: one a decoder.
 * Errors: status, words; the caller adds object and sample. STK_TRUNCATED: it ends before it
 * should; STK_CORRUPT: it is no recording, or a damaged one; STK_LIMIT: a cap of AUDIO_MAX_* is
 * passed. Not here: resampling (transform/audio_resample.h), what a container says
 * (audio_container.h). */
#ifndef CODEC_AUDIO_CODEC_H
#define CODEC_AUDIO_CODEC_H

#include "stoker/bytes.h"
#include "stoker/error.h"

#define AUDIO_MAX_CHANNELS 64
#define AUDIO_MAX_RATE 1000000
#define AUDIO_MAX_BYTES (UINT64_C(4) << 30) /* decoded at once: 18 hours of 16 kHz mono */

struct audio_header {
    int64_t frames;
    int32_t channels;
    double rate;
};

struct audio_decoder;
STK_CHECK stk_status audio_decoder_new(struct audio_decoder **out, struct stk_error *err);
void audio_decoder_free(struct audio_decoder *decoder); /* NULL is fine */
uint64_t audio_decoder_bytes(const struct audio_decoder *decoder);

/* bytes must stay until the last read is done. Nothing is decoded, but where no header says how
 * long the recording is: then it is decoded once, to count. */
STK_CHECK stk_status audio_begin(struct audio_decoder *decoder, const struct stk_bytes *bytes,
                                 struct audio_header *header, struct stk_error *err);
/* Frames [first, first + count) of all channels: to[c * count + i]. They must lie within the
 * header's frames. Only they are decoded, and what a library cannot seek over exactly: an mp3 from
 * its start on, the last pages of an ogg. */
STK_CHECK stk_status audio_read(struct audio_decoder *decoder, int64_t first, int64_t count,
                                float *to, struct stk_error *err);
/* Gives back what the library holds for this recording; audio_begin does so too. */
void audio_end(struct audio_decoder *decoder);

#endif
