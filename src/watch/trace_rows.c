#include "watch/trace_rows.h"

#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#define ROW_SLOTS 8192u       /* a power of two; half of them are used at most */
#define MOST_NAMES 65536u     /* after that kernels have no names */
#define NAME_BYTES 160u       /* what is longer is cut: C++ names go on for ever */
#define FIRST_ROW_ID 5000000u /* above every pid and tid of Linux */

struct trace_name {
    uint32_t pid, id;
    char text[]; /* quoted */
};

static uint64_t mix(uint64_t key)
{
    key ^= key >> 31;
    key *= UINT64_C(0x9e3779b97f4a7c15);
    return key ^ (key >> 29);
}

struct trace_row *trace_rows_get(struct trace_rows *rows, uint32_t pid, enum trace_row_kind kind,
                                 uint32_t a, uint32_t b, int *made)
{
    uint64_t key = mix(((uint64_t)pid << 32 | a) + ((uint64_t)b << 8) + (uint64_t)kind);
    *made = 0;
    if (!rows->slots)
        rows->slots = memory_zero(ROW_SLOTS, sizeof(struct trace_row *));
    if (!rows->slots)
        return NULL;
    size_t at = key % ROW_SLOTS;
    for (; rows->slots[at]; at = (at + 1) % ROW_SLOTS) {
        struct trace_row *row = rows->slots[at];
        if (row->pid == pid && row->kind == kind && row->a == a && row->b == b)
            return row;
    }
    struct trace_row *row = rows->count < ROW_SLOTS / 2 ? memory_zero(1, sizeof *row) : NULL;
    if (!row)
        return NULL;
    row->pid = pid;
    row->kind = kind;
    row->a = a;
    row->b = b;
    row->tid = kind == ROW_THREAD    ? a
               : kind == ROW_PROCESS ? pid
                                     : FIRST_ROW_ID + (uint32_t)rows->count;
    rows->slots[at] = row;
    rows->count++;
    *made = 1;
    return row;
}

struct trace_row *trace_rows_each(const struct trace_rows *rows, size_t *at)
{
    while (rows->slots && *at < ROW_SLOTS) {
        struct trace_row *row = rows->slots[(*at)++];
        if (row)
            return row;
    }
    return NULL;
}

static size_t name_place(struct trace_name *const *names, size_t room, uint32_t pid, uint32_t id)
{
    size_t at = mix((uint64_t)pid << 32 | id) % room;
    while (names[at] && (names[at]->pid != pid || names[at]->id != id))
        at = (at + 1) % room;
    return at;
}

static int names_grow(struct trace_rows *rows)
{
    size_t room = rows->name_room ? 2 * rows->name_room : 1024;
    if (rows->name_room && rows->name_count < rows->name_room / 2)
        return 1;
    struct trace_name **names = memory_zero(room, sizeof(struct trace_name *));
    if (!names)
        return 0;
    for (size_t i = 0; i < rows->name_room; i++)
        if (rows->names[i])
            names[name_place(names, room, rows->names[i]->pid, rows->names[i]->id)] =
                rows->names[i];
    memory_free(rows->names);
    rows->names = names;
    rows->name_room = room;
    return 1;
}

void trace_rows_name(struct trace_rows *rows, uint32_t pid, uint32_t id, const char *text,
                     size_t len)
{
    struct text quoted = {0};
    if (rows->name_count >= MOST_NAMES || !names_grow(rows))
        return;
    size_t at = name_place(rows->names, rows->name_room, pid, id);
    json_add_string(&quoted, text, len < NAME_BYTES ? len : NAME_BYTES);
    size_t size = sizeof(struct trace_name) + quoted.len + 1;
    struct trace_name *name = quoted.failed ? NULL : memory_alloc(size);
    if (name) {
        name->pid = pid;
        name->id = id;
        memcpy(name->text, quoted.data, quoted.len + 1);
        rows->name_count += !rows->names[at];
        memory_free(rows->names[at]); /* the last one counts */
        rows->names[at] = name;
    }
    text_free(&quoted);
}

const char *trace_rows_name_of(const struct trace_rows *rows, uint32_t pid, uint32_t id)
{
    if (!rows->name_room)
        return "\"kernel\"";
    const struct trace_name *name = rows->names[name_place(rows->names, rows->name_room, pid, id)];
    return name ? name->text : "\"kernel\"";
}

void trace_rows_reset(struct trace_rows *rows)
{
    for (size_t i = 0; rows->slots && i < ROW_SLOTS; i++)
        memory_free(rows->slots[i]);
    for (size_t i = 0; i < rows->name_room; i++)
        memory_free(rows->names[i]);
    memory_free(rows->slots);
    memory_free(rows->names);
    *rows = (struct trace_rows){0};
}
