/* show.h -- contact sheets: samples of a dataset drawn side by side, as stored and as transforms
 * leave them, so that a person sees what a model will see.
 * Owns: a sheet owns its pixels and its file's bytes.   Threads: one at a time for one sheet.
 * Errors: status, words in nullable *err. A sample that cannot be read or decoded is none: its cell
 * holds the words.   Not here: batches (loader.h), one value by itself (pipeline.h). */
#ifndef STOKER_SHOW_H
#define STOKER_SHOW_H

#include <stdint.h>

#include "stoker/bytes.h"
#include "stoker/dataset.h"

struct stk_show_options {
    const char *field;         /* NULL: the first that holds media, else the first tensor */
    const char *chain;         /* NULL: samples as they are stored, and nothing beside them */
    const char *title;         /* NULL: none */
    const uint64_t *positions; /* samples of the dataset, in the order of the sheet */
    uint32_t count;
    uint32_t columns;     /* samples side by side; 0: 4 */
    uint32_t cell;        /* pixels of a cell's side, 32 to 2048; 0: 224 */
    uint64_t seed, epoch; /* as of a loader: the same random choices */
};

/* In pixels of the sheet. */
struct stk_sheet_box {
    uint32_t x, y, width, height;
};
struct stk_sheet_cell {
    uint64_t position;
    struct stk_sheet_box before, after; /* after: of no size when there is no chain */
    char words[320];                    /* what was wrong with it; "" when nothing */
};
struct stk_sheet {
    uint32_t width, height;
    const uint8_t *pixels; /* RGB, rows without gaps */
    const char *field;     /* which is shown; lives as long as the dataset */
    const struct stk_sheet_cell *cells;
    uint32_t count, bad; /* cells, and those with words */
};

/* A chain that does not fit the field is STK_USAGE. */
STK_API STK_CHECK stk_status stk_sheet_draw(struct stk_context *context,
                                            struct stk_dataset *dataset, struct stk_sheet **out,
                                            const struct stk_show_options *options,
                                            struct stk_error *err);
/* The sheet as a PNG file; the bytes are the sheet's. */
STK_API STK_CHECK stk_status stk_sheet_png(struct stk_sheet *sheet, struct stk_bytes *png,
                                           struct stk_error *err);
STK_API void stk_sheet_free(struct stk_sheet *sheet); /* NULL is fine */

#endif
