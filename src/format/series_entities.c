/* Entities and their parts: read from the tree or from the list, checked in the same way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "format/series_parser.h"

static int meta_range(const struct json *value, struct series_range *out)
{
    return json_count(value) == 2 && json_u64(json_item(value, 0), &out->start) &&
           json_u64(json_item(value, 1), &out->end) && out->start <= out->end &&
           out->end <= SERIES_MOST;
}

static stk_status meta_few_splits(const struct meta_parser *parser, uint64_t number)
{
    return meta_bad(parser, "entities", "%.100s needs a list of %u splits",
                    parser->meta->entities[number].name, parser->meta->split_count);
}

static stk_status meta_entity_splits(const struct meta_parser *parser, uint64_t number,
                                     const struct json *list)
{
    struct series_meta *meta = parser->meta;
    struct series_range *ranges = &meta->ranges[number * meta->split_count];
    if (json_kind(list) != JSON_KIND_LIST || json_count(list) != meta->split_count)
        return meta_few_splits(parser, number);
    for (uint32_t i = 0; i < meta->split_count; i++) {
        if (!meta_range(json_item(list, i), &ranges[i]))
            return meta_bad(parser, "entities", "split %u of %.100s is not [start, end] inside it",
                            i, meta->entities[number].name);
    }
    return STK_OK;
}

/* The parts of one entity: inside it, none over another. */
static stk_status meta_check_splits(const struct meta_parser *parser, uint64_t number)
{
    const struct series_meta *meta = parser->meta;
    const struct series_entity *entity = &meta->entities[number];
    const struct series_range *ranges = &meta->ranges[number * meta->split_count];
    for (uint32_t i = 0; i < meta->split_count; i++) {
        if (ranges[i].start > ranges[i].end || ranges[i].start < entity->start ||
            ranges[i].end > entity->end)
            return meta_bad(parser, "entities", "split %u of %.100s is not [start, end] inside it",
                            i, entity->name);
        for (uint32_t k = 0; k < i; k++) {
            if (ranges[i].start < ranges[k].end && ranges[k].start < ranges[i].end)
                return meta_bad(parser, "entities", "splits %u and %u of %.100s overlap", k, i,
                                entity->name);
        }
    }
    return STK_OK;
}

static stk_status meta_entity(const struct meta_parser *parser, const char *name,
                              const struct json *value)
{
    struct series_meta *meta = parser->meta;
    uint64_t number = meta->entity_count;
    struct series_entity *entity = &meta->entities[number];
    struct series_range range = {0, 0};
    stk_status status = meta_copy(parser, name, &entity->name);
    if (status)
        return status;
    meta->entity_count++;
    if (json_kind(value) == JSON_KIND_OBJECT) {
        if (!json_get_u64(value, "start", &range.start) || !json_get_u64(value, "end", &range.end))
            return meta_bad(parser, "entities", "%.100s has no start and end", name);
    } else if (!meta_range(value, &range)) {
        return meta_bad(parser, "entities", "%.100s is not [start, end]", name);
    }
    if (range.start > range.end || range.end > SERIES_MOST)
        return meta_bad(parser, "entities", "%.100s has impossible rows %llu to %llu", name,
                        (unsigned long long)range.start, (unsigned long long)range.end);
    entity->start = range.start;
    entity->end = range.end;
    return meta->split_count ? meta_entity_splits(parser, number, json_member(value, "splits"))
                             : STK_OK;
}

static stk_status meta_entity_item(const struct meta_parser *parser, size_t number,
                                   const struct json *item)
{
    const char *name;
    char digits[24];
    int64_t code;
    if (json_i64(json_member(item, "name"), &code)) { /* made by hand */
        snprintf(digits, sizeof(digits), "%lld", (long long)code);
        name = digits;
    } else if (!json_get_text(item, "name", &name)) {
        return meta_bad(parser, "entities", "item %zu has no name", number);
    }
    return meta_entity(parser, name, item);
}

