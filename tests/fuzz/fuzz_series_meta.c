/* metadata.json of a series. What is accepted must keep its own promises, and be written so that it
 * is accepted again. A list of entities in the layout that is read without a tree must be taken
 * just as the same list is with one more space. */
#include <stdlib.h>
#include <string.h>

#include "format/series_meta.h"

static void check(int good)
{
    if (!good)
        abort();
}

static void meta_holds(const struct series_meta *meta)
{
    check(meta->feature_count > 0 && meta->feature_count <= meta->column_count);
    check(meta->sequence.window > 0 && meta->sequence.stride > 0);
    check(meta->scaler.count == 0 || meta->scaler.count == meta->column_count);
    check(meta->label_count > 0);
    for (uint32_t i = 0; i < meta->label_count; i++)
        check(meta->labels[i] < meta->column_count);
    for (uint64_t i = 0; i < meta->entity_count; i++) {
        const struct series_entity *entity = &meta->entities[i];
        check(entity->start <= entity->end && entity->end <= meta->rows);
        for (uint32_t s = 0; s < meta->split_count; s++) {
            const struct series_range *range = &meta->ranges[i * meta->split_count + s];
            check(entity->start <= range->start && range->start <= range->end &&
                  range->end <= entity->end);
        }
    }
}

static const char mark[] = "\n  \"entities\": [";

/* The same JSON in another layout; NULL: there is no list to change. */
static char *spaced(const char *text, size_t len)
{
    const char *at = memmem(text, len, mark, strlen(mark));
    if (!at)
        return NULL;
    size_t before = (size_t)(at - text) + strlen(mark) - 1;
    char *copy = malloc(len + 1);
    memcpy(copy, text, before);
    copy[before] = ' ';
    memcpy(copy + before + 1, text + before, len - before);
    return copy;
}

static void both_ways(const char *text, size_t len, int good, const struct text *wanted)
{
    struct series_meta meta;
    struct stk_error err;
    struct text written = {0};
    char *copy = spaced(text, len);
    if (!copy)
        return;
    check((series_meta_parse(&meta, copy, len + 1, "spaced", &err) == STK_OK) == good);
    if (good) {
        series_meta_write(&meta, &written);
        check(written.len == wanted->len && !memcmp(written.data, wanted->data, wanted->len));
        series_meta_reset(&meta);
    }
    text_free(&written);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct series_meta meta, again;
    struct stk_error err;
    struct text text = {0};
    if (series_meta_parse(&meta, (const char *)data, size, "fuzz", &err)) {
        both_ways((const char *)data, size, 0, NULL);
        return 0;
    }
    meta_holds(&meta);
    series_meta_write(&meta, &text);
    check(!text.failed);
    both_ways((const char *)data, size, 1, &text);
    both_ways(text.data, text.len, 1, &text);
    check(series_meta_parse(&again, text.data, text.len, "again", &err) == STK_OK);
    check(again.rows == meta.rows && again.entity_count == meta.entity_count);
    series_meta_reset(&again);
    series_meta_reset(&meta);
    text_free(&text);
    return 0;
}
