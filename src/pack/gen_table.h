/* gen_table.h -- metadata.parquet of generated tensors: one row a sample.
 * Owns: nothing after return.   Threads: one.   Errors: status, words in nullable *err.
 * Not here: Parquet itself (the context's write_table hook). */
#ifndef PACK_GEN_TABLE_H
#define PACK_GEN_TABLE_H

#include "stoker/pack.h"

#include "pack/numbered.h"
#include "pack/pattern.h"

#define GEN_TABLE_NAME "metadata.parquet"

struct gen_table {
    const struct numbered *shards, *keys; /* keys: the suffix is left out */
    const struct pattern *pattern;
};

/* Writes folder/metadata.parquet: key, shard, label, shape, dtype, bytes (of the tensor). */
STK_CHECK stk_status gen_table_write(struct stk_context *context,
                                     const struct stk_gen_tensors_options *options,
                                     const struct gen_table *table, const char *folder,
                                     struct stk_error *err);

/* The shard that a sample lies in (gen_tensors.c). */
uint64_t gen_table_shard(const struct stk_gen_tensors_options *options, uint64_t sample);

#endif
