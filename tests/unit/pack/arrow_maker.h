/* arrow_maker.h -- Arrow tables from plain C arrays, and streams that hand them out.
 * Owns: what it makes, until its release is called; made_live counts what was not.   Threads: one.
 * Errors: a failed assertion.   Not here: any test. */
#ifndef TESTS_PACK_ARROW_MAKER_H
#define TESTS_PACK_ARROW_MAKER_H

#include "base/testing.h"

#include <errno.h>

#include "stoker/arrow.h"
#include "stoker/series.h"

static long made_live; /* schemas, arrays and streams that were made and not released */

struct made_column {
    const char *name, *format;
    const void *values;      /* numbers, bits, offsets, views or indices */
    const uint8_t *validity; /* NULL: nothing is missing */
    const void *bytes;       /* of strings */
    const char *words;       /* a dictionary of strings: its values, ended by an empty one */
    int64_t offset;          /* of the array itself */
};

struct made_table {
    const char *name;
    const struct made_column *columns;
    uint32_t column_count;
    int64_t rows;
    int64_t batch;    /* rows a batch; 0: one batch of all */
    int fails_schema; /* errno of get_schema */
    int fails_after;  /* errno of get_next after all batches */
};

TESTING void made_schema_release(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (schema->children[i]->release)
            schema->children[i]->release(schema->children[i]);
        free(schema->children[i]);
    }
    free(schema->children);
    if (schema->dictionary) {
        schema->dictionary->release(schema->dictionary);
        free(schema->dictionary);
    }
    schema->release = NULL;
    made_live--;
}

TESTING void made_schema_start(struct ArrowSchema *schema, const char *format, const char *name)
{
    *schema = (struct ArrowSchema){
        .format = format, .name = name, .flags = 2, .release = made_schema_release};
    made_live++;
}

TESTING void made_schema(struct ArrowSchema *schema, const struct made_column *columns,
                         uint32_t count)
{
    made_schema_start(schema, "+s", "");
    schema->children = calloc(count + 1, sizeof(*schema->children));
    schema->n_children = count;
    for (uint32_t i = 0; i < count; i++) {
        schema->children[i] = calloc(1, sizeof(**schema->children));
        made_schema_start(schema->children[i], columns[i].format, columns[i].name);
        if (columns[i].words) {
            schema->children[i]->dictionary = calloc(1, sizeof(**schema->children));
            made_schema_start(schema->children[i]->dictionary, "u", "");
        }
    }
}

TESTING void made_array_release(struct ArrowArray *array)
{
    for (int64_t i = 0; i < array->n_children; i++) {
        array->children[i]->release(array->children[i]);
        free(array->children[i]);
    }
    free(array->children);
    if (array->dictionary) {
        array->dictionary->release(array->dictionary);
        free(array->dictionary);
    }
    free(array->private_data);
    free(array->buffers);
    array->release = NULL;
    made_live--;
}

TESTING void made_array_start(struct ArrowArray *array, int64_t length, int64_t buffers)
{
    *array =
        (struct ArrowArray){.length = length, .n_buffers = buffers, .release = made_array_release};
    array->buffers = calloc((size_t)buffers + 1, sizeof(*array->buffers));
    made_live++;
}

/* "a\0bc\0" and so on as a string array. */
TESTING void made_words(struct ArrowArray *array, const char *words)
{
    int32_t count = 0, total = 0;
    for (const char *word = words; *word; word += strlen(word) + 1, count++)
        total += (int32_t)strlen(word);
    int32_t *offsets = malloc(((size_t)count + 1) * sizeof(*offsets) + (size_t)total);
    char *bytes = (char *)(offsets + count + 1);
    made_array_start(array, count, 3);
    array->private_data = offsets;
    array->buffers[1] = offsets;
    array->buffers[2] = bytes;
    offsets[0] = 0;
    for (int32_t i = 0; i < count; i++, words += strlen(words) + 1) {
        offsets[i + 1] = offsets[i] + (int32_t)strlen(words);
        memcpy(bytes + offsets[i], words, strlen(words));
    }
}

/* Rows [first, first + rows) of the columns, by the offset of the struct. */
TESTING void made_batch(struct ArrowArray *array, const struct made_table *table, int64_t first,
                        int64_t rows)
{
    made_array_start(array, rows, 1);
    array->offset = first;
    array->n_children = table->column_count;
    array->children = calloc(table->column_count + 1, sizeof(*array->children));
    for (uint32_t i = 0; i < table->column_count; i++) {
        const struct made_column *column = &table->columns[i];
        struct ArrowArray *child = array->children[i] = calloc(1, sizeof(*child));
        int is_text = column->format[0] == 'u' || column->format[0] == 'U';
        made_array_start(child, table->rows, is_text ? 3 : 2);
        child->offset = column->offset;
        child->null_count = column->validity ? -1 : 0;
        child->buffers[0] = column->validity;
        child->buffers[1] = column->values;
        if (is_text)
            child->buffers[2] = column->bytes;
        if (column->words) {
            child->dictionary = calloc(1, sizeof(*child));
            made_words(child->dictionary, column->words);
        }
    }
}

struct made_stream {
    const struct made_table *table;
    int64_t at;
};

TESTING int made_get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    struct made_stream *made = stream->private_data;
    if (made->table->fails_schema)
        return made->table->fails_schema;
    made_schema(out, made->table->columns, made->table->column_count);
    return 0;
}

TESTING int made_get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct made_stream *made = stream->private_data;
    const struct made_table *table = made->table;
    int64_t left = table->rows - made->at;
    int64_t rows = table->batch && table->batch < left ? table->batch : left;
    if (!left && table->fails_after)
        return table->fails_after;
    memset(out, 0, sizeof(*out));
    if (left)
        made_batch(out, table, made->at, rows);
    made->at += rows;
    return 0;
}

TESTING const char *made_get_last_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return "the page is upside down. Detail: Traceback\nof a line";
}

TESTING void made_stream_release(struct ArrowArrayStream *stream)
{
    free(stream->private_data);
    stream->release = NULL;
    made_live--;
}

TESTING void made_stream(struct ArrowArrayStream *stream, const struct made_table *table)
{
    struct made_stream *made = calloc(1, sizeof(*made));
    made->table = table;
    *stream = (struct ArrowArrayStream){made_get_schema, made_get_next, made_get_last_error,
                                        made_stream_release, made};
    made_live++;
}

/* stk_tables over an array of tables. */
struct made_tables {
    const struct made_table *list;
    uint32_t count, at;
};

TESTING stk_status made_tables_next(void *user, struct ArrowArrayStream *stream, const char **name,
                                    struct stk_error *err)
{
    struct made_tables *tables = user;
    (void)err;
    if (tables->at == tables->count)
        return STK_END;
    *name = tables->list[tables->at].name;
    made_stream(stream, &tables->list[tables->at++]);
    return STK_OK;
}

#endif
