/* index_heads.h -- what the first values of an index's fields are, kept at the end of its file.
 * Owns: nothing.   Threads: any; two processes may write at once, the last rename wins.
 * Errors: status; heads that are damaged count as none.   Not here: looking at values
 * (dataset/field_heads.h). */
#ifndef INDEX_INDEX_HEADS_H
#define INDEX_INDEX_HEADS_H

#include "index/index.h"
#include "index/index_file.h"

/* Not 0: what the header says of them makes sense. */
int index_heads_fit(const struct index_header *header);

/* The head of a field; NULL: there is none. Lives as long as the index. */
const struct index_file_head *index_head(const struct index *index, uint32_t field);
uint64_t index_head_count(const struct index *index);

/* Writes the index's file anew, with these heads and no others. The open index stays as it is. */
STK_CHECK stk_status index_heads_write(const struct index *index,
                                       const struct index_file_head *heads, uint64_t count,
                                       struct stk_error *err);

#endif
