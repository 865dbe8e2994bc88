/* dataset_view.h -- what the loader sees of a dataset: its index, its store, its fields made ready.
 * Owns: nothing of its own; see stoker/dataset.h.   Threads: immutable once open.   Errors: status,
 * words in nullable *err.   Not here: opening (stoker/dataset.h), order (loader/plan.h). */
#ifndef DATASET_DATASET_VIEW_H
#define DATASET_DATASET_VIEW_H

#include "stoker/dataset.h"
#include "codec/codec.h"
#include "index/index.h"
#include "store/store.h"
#include "transform/window_gather.h"

#define DATASET_MAX_ALTERNATIVES 8
#define DATASET_MAX_FIELDS 256
#define DATASET_MAX_INT_LENGTH 32 /* an ASCII number longer than this is corrupt, unread */

struct dataset_field {
    struct stk_field field;        /* what the user sees */
    const struct codec_ops *codec; /* rows of arrays: "raw", or "raw_swapped" when big-endian */
    uint32_t alternatives[DATASET_MAX_ALTERNATIVES]; /* index fields, the first present counts */
    uint32_t alternative_count;
    uint64_t min_length, max_length; /* over the alternatives */
    /* TENSOR: what the first sample that has the field promises. payload == stk_tensor_size(shape);
     * a value of head + payload bytes whose head equals head_bytes needs no parsing, and when plain
     * no finish either. Media: shape and payload of that sample decoded; no head, not plain. */
    int plain;
    uint64_t payload;
    uint32_t head;
    uint8_t head_bytes[256]; /* the first min(head, 256) */
    uint64_t probed;         /* the sample it was probed on; STK_NOWHERE: none (see below) */
    stk_status problem;      /* not probed: what was wrong with the first value, and its words */
    char problem_words[200], problem_remedy[200];
    /* Rows of a series that are not taken as they lie: some columns of them, scaled, or padded in
     * front. A value of `length` stored bytes (a multiple of the gather's row) fills the last rows
     * of the payload; what is before them is 0. NULL: as they lie. */
    const struct window_gather *gather;
    int is_mask; /* the extent's value is how many of the last bytes of the payload are 1 */
};

/* A TENSOR field that no sample has, or whose first values are all damaged, is not probed: its
 * shape is uint8 (0), payload and head are 0, and each value says itself what is wrong with it.
 * So is a field of media whose library is missing. */

/* The stored array of times, one int64 a row; UINT32_MAX when the dataset has none. */
uint32_t dataset_time_object(const struct stk_dataset *dataset);

const struct index *dataset_index(const struct stk_dataset *dataset);
struct store *dataset_store(const struct stk_dataset *dataset);
const struct dataset_field *dataset_field(const struct stk_dataset *dataset, uint32_t field);

/* positions of the (sub)set -> sample numbers of the index, in place. O(1) each. */
void dataset_samples(const struct stk_dataset *dataset, uint64_t *positions, uint32_t n);
/* Not 0 when positions are consecutive samples (no subset, or a plain range of them). */
int dataset_is_whole(const struct stk_dataset *dataset);
/* Not 0: the objects lie on the network. */
int dataset_is_remote(const struct stk_dataset *dataset);

/* out[i * field_count + f], fields as the dataset has them; alternatives chosen. scratch: room for
 * n * index_field_count extents. A required field that is missing stays EXTENT_NONE: the caller
 * says so. */
STK_CHECK stk_status dataset_resolve(const struct stk_dataset *dataset, const uint64_t *samples,
                                     uint32_t n, struct extent *scratch, struct extent *out,
                                     struct stk_error *err);

/* As stk_reader_read, by the sample's number in the index instead of its position in the (sub)set.
 */
STK_CHECK stk_status reader_read_sample(struct stk_reader *reader, uint64_t sample,
                                        struct stk_value *values, struct stk_error *err);

/* The stored bytes of one field, by the sample's number in the index. They live until the reader's
 * next call. */
STK_CHECK stk_status reader_stored(struct stk_reader *reader, uint64_t sample, uint32_t field,
                                   struct stk_bytes *bytes, struct stk_error *err);

/* From now on values of that field are not decoded: value->bytes is what is stored, kind and
 * present are as ever. */
void reader_leave_encoded(struct stk_reader *reader, uint32_t field);

/* Fills object, offset, sample, key and field of an error from where a value lies. */
void dataset_explain(const struct stk_dataset *dataset, uint64_t sample, uint32_t field,
                     const struct extent *extent, struct stk_error *err);

#endif
