/* A strict reader of one layout. Whatever is not just so (an escape in a name, another space) is
 * left to the JSON parser, which is ten times slower and right about everything. */
#include "format/series_list.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "format/series_parse.h"

#define LIST_MARK "\n  \"entities\": ["
#define LIST_END "\n  ]\n}\n"

struct list_cursor {
    const char *at, *end;
};

/* Not 0: the text went on with these bytes, and the cursor is behind them. */
static int take(struct list_cursor *cursor, const char *bytes)
{
    size_t len = strlen(bytes);
    if ((size_t)(cursor->end - cursor->at) < len || memcmp(cursor->at, bytes, len))
        return 0;
    cursor->at += len;
    return 1;
}

static int take_number(struct list_cursor *cursor, uint64_t *out)
{
    const char *first = cursor->at;
    uint64_t number = 0;
    for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++) {
        number = number * 10 + (uint64_t)(*cursor->at - '0');
        if (number > SERIES_MOST)
            return 0;
    }
    *out = number;
    return cursor->at > first && (*first != '0' || cursor->at == first + 1);
}

static int take_range(struct list_cursor *cursor, struct series_range *out)
{
    return take(cursor, "[") && take_number(cursor, &out->start) && take(cursor, ", ") &&
           take_number(cursor, &out->end) && take(cursor, "]");
}

/* Plain ASCII up to the closing quote. */
static int take_name(struct list_cursor *cursor, const char **name, size_t *len)
{
    *name = cursor->at;
    while (cursor->at < cursor->end && *cursor->at >= 0x20 && *cursor->at < 0x7f &&
           *cursor->at != '"' && *cursor->at != '\\')
        cursor->at++;
    *len = (size_t)(cursor->at - *name);
    return take(cursor, "\"");
}

struct list_item {
    const char *name;
    size_t name_len;
    uint64_t start, end;
    struct series_range ranges[SERIES_MAX_SPLITS];
    uint32_t splits;
};

static int take_item(struct list_cursor *cursor, struct list_item *item)
{
    item->splits = 0;
    if (!take(cursor, "\n    {\"name\": \"") || !take_name(cursor, &item->name, &item->name_len) ||
        !take(cursor, ", \"start\": ") || !take_number(cursor, &item->start) ||
        !take(cursor, ", \"end\": ") || !take_number(cursor, &item->end) || item->start > item->end)
        return 0;
    if (take(cursor, "}"))
        return 1;
    if (!take(cursor, ", \"splits\": ["))
        return 0;
    do {
        if (item->splits == SERIES_MAX_SPLITS || !take_range(cursor, &item->ranges[item->splits++]))
            return 0;
    } while (take(cursor, ", "));
    return take(cursor, "]}");
}

static stk_status list_grow(struct series_list *list, uint64_t *room, struct stk_error *err)
{
    uint64_t wanted = *room ? 2 * *room : 64;
    size_t ranges = wanted * list->splits * sizeof(*list->ranges);
    struct series_entity *entities = memory_grow(list->entities, wanted * sizeof(*entities));
    if (entities)
        list->entities = entities;
    struct series_range *grown = entities ? memory_grow(list->ranges, ranges ? ranges : 1) : NULL;
    if (!grown)
        return fail_memory(err, wanted * sizeof(*entities) + ranges);
    list->ranges = grown;
    *room = wanted;
    return STK_OK;
}

static stk_status list_add(struct series_list *list, const struct list_item *item, uint64_t *room,
                           struct stk_error *err)
{
    if (list->count == 0)
        list->splits = item->splits;
    stk_status status = list->count == *room ? list_grow(list, room, err) : STK_OK;
    if (status)
        return status;
    char *name = memory_text(item->name, item->name_len);
    if (!name)
        return fail_memory(err, item->name_len);
    if (list->splits)
        memcpy(&list->ranges[list->count * list->splits], item->ranges,
               list->splits * sizeof(*item->ranges));
    list->entities[list->count++] = (struct series_entity){name, item->start, item->end};
    return STK_OK;
}

/* A newline is never part of a JSON text's string: a text that holds the mark holds the member. */
stk_status series_list_scan(struct series_list *list, const char *text, size_t len,
                            struct stk_error *err)
{
    *list = (struct series_list){0};
    const char *mark = memmem(text, len, LIST_MARK, strlen(LIST_MARK));
    if (!mark)
        return STK_OK;
    struct list_cursor cursor = {mark + strlen(LIST_MARK), text + len};
    struct list_item item;
    uint64_t room = 0;
    int good = 1;
    stk_status status = STK_OK;
    do {
        good = take_item(&cursor, &item) && (list->count == 0 || item.splits == list->splits);
        if (good)
            status = list_add(list, &item, &room, err);
    } while (good && !status && take(&cursor, ","));
    if (!good || status || !take(&cursor, LIST_END) || cursor.at != cursor.end)
        series_list_reset(list);
    else
        list->head = (size_t)(mark - text) + strlen(LIST_MARK);
    return status;
}

void series_list_reset(struct series_list *list)
{
    for (uint64_t i = 0; i < list->count; i++)
        memory_free(list->entities[i].name);
    memory_free(list->entities);
    memory_free(list->ranges);
    *list = (struct series_list){0};
}
