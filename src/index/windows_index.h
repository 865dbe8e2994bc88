/* windows_index.h -- an index that is computed: sliding windows over the rows of entities.
 * Owns: copies of all it is given.   Threads, Errors: see index.h.   Not here: what the rows hold
 * (format/series_meta.h), copying (transform/window_gather.h).
 *
 * Nothing is kept per window: a sample's entity is found by a table of sums over entities, and its
 * row by arithmetic. */
#ifndef INDEX_WINDOWS_INDEX_H
#define INDEX_WINDOWS_INDEX_H

#include "index/index.h"

/* Rows of one entity that may be sampled: those of the chosen split. */
struct windows_entity {
    const char *name;
    uint64_t number;     /* in the series */
    uint64_t origin;     /* the entity's first row in the array, of all splits */
    uint64_t start, end; /* rows of the array */
};

/* What a field takes from a sample. t is the window's last row. */
enum windows_part {
    WINDOWS_PAST,   /* rows t - window + 1 .. t, those that are there */
    WINDOWS_FUTURE, /* rows t + gap + 1 .. t + gap + horizon */
    WINDOWS_LAST,   /* row t */
    WINDOWS_TABLE,  /* row `number` of a table with a row an entity */
    WINDOWS_FILE,   /* as PAST, of object `number`: each entity has a file of its own */
    WINDOWS_ENTITY, /* the entity's number: EXTENT_VALUE */
    WINDOWS_START,  /* t - window + 1 - origin, an int64: EXTENT_VALUE */
    WINDOWS_MASK    /* how many rows of PAST are there: EXTENT_VALUE */
};

struct windows_field {
    const char *name;
    enum windows_part part;
    uint32_t object;         /* the array that the rows lie in */
    uint64_t row_bytes;      /* of a row of that array */
    struct stk_tensor shape; /* of one sample in a batch: becomes index_field.row */
};

struct windows_spec {
    const char *format;      /* what index_format gives; NULL: "series" */
    const char *root, *path; /* of the objects; of the metadata, for messages */
    const struct index_object *objects;
    uint32_t object_count;
    const struct windows_entity *entities; /* in the order of the samples */
    uint64_t entity_count;
    uint64_t window, horizon, stride, gap, min_history; /* min_history < window: padded */
    const struct windows_field *fields;
    uint32_t field_count;
    uint8_t fingerprint[16]; /* of the data; the index's own is of this and of the options */
};

/* STK_USAGE: window or stride 0, a window longer than any entity (with the longest one's name and
 * rows). Its sample count may be up to 2^63. Every extent was checked to lie in its object when
 * this returns. index_chunk_count gives 0. */
STK_CHECK stk_status windows_index_new(struct index **out, const struct windows_spec *spec,
                                       struct stk_error *err);

/* The samples of one entity: consecutive, `stride` rows apart. */
struct windows_run {
    uint64_t first, count; /* samples */
    uint64_t last_row;     /* t of the first sample, a row of the array */
    uint64_t entity;       /* number in the series */
};
/* Entities that have samples, in order; NULL when the index is of another kind. */
const struct windows_run *windows_index_runs(const struct index *index, uint64_t *count);
uint64_t windows_index_stride(const struct index *index);
uint64_t windows_index_short(const struct index *index); /* entities without a sample */
/* The number of the run that holds a sample. O(1) on average. */
uint64_t windows_index_run(const struct index *index, uint64_t sample);
/* The same of n samples, each below index_samples, in little more time than it takes to write the
 * answers down. */
void windows_index_find(const struct index *index, const uint64_t *samples, uint32_t n,
                        uint32_t *runs);

#endif
