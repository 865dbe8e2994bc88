/* audio_container.h -- what the container of a recording says: which kind it is, and whether it was
 * cut. libsndfile reads what is there of a cut file without a word; a training set should not.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: decoding (audio_codec.h). */
#ifndef CODEC_AUDIO_CONTAINER_H
#define CODEC_AUDIO_CONTAINER_H

#include "stoker/bytes.h"

enum audio_kind {
    AUDIO_NONE, /* no recording that is known */
    AUDIO_WAV,  /* RIFF, RIFX, RF64 */
    AUDIO_AIFF,
    AUDIO_AU,
    AUDIO_FLAC,
    AUDIO_OGG,
    AUDIO_MPEG
};

/* By content alone. */
enum audio_kind audio_kind(const struct stk_bytes *bytes);
/* What bytes of AUDIO_NONE look like: "an HTML page", "nothing: 0 bytes" ...; never NULL. */
const char *audio_guess(const struct stk_bytes *bytes);

/* Not 0: the last part (the data chunk, an ogg page, an mp3 frame) says it has `promised` bytes, of
 * which only `found` are there. */
struct audio_cut {
    uint64_t promised, found;
    const char *part;
    int64_t frames; /* of audio, in front of the part; -1: not known */
};
int audio_is_cut(const struct stk_bytes *bytes, enum audio_kind kind, struct audio_cut *cut);

/* Not 0: a page of an ogg's headers is not the one that its checksum was made of. libsndfile leaves
 * memory behind when it finds out by itself. */
int audio_head_is_damaged(const struct stk_bytes *bytes, enum audio_kind kind);

/* The share of a recording, from its start, in which libsndfile's seek is exact to the frame. An
 * mp3: 0 (a variable bit rate is guessed at, and a frame may need bytes of many in front of it). An
 * ogg: what comes before its last two pages. Others: 1. */
double audio_exact_share(const struct stk_bytes *bytes, enum audio_kind kind);

#endif
