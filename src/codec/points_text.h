/* points_text.h -- clouds as text: the lines of a header, words, numbers, a point a line.
 * Owns: nothing.   Threads: any.   Errors: status, words; or 0.   Not here: what headers say
 * (pcd_points.c, ply_points.c). */
#ifndef CODEC_POINTS_TEXT_H
#define CODEC_POINTS_TEXT_H

#include "base/scratch.h"
#include "codec/points_layout.h"

struct text_span {
    const char *at, *end;
};

/* The next line of a header, without its end, which must come within POINTS_HEADER_CAP bytes of
 * the file. *offset is moved behind it. */
STK_CHECK stk_status header_line(const struct stk_bytes *bytes, uint64_t *offset,
                                 struct text_span *line, struct stk_error *err);
/* The next word of a span, which is moved behind it. 0: there is none. */
int span_word(struct text_span *span, struct text_span *word);
int span_is(const struct text_span *word, const char *text);
int span_number(const struct text_span *word, uint64_t *out); /* decimal digits; 0: not that */

/* A word as a float32, rounded to nearest; whatever the locale. inf and nan are taken, in any case
 * and with a sign. 0: it is none. */
int span_float(const struct text_span *word, float *out);

/* Every line that is not blank is counted, up to `most` of them. */
uint64_t text_lines(const struct stk_bytes *bytes, uint64_t offset, uint64_t most);
/* points_codec.h's points_read for POINTS_TEXT. */
STK_CHECK stk_status text_read(const struct stk_bytes *bytes, const struct points_layout *layout,
                               const uint32_t *rows, uint64_t count, uint32_t columns, float *to,
                               struct scratch *scratch, struct stk_error *err);

#endif
