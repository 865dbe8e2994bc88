/* index_builder.h -- collects objects, samples and extents, and writes the index file.
 * Owns: temporary files beside the target, removed by _free.   Threads: one at a time for one
 * builder; several shards are scanned by several threads, each into a part of its own, joined in
 * order. Errors: status, words in nullable *err.   Memory: a few buffers, however many samples. Not
 * here: parsing of any format. */
#ifndef INDEX_INDEX_BUILDER_H
#define INDEX_INDEX_BUILDER_H

#include "index/index.h"

struct index_builder;
struct index_part; /* what one object (a shard) adds: samples in order */

/* path: where the index will be; the folder must be writable. */
STK_CHECK stk_status index_builder_new(struct index_builder **out, const char *path,
                                       const char *format, const char *root, struct stk_error *err);
void index_builder_free(struct index_builder *builder);

STK_CHECK stk_status index_builder_object(struct index_builder *builder, const char *name,
                                          uint64_t size, uint64_t version, uint32_t *number,
                                          struct stk_error *err);
STK_CHECK stk_status index_builder_class(struct index_builder *builder, const char *name,
                                         uint32_t *number, struct stk_error *err);
void index_builder_skipped(struct index_builder *builder, uint64_t count);
/* Keys are not stored (a folder of files): a sample's key is the name of the object it lies in, up
 * to the first dot of the base name (sample_name.h). The keys given to parts must be just that. */
void index_builder_keys_from_names(struct index_builder *builder);

/* --- table: samples one by one, through parts ------------------------------------------------ */
STK_CHECK stk_status index_part_new(struct index_part **out, struct stk_error *err);
void index_part_free(struct index_part *part);
/* A chunk of this part, numbered from 0; extents name it by INDEX_PART_CHUNK | *number, before it
 * is added too. chunk->first is a sample of the part. */
#define INDEX_PART_CHUNK 0x80000000u
STK_CHECK stk_status index_part_chunk(struct index_part *part, const struct chunk *chunk,
                                      uint32_t *number, struct stk_error *err);
STK_CHECK stk_status index_part_sample(struct index_part *part, const char *key, size_t key_len,
                                       struct stk_error *err); /* begins the next sample */
/* A field of the sample begun last. STK_CORRUPT when it has that field already. */
STK_CHECK stk_status index_part_extent(struct index_part *part, const char *field, size_t field_len,
                                       const struct extent *extent, struct stk_error *err);
uint64_t index_part_samples(const struct index_part *part);
/* Appends the part's samples; its field names are matched by name, its chunks renumbered. The part
 * is empty after that and may be filled again. More than 1,024 distinct fields: STK_LIMIT. */
STK_CHECK stk_status index_builder_join(struct index_builder *builder, struct index_part *part,
                                        struct stk_error *err);

/* --- grid: rows of arrays -------------------------------------------------------------------- */
struct index_array {
    const char *field;
    uint32_t object; /* stored; or INDEX_PART_CHUNK | number from index_builder_chunk */
    uint64_t offset; /* of row 0 in the object or the decoded chunk */
    uint64_t rows;
    struct stk_tensor row;
    int byteswap;
};
STK_CHECK stk_status index_builder_chunk(struct index_builder *builder, const struct chunk *chunk,
                                         uint32_t *number, struct stk_error *err);
/* Arrays of one field follow each other as they are added (several raw files are one long array);
 * all fields must have the same number of rows in the end, and equal row shapes within a field. */
STK_CHECK stk_status index_builder_array(struct index_builder *builder,
                                         const struct index_array *array, struct stk_error *err);

/* Not 0 when a call failed because the folder took no temporary file: another folder may. */
int index_builder_out_of_room(struct index_builder *builder);

/* Writes sections with block checksums to a temporary name, syncs and renames: whoever opens the
 * path sees the old index or the new one. */
STK_CHECK stk_status index_builder_finish(struct index_builder *builder, struct stk_error *err);

#endif
