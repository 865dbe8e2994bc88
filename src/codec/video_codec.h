/* video_codec.h -- videos -> RGB frames, by the plugin that has a decoder for them.
 * Owns: a decoder owns the video that it has open. The plugin is the process's: see the .c.
 * Threads: one a decoder; finding the plugin is done once, whoever comes first.
 * Errors: status, words; the caller adds object and sample. STK_UNSUPPORTED: there is no plugin;
 * words and remedy say what was tried and what to install.
 * Not here: which frames (pipeline/video_run.c), decoding (plugins/video). */
#ifndef CODEC_VIDEO_CODEC_H
#define CODEC_VIDEO_CODEC_H

#include "stoker/bytes.h"
#include "stoker/error.h"
#include "stoker/plugin.h"

/* Looks for the plugin if that was not done yet. name: of the decoder, for `stoker check`; it stays
 * valid. */
STK_CHECK stk_status video_codec_find(const char **name, struct stk_error *err);
/* Takes the decoder of the plugin at path for all videos of the process. STK_USAGE: another one is
 * in use already, or the plugin has none. */
STK_CHECK stk_status video_codec_use(const char *path, struct stk_error *err);

struct video_decoder;
STK_CHECK stk_status video_decoder_new(struct video_decoder **out, struct stk_error *err);
void video_decoder_free(struct video_decoder *decoder); /* NULL is fine */

/* bytes must stay until end, or until the next begin. */
STK_CHECK stk_status video_begin(struct video_decoder *decoder, const struct stk_bytes *bytes,
                                 struct stk_video_header *header, struct stk_error *err);
/* Frames first, first + stride ...: count of them as (count, height, width, 3). Past the last frame
 * the last one is repeated. May be called again for other frames. */
struct video_want {
    int64_t first, stride, count;
};
STK_CHECK stk_status video_read(struct video_decoder *decoder, const struct video_want *want,
                                uint8_t *to, struct stk_error *err);
void video_end(struct video_decoder *decoder); /* nothing open is fine */

#endif
