/* points_codec.h -- point clouds -> float32 rows: KITTI .bin, .npy, .pcd (ascii, binary,
 * binary_compressed), .ply (ascii, both byte orders), told apart by content.
 * Owns: nothing.   Threads: any; one scratch a thread.   Errors: status, words.
 * Not here: choosing points (transform/points_choose.h). */
#ifndef CODEC_POINTS_CODEC_H
#define CODEC_POINTS_CODEC_H

#include "stoker/bytes.h"
#include "stoker/error.h"
#include "base/scratch.h"

struct points_header {
    const char *format; /* "bin", "npy", "pcd", "ply" */
    int64_t count;      /* points; checked against the bytes that are there */
    int32_t columns;    /* x, y, z first where they are named; then the others in stored order */
};

/* bytes: the whole file. A count that the bytes do not bear out is STK_CORRUPT, of text too, whose
 * lines are counted. */
STK_CHECK stk_status points_probe(const struct stk_bytes *bytes, struct points_header *header,
                                  struct stk_error *err);
/* rows: which points, ascending without repeats, `count` of them; NULL: the first `count`.
 * to[i * columns + c]; columns: the first so many. float32 comes out bit by bit, NaN too; other
 * types are rounded to nearest. */
STK_CHECK stk_status points_read(const struct stk_bytes *bytes, const struct points_header *header,
                                 const uint32_t *rows, int64_t count, int32_t columns, float *to,
                                 struct scratch *scratch, struct stk_error *err);

#endif