/* What series_list.h has read becomes the meta's. */
static stk_status meta_take_list(const struct meta_parser *parser)
{
    struct series_meta *meta = parser->meta;
    struct series_list *list = parser->list;
    meta->entities = list->entities;
    meta->entity_count = list->count;
    meta->ranges = list->ranges;
    uint32_t splits = list->splits;
    *list = (struct series_list){0};
    return meta->split_count && splits != meta->split_count ? meta_few_splits(parser, 0) : STK_OK;
}

stk_status meta_entities(const struct meta_parser *parser)
{
    if (parser->list)
        return meta_take_list(parser);
    struct series_meta *meta = parser->meta;
    const struct json *value = meta_member(parser->root, "entities"), *item;
    size_t count = json_count(value);
    void *cursor = NULL;
    const char *name;
    stk_status status = STK_OK;
    if (json_kind(value) != JSON_KIND_LIST && json_kind(value) != JSON_KIND_OBJECT)
        return meta_bad(parser, "entities",
                        value ? "it is neither a list nor an object"
                              : "it is missing: a list of {name, start, end}");
    meta->entities = memory_zero(count + 1, sizeof(*meta->entities));
    meta->ranges = memory_zero(count * meta->split_count + 1, sizeof(*meta->ranges));
    if (!meta->entities || !meta->ranges)
        return fail_memory(parser->err, count * sizeof(*meta->entities));
    if (count == 0)
        return meta_bad(parser, "entities", "there is none");
    for (size_t i = 0; !status && json_kind(value) == JSON_KIND_LIST && i < count; i++)
        status = meta_entity_item(parser, i, json_item(value, i));
    while (!status && (item = json_each(value, &cursor, &name)))
        status = meta_entity(parser, name, item);
    return status;
}

static int entity_order(const void *a, const void *b)
{
    const struct series_entity *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* By a sorted copy: entities may lie in any order. */
static stk_status meta_check_rows(const struct meta_parser *parser)
{
    const struct series_meta *meta = parser->meta;
    size_t bytes = meta->entity_count * sizeof(*meta->entities);
    struct series_entity *sorted = memory_alloc(bytes);
    stk_status status = STK_OK;
    if (!sorted)
        return fail_memory(parser->err, bytes);
    memcpy(sorted, meta->entities, bytes);
    qsort(sorted, meta->entity_count, sizeof(*sorted), entity_order);
    for (uint64_t i = 0; !status && i < meta->entity_count; i++) {
        const struct series_entity *own = &sorted[i];
        if (own->end > meta->rows)
            status = meta_bad(parser, "entities", "%.100s ends at row %llu of %llu", own->name,
                              (unsigned long long)own->end, (unsigned long long)meta->rows);
        else if (i > 0 && sorted[i - 1].end > own->start)
            status = meta_bad(parser, "entities", "%.100s and %.100s overlap at row %llu",
                              sorted[i - 1].name, own->name, (unsigned long long)own->start);
    }
    memory_free(sorted);
    return status;
}

static stk_status meta_check_names(const struct meta_parser *parser)
{
    const struct series_meta *meta = parser->meta;
    const char **names = memory_zero(meta->entity_count, sizeof(*names));
    if (!names)
        return fail_memory(parser->err, meta->entity_count * sizeof(*names));
    for (uint64_t i = 0; i < meta->entity_count; i++)
        names[i] = meta->entities[i].name;
    const char *twice = meta_twice(names, meta->entity_count);
    memory_free(names);
    return twice ? meta_bad(parser, "entities", "the name %.100s is there twice", twice) : STK_OK;
}

stk_status meta_check_entities(const struct meta_parser *parser)
{
    stk_status status = meta_check_rows(parser);
    if (!status)
        status = meta_check_names(parser);
    for (uint64_t i = 0; !status && i < parser->meta->entity_count; i++)
        status = meta_check_splits(parser, i);
    return status;
}
