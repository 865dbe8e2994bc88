#include "dataset/index_fresh.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "index/sample_name.h"

static int same_options(const struct index_wish *wish, const struct index *index)
{
    const char *format = wish->raw.rank >= 0 ? "raw" : wish->format;
    if (format && strcmp(format, index_format(index)))
        return 0;
    if (wish->raw.rank < 0)
        return 1;
    if (index_field_count(index) != 1)
        return 0;
    const struct stk_tensor *row = &index_field(index, 0)->row;
    return row->dtype == wish->raw.dtype && row->rank == wish->raw.rank &&
           !memcmp(row->shape, wish->raw.shape, (size_t)row->rank * sizeof *row->shape);
}

static void compare_object(struct text *what, const struct index_object *was,
                           const struct listed *now)
{
    if (!now || strcmp(was->name, now->name))
        text_format(what, "%s is gone, or comes in another place", was->name);
    else if (was->size != now->size || was->version != now->version)
        text_format(what, "%s changed", was->name);
}

/* Shards: in the order in which they were named. */
static stk_status changed_shards(const struct list *list, const struct index *index,
                                 struct text *what, struct stk_error *err)
{
    for (uint32_t i = 0; !what->len && i < index_object_count(index); i++) {
        struct index_object was;
        stk_status status = index_object(index, i, &was, err);
        if (status)
            return status;
        compare_object(what, &was, i < list->count ? &list->items[i] : NULL);
    }
    return STK_OK;
}

static int listed_compare(const void *a, const void *b)
{
    return strcmp(((const struct listed *)a)->name, ((const struct listed *)b)->name);
}

/* The items sorted by name: list's own when they are (a folder's), else a copy in *made. */
static const struct listed *sorted_items(const struct list *list, struct listed **made)
{
    uint64_t i = 1;
    while (i < list->count && listed_compare(&list->items[i - 1], &list->items[i]) < 0)
        i++;
    if (i >= list->count)
        return list->items;
    *made = memory_zero(list->count, sizeof **made);
    if (*made) {
        memcpy(*made, list->items, list->count * sizeof **made);
        qsort(*made, list->count, sizeof **made, listed_compare);
    }
    return *made;
}

/* The item of that name. Looks near *at first: a folder's index has nearly the list's order. */
static const struct listed *find_item(const struct listed *items, uint64_t count, const char *name,
                                      uint64_t *at)
{
    uint64_t low = *at, high = *at;
    for (uint64_t step = 1; low > 0 && strcmp(items[low - 1].name, name) >= 0; step *= 2)
        low = low > step ? low - step : 0;
    for (uint64_t step = 1; high < count && strcmp(items[high].name, name) < 0; step *= 2)
        high = high + step < count ? high + step : count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (strcmp(items[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *at = low;
    return low < count && !strcmp(items[low].name, name) ? &items[low] : NULL;
}

/* Loose files: the format puts them in an order of its own. */
static stk_status changed_files(const struct list *list, const struct index *index,
                                struct text *what, struct stk_error *err)
{
    struct listed *made = NULL;
    const struct listed *items = sorted_items(list, &made);
    stk_status status = items ? STK_OK : fail_memory(err, list->count * sizeof *items);
    uint64_t at = 0;
    for (uint32_t i = 0; !status && !what->len && i < index_object_count(index); i++) {
        struct index_object was;
        status = index_object(index, i, &was, err);
        if (!status)
            compare_object(what, &was, find_item(items, list->count, was.name, &at));
    }
    memory_free(made);
    return status;
}

/* Loose files whose names mean no sample: the index does not know them. */
static uint64_t meaningless_files(const struct list *list)
{
    uint64_t count = 0;
    size_t key_len;
    for (uint64_t i = 0; i < list->count; i++)
        count += !sample_name_split(list->items[i].name, strlen(list->items[i].name), &key_len);
    return count;
}

static stk_status changed_chunks(const struct index_wish *wish, const struct index *index,
                                 struct text *what, struct stk_error *err)
{
    for (uint32_t i = 0; !what->len && i < index_chunk_count(index); i++) {
        struct chunk chunk;
        stk_status status = index_chunk(index, i, &chunk, err);
        if (status)
            return status;
        if (chunk.decoded > wish->chunk_limit)
            text_format(what, "the limit of a chunk was lowered");
    }
    return STK_OK;
}

stk_status index_fresh(const struct index *index, const struct index_wish *wish, struct text *what,
                       struct stk_error *err)
{
    const struct list *list = &wish->names->list;
    const char *format = index_format(index);
    int files = !strcmp(format, "folder") || (!strcmp(format, "npy") && list->count != 1);
    uint64_t objects = index_object_count(index) + (files ? meaningless_files(list) : 0);
    if (!same_options(wish, index))
        text_format(what, "the options changed");
    else if (objects != list->count)
        text_format(what, "there are %llu objects where %llu were", (unsigned long long)list->count,
                    (unsigned long long)objects);
    stk_status status =
        files ? changed_files(list, index, what, err) : changed_shards(list, index, what, err);
    if (!status)
        status = changed_chunks(wish, index, what, err);
    return status;
}
