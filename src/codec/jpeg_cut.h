/* jpeg_cut.h -- cuts off what lies above some row of a JPEG, so that a decoder begins there: a
 * JPEG of less height, in pieces.
 * Owns: the pieces that are not the caller's bytes.   Threads: one.   Errors: 0 where nothing is
 * cut off: it does not pay, the JPEG is of another kind, or something in it is doubtful. Then it is
 * to be read as it is, and whoever does that finds the words.
 * Not here: decoding (jpeg_image.c). */
#ifndef CODEC_JPEG_CUT_H
#define CODEC_JPEG_CUT_H

#include "codec/image_format.h"
#include "codec/jpeg_skim.h"

#define JPEG_PIECES 5

struct jpeg_cut;
STK_CHECK stk_status jpeg_cut_new(struct jpeg_cut **out, struct stk_error *err);
void jpeg_cut_free(struct jpeg_cut *cut); /* NULL is fine */
uint64_t jpeg_cut_bytes(const struct jpeg_cut *cut);

/* Where the caller describes the scan, before each call of jpeg_cut_above. */
struct jpeg_scan *jpeg_cut_scan(struct jpeg_cut *cut);

/* Cuts off rows of MCUs, each of `lines` lines of the image, from the task's JPEG. How many, may be
 * fewer than were asked for. Below them the JPEG of the pieces decodes to the same pixels, but not
 * in its first row: that is no picture. */
STK_CHECK uint32_t jpeg_cut_above(struct jpeg_cut *cut, const struct image_task *task,
                                  uint32_t rows, uint32_t lines);
/* After a cut: what is to be read, one piece after the other. They live until the next cut. */
const struct stk_bytes *jpeg_cut_pieces(const struct jpeg_cut *cut);

#endif
