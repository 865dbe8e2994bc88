/* index_part.h -- a part from the inside, for the builder that takes it in.
 * Owns, Threads, Errors: see index_builder.h.   Not here: the contract (index_builder.h). */
#ifndef INDEX_INDEX_PART_H
#define INDEX_INDEX_PART_H

#include "index/index_builder.h"

struct part_field {
    char *name;
    uint64_t last; /* the number + 1 of the sample that had it last: finds doubles */
};

struct part_entry {
    uint64_t offset, length;
    uint32_t object, field;
};

struct index_part {
    struct part_field *fields;
    struct chunk *chunks;
    struct part_entry *entries; /* sample after sample */
    uint64_t *entry_ends;       /* a sample's entries end here; those of the last one are open */
    uint64_t *key_ends;
    char *keys;
    uint64_t field_count, field_cap, chunk_count, chunk_cap, entry_count, entry_cap;
    uint64_t sample_count, entry_end_cap, key_end_cap, key_count, key_cap;
    uint32_t guess; /* the field that most likely comes next */
};

/* Forgets samples, chunks and fields; keeps the memory. */
void index_part_reset(struct index_part *part);

/* Room for one more item: doubles *data when count == *cap. */
STK_CHECK stk_status index_part_room(void **data, uint64_t *cap, uint64_t count, uint64_t more,
                                     uint64_t item, struct stk_error *err);

#endif
