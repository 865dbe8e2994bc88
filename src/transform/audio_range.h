/* audio_range.h -- which frames of a recording DecodeAudio takes.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: decoding them (pipeline/audio_run.c).
 */
#ifndef TRANSFORM_AUDIO_RANGE_H
#define TRANSFORM_AUDIO_RANGE_H

#include "transform/decode_transform.h"

/* All in frames of the result: after resampling. */
struct audio_range {
    int64_t first, count; /* what is taken of the recording */
    int64_t length;       /* of the result: behind count come zeros */
};

/* stored: the flow of the whole recording, its rate and lengths known. A result may be shorter than
 * was asked for where pad is False: DecodeAudio's shape refuses it. */
void audio_range_find(const struct decode_audio_args *args,
                      const struct decode_audio_params *params, const struct stk_flow *stored,
                      struct audio_range *range);

#endif
