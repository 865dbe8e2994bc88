/* npy_array.h -- an array in .npy form as rows of a grid: a file, or a member of an .npz.
 * Owns: nothing.   Threads: any.   Errors: status, words; the caller adds the object.
 * Not here: parsing of the header (base/npy_header.h). */
#ifndef FORMAT_NPY_ARRAY_H
#define FORMAT_NPY_ARRAY_H

#include "base/npy_header.h"
#include "filter/filter.h"
#include "format/format.h"

/* Where the array's bytes lie, header included. */
struct npy_place {
    const char *field;
    uint32_t object;
    uint64_t offset, length;
    uint32_t chunk; /* INDEX_PART_CHUNK | number when it lies in a decoded chunk; else 0 */
};

/* Adds the array's rows to the builder. Fortran order becomes a chunk that is transposed whole. */
STK_CHECK stk_status npy_array_add(const struct format_input *input, struct index_builder *builder,
                                   const struct npy_place *place, const struct npy_header *header,
                                   struct stk_error *err);

#endif
