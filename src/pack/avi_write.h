/* avi_write.h -- frames that are JPEG files -> an AVI file in memory: Motion-JPEG in RIFF AVI 1.0,
 * with its index.
 * Owns: the index, until avi_writer_reset.   Threads: one at a time for one writer.
 * Errors: `failed` of the text tells when memory ran out.   Not here: the frames (jpeg_write.h). */
#ifndef PACK_AVI_WRITE_H
#define PACK_AVI_WRITE_H

#include <stdint.h>

#include "base/text.h"

#define AVI_LIMIT (UINT64_C(1) << 30) /* bytes of a file of version 1.0 */

struct avi_format {
    uint32_t width, height;
    uint32_t rate, scale; /* rate / scale frames a second */
};

/* Zeroed memory is a writer. */
struct avi_writer {
    struct text *to;
    struct avi_format format;
    struct text index; /* what will be idx1 */
    size_t first;      /* where the file begins */
    size_t frame;      /* where the open frame's chunk begins */
    uint32_t frames, largest;
};

/* The file is added to `to`, which nobody else may write to until the end. */
void avi_writer_begin(struct avi_writer *writer, const struct avi_format *format, struct text *to);
/* A frame is what the caller adds to the text between these two. */
void avi_writer_begin_frame(struct avi_writer *writer);
void avi_writer_end_frame(struct avi_writer *writer);
/* Adds the index and completes the headers. */
void avi_writer_end(struct avi_writer *writer);
/* Frees what it holds; it may begin another file afterwards. */
void avi_writer_reset(struct avi_writer *writer);

#endif
