/* sndfile_write.h -- sound -> a FLAC or Ogg Vorbis file in memory. The same sound gives the same
 * bytes (of one version of the libraries).
 * Owns: nothing.   Threads: any.   Errors: status, words in nullable *err; `failed` of the text
 * tells when memory ran out.   Not here: WAV (wav_write.h), decoding (codec/sndfile_audio.c). */
#ifndef PACK_SNDFILE_WRITE_H
#define PACK_SNDFILE_WRITE_H

#include "stoker/error.h"

#include "pack/wav_write.h"

enum sndfile_kind { SNDFILE_FLAC, SNDFILE_OGG };

STK_CHECK stk_status sndfile_write(const struct sound *sound, enum sndfile_kind kind,
                                   struct text *to, struct stk_error *err);
/* STK_UNSUPPORTED where this build cannot write these files. */
STK_CHECK stk_status sndfile_write_check(struct stk_error *err);

#endif
