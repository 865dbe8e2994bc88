/* series_files.h -- the small files of a series: metadata.json, scaler.json, hashes, statics; and
 * what the series is known by.
 * Owns: nothing.   Threads: one.   Errors: STK_IO, STK_MEMORY, STK_TRUNCATED.   Not here: the array
 * (series_finish.h), the folder (series_folder.h). */
#ifndef PACK_SERIES_FILES_H
#define PACK_SERIES_FILES_H

#include "format/series_meta.h"
#include "pack/series_folder.h"

struct series_hashes {
    uint64_t *blocks; /* the heap's */
    uint64_t count;
};

/* How many blocks an array of `rows` rows has. */
uint64_t series_block_count(const struct series_meta *meta, uint64_t rows);
uint64_t series_row_bytes(const struct series_meta *meta);

/* Of columns, type, entities and the blocks' hashes: the same data has the same. */
void series_fingerprint(struct series_meta *meta, const struct series_hashes *hashes);

/* Into the hidden folder: metadata.json, scaler.json when there is a scaler, the hashes when
 * meta->has_hashes, and statics: [entity_count][static_count]. */
STK_CHECK stk_status series_files_write(const struct series_folder *folder,
                                        const struct series_meta *meta,
                                        const struct series_hashes *hashes, const float *statics,
                                        struct stk_error *err);
/* What metadata.json and scaler.json of a series hold, for who replaces them alone. */
STK_CHECK stk_status series_files_texts(const struct series_meta *meta, struct text *metadata,
                                        struct text *scaler, struct stk_error *err);

/* A whole file of the series that has `size` bytes, or more. */
STK_CHECK stk_status series_files_read(const struct series_folder *folder, const char *name,
                                       void *to, uint64_t size, struct stk_error *err);

#endif
