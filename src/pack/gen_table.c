#include "pack/gen_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/context.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"

#define NAME_CAP 40
#define SHAPE_CAP (21 * STK_MAX_RANK)

enum { COLUMN_KEY, COLUMN_SHARD, COLUMN_LABEL, COLUMN_SHAPE, COLUMN_DTYPE, COLUMN_BYTES, COLUMNS };

struct columns {
    char (*shard_names)[NAME_CAP]; /* one a shard */
    char (*key_names)[NAME_CAP];   /* one a sample */
    char shape[SHAPE_CAP];
    const char **keys, **shards, **shapes, **dtypes;
    int64_t *labels, *bytes;
};

static void columns_free(struct columns *columns)
{
    memory_free(columns->shard_names);
    memory_free(columns->key_names);
    memory_free(columns->keys);
    memory_free(columns->shards);
    memory_free(columns->shapes);
    memory_free(columns->dtypes);
    memory_free(columns->labels);
    memory_free(columns->bytes);
}

static int columns_alloc(struct columns *columns, uint64_t samples, uint32_t shards)
{
    columns->shard_names = memory_zero(shards, NAME_CAP);
    columns->key_names = memory_zero(samples, NAME_CAP);
    columns->keys = memory_zero(samples, sizeof(char *));
    columns->shards = memory_zero(samples, sizeof(char *));
    columns->shapes = memory_zero(samples, sizeof(char *));
    columns->dtypes = memory_zero(samples, sizeof(char *));
    columns->labels = memory_zero(samples, sizeof(int64_t));
    columns->bytes = memory_zero(samples, sizeof(int64_t));
    return columns->shard_names && columns->key_names && columns->keys && columns->shards &&
           columns->shapes && columns->dtypes && columns->labels && columns->bytes;
}

static void columns_fill(struct columns *columns, const struct stk_gen_tensors_options *options,
                         const struct gen_table *table)
{
    const struct numbered keys = {"", "", table->keys->digits};
    size_t len = 0;

    for (int32_t i = 0; i < options->shape.rank; i++)
        len += (size_t)snprintf(columns->shape + len, SHAPE_CAP - len, "%s%" PRId64, i ? "," : "",
                                options->shape.shape[i]);
    for (uint64_t i = 0; i < options->shards; i++)
        numbered_name(table->shards, i, columns->shard_names[i], NAME_CAP);
    for (uint64_t i = 0; i < options->samples; i++) {
        numbered_name(&keys, i, columns->key_names[i], NAME_CAP);
        columns->keys[i] = columns->key_names[i];
        columns->shards[i] = columns->shard_names[gen_table_shard(options, i)];
        columns->labels[i] = pattern_label(table->pattern, i);
        columns->shapes[i] = columns->shape;
        columns->dtypes[i] = stk_dtype_name(options->shape.dtype);
        columns->bytes[i] = (int64_t)stk_tensor_size(&options->shape);
    }
}

stk_status gen_table_write(struct stk_context *context,
                           const struct stk_gen_tensors_options *options,
                           const struct gen_table *table, const char *folder, struct stk_error *err)
{
    struct columns columns = {0};
    struct text path = {0};
    stk_status status;

    text_format(&path, "%s/" GEN_TABLE_NAME, folder);
    if (path.failed || !columns_alloc(&columns, options->samples, options->shards)) {
        status = fail_memory(err, options->samples * NAME_CAP);
        goto done;
    }
    columns_fill(&columns, options, table);
    const struct stk_column rows[COLUMNS] = {
        [COLUMN_KEY] = {"key", 1, columns.keys},
        [COLUMN_SHARD] = {"shard", 1, columns.shards},
        [COLUMN_LABEL] = {"label", 0, columns.labels},
        [COLUMN_SHAPE] = {"shape", 1, columns.shapes},
        [COLUMN_DTYPE] = {"dtype", 1, columns.dtypes},
        [COLUMN_BYTES] = {"bytes", 0, columns.bytes},
    };
    status = context->hooks.write_table(context->hooks.user, path.data, rows, COLUMNS,
                                        options->samples, err);
done:
    columns_free(&columns);
    text_free(&path);
    return status;
}
