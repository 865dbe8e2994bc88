/* index_writer.h -- writes an index file section by section, with checksums, and puts it in its
 * place at once. Owns: the temporary file, removed by _close unless it was committed.   Threads:
 * one at a time. Errors: status, words.   Not here: what the sections hold (index_builder.c). */
#ifndef INDEX_INDEX_WRITER_H
#define INDEX_INDEX_WRITER_H

#include "index/index_file.h"
#include "index/spool.h"

struct index_writer {
    const char *path, *folder; /* the caller's */
    char *temporary;           /* its name while it is not yet in its place */
    int fd;
    uint8_t *block;
    size_t used;     /* of block */
    uint64_t offset; /* in the file, of the block's first byte */
    struct spool checks;
    struct index_header header; /* sections are filled in; the rest is the caller's */
};

/* Removes temporary files of the same index that a dead process left behind. */
void index_writer_sweep(const char *path, const char *folder);

STK_CHECK stk_status index_writer_open(struct index_writer *writer, const char *path,
                                       const char *folder, struct stk_error *err);
void index_writer_close(struct index_writer *writer);

/* All sections, in the order of their numbers. */
void index_writer_begin(struct index_writer *writer, enum index_section_number number);
STK_CHECK stk_status index_writer_add(struct index_writer *writer, const void *data, size_t len,
                                      struct stk_error *err);
STK_CHECK stk_status index_writer_end(struct index_writer *writer, enum index_section_number number,
                                      struct stk_error *err);
/* All of a spool as one section. */
STK_CHECK stk_status index_writer_spool(struct index_writer *writer,
                                        enum index_section_number number, const struct spool *spool,
                                        struct stk_error *err);

/* Writes checksums and header, syncs, renames, syncs the folder. */
STK_CHECK stk_status index_writer_commit(struct index_writer *writer, struct stk_error *err);

#endif
