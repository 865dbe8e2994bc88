/* metadata.json of a series. What is accepted must keep its own promises, and be written so that it
 * is accepted again. */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct series_meta meta, again;
    struct stk_error err;
    struct text text = {0};
    if (series_meta_parse(&meta, (const char *)data, size, "fuzz", &err))
        return 0;
    meta_holds(&meta);
    series_meta_write(&meta, &text);
    check(!text.failed);
    check(series_meta_parse(&again, text.data, text.len, "again", &err) == STK_OK);
    check(again.rows == meta.rows && again.entity_count == meta.entity_count);
    series_meta_reset(&again);
    series_meta_reset(&meta);
    text_free(&text);
    return 0;
}
