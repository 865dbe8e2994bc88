/* A folder of files. The rule:
 * - Files are grouped as in tar shards (index/sample_name.h), but wherever they are in the list:
 * the key is the path, relative to the root, up to the first dot of the base name; the field is the
 * rest. Samples are ordered by key, bytewise, and fields by name.
 * - Files whose name begins with a dot, metadata.parquet, and files without a dot in their name are
 * left out and counted as skipped.
 * - One folder a class: when every file that is left lies exactly one folder below the root, there
 * are two such folders or more, and no sample brings a field cls of its own. The classes are the
 * folders' names, sorted bytewise, and each sample gets a field cls with its class's number. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "format/folder_format.h"
#include "format/format.h"
#include "format/format_tell.h"
#include "index/sample_name.h"

#define PART_SAMPLES 4096u /* joined at a time */

struct entry {
    const struct format_object *object;
    uint32_t key_len, name_len;
};

struct classes {
    char **names; /* sorted */
    uint64_t count, cap;
};

struct folder {
    const struct format_input *input;
    struct index_builder *builder;
    struct entry *entries;
    uint64_t count;
    struct classes classes; /* none: count 0 */
    uint64_t last_class;
    struct index_part *part;
};

static int key_compare(const struct entry *a, const struct entry *b)
{
    uint32_t len = a->key_len < b->key_len ? a->key_len : b->key_len;
    int order = memcmp(a->object->name, b->object->name, len);
    if (order)
        return order;
    return a->key_len < b->key_len ? -1 : a->key_len > b->key_len;
}

static int entry_compare(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int order = key_compare(a, b);
    return order ? order : strcmp(a->object->name + a->key_len, b->object->name + b->key_len);
}

static int is_left_out(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name;
    return base[0] == '.' || !strcmp(base, "metadata.parquet");
}

/* A list is sorted by whole names, which is almost never by key ("a-1.x" sorts before "a.x", "a"
 * before "a-1"); where it is, there is nothing to do. */
static stk_status folder_sort(struct folder *folder, struct stk_error *err)
{
    const struct format_input *input = folder->input;
    uint64_t n = 0, skipped = 0;
    int sorted = 1;
    folder->entries = memory_zero(input->object_count, sizeof(*folder->entries));
    if (!folder->entries)
        return fail_memory(err, input->object_count * sizeof(*folder->entries));
    for (uint64_t i = 0; i < input->object_count; i++) {
        const char *name = input->objects[i].name;
        size_t len = strlen(name), key_len = 0;
        if (len > UINT32_MAX || is_left_out(name) || !sample_name_split(name, len, &key_len)) {
            skipped++;
            continue;
        }
        folder->entries[n] = (struct entry){&input->objects[i], (uint32_t)key_len, (uint32_t)len};
        if (n > 0 && sorted)
            sorted = entry_compare(&folder->entries[n - 1], &folder->entries[n]) <= 0;
        n++;
    }
    if (!sorted)
        qsort(folder->entries, n, sizeof(*folder->entries), entry_compare);
    folder->count = n;
    index_builder_skipped(folder->builder, skipped);
    return STK_OK;
}

/* --- classes --------------------------------------------------------------------------------- */

/* The length of the only folder in a name, 0 when there is none or more than one. */
static size_t only_folder(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash && !strchr(slash + 1, '/') ? (size_t)(slash - name) : 0;
}

static int folder_has_classes(const struct folder *folder)
{
    int several = 0;
    for (uint64_t i = 0; i < folder->count; i++) {
        const struct entry *entry = &folder->entries[i];
        const char *name = entry->object->name, *first = folder->entries[0].object->name;
        size_t len = only_folder(name);
        if (len == 0 || !strcmp(name + entry->key_len, ".cls"))
            return 0;
        several |= only_folder(first) != len || memcmp(first, name, len);
    }
    return several;
}

static int name_compare(const void *left, const void *right)
{
    const char *const *a = left, *const *b = right;
    return strcmp(*a, *b);
}

static stk_status classes_add(struct classes *classes, const char *name, size_t len,
                              struct stk_error *err)
{
    if (classes->count == classes->cap) {
        uint64_t cap = classes->cap ? classes->cap * 2 : 64;
        char **grown = memory_grow(classes->names, cap * sizeof(*grown));
        if (!grown)
            return fail_memory(err, cap * sizeof(*grown));
        classes->names = grown;
        classes->cap = cap;
    }
    classes->names[classes->count] = memory_text(name, len);
    if (!classes->names[classes->count])
        return fail_memory(err, len);
    classes->count++;
    return STK_OK;
}

static void classes_free(struct classes *classes)
{
    for (uint64_t i = 0; i < classes->count; i++)
        memory_free(classes->names[i]);
    memory_free(classes->names);
}

/* Entries lie by key, where "a-b/x" comes before "a/x"; classes by name, where "a" is first: so
 * they are gathered, then sorted. */
static stk_status folder_classes(struct folder *folder, struct stk_error *err)
{
    struct classes *classes = &folder->classes;
    stk_status status = STK_OK;
    const char *last = NULL;
    size_t last_len = 0;
    for (uint64_t i = 0; !status && i < folder->count; i++) {
        const char *name = folder->entries[i].object->name;
        size_t len = only_folder(name);
        if (last && len == last_len && !memcmp(name, last, len))
            continue;
        last = name;
        last_len = len;
        status = classes_add(classes, name, len, err);
    }
    if (!status)
        qsort(classes->names, classes->count, sizeof(*classes->names), name_compare);
    for (uint64_t i = 0; !status && i < classes->count; i++) {
        uint32_t number;
        status = index_builder_class(folder->builder, classes->names[i], &number, err);
    }
    return status;
}

/* The class of an entry; consecutive samples mostly have the same one. */
static uint64_t folder_class(struct folder *folder, const struct entry *entry)
{
    const char *name = entry->object->name;
    size_t len = only_folder(name);
    const struct classes *classes = &folder->classes;
    uint64_t low = folder->last_class, high = classes->count;
    if (!strncmp(classes->names[low], name, len) && !classes->names[low][len])
        return low;
    low = 0;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int order = strncmp(classes->names[middle], name, len);
        if (order < 0)
            low = middle + 1;
        else
            high = middle; /* the first that is not less: just the name, or one that it begins */
    }
    folder->last_class = low;
    return low;
}

/* --- samples --------------------------------------------------------------------------------- */

static stk_status folder_sample_end(struct folder *folder, const struct entry *entry,
                                    struct stk_error *err)
{
    if (folder->classes.count > 0) {
        struct extent value = {folder_class(folder, entry), sizeof(int64_t), EXTENT_VALUE};
        stk_status status = index_part_extent(folder->part, "cls", 3, &value, err);
        if (status)
            return status;
    }
    if (index_part_samples(folder->part) < PART_SAMPLES)
        return STK_OK;
    return index_builder_join(folder->builder, folder->part, err);
}

static stk_status folder_file(struct folder *folder, const struct entry *entry,
                              struct stk_error *err)
{
    const struct format_object *object = entry->object;
    struct extent extent = {0, object->size, 0};
    stk_status status = index_builder_object(folder->builder, object->name, object->size,
                                             object->version, &extent.object, err);
    size_t field = entry->key_len + 1u;
    if (!status)
        status = index_part_extent(folder->part, object->name + field, entry->name_len - field,
                                   &extent, err);
    if (status) {
        char path[4096];
        fail_at(err, format_path(folder->input, object, path, sizeof(path)), STK_NOWHERE);
        fail_sample(err, STK_NOWHERE, object->name, entry->key_len);
    }
    return status;
}

static stk_status folder_samples(struct folder *folder, struct stk_error *err)
{
    struct format_tell tell = {.input = folder->input, .unit = "files"};
    stk_status status = STK_OK;
    uint64_t bytes = 0;
    for (uint64_t i = 0; !status && i < folder->count; i++) {
        const struct entry *entry = &folder->entries[i];
        int begins = i == 0 || key_compare(entry - 1, entry);
        int ends = i + 1 == folder->count || key_compare(entry, entry + 1);
        bytes += entry->object->size;
        if (begins)
            status = index_part_sample(folder->part, entry->object->name, entry->key_len, err);
        if (!status)
            status = folder_file(folder, entry, err);
        if (!status && ends)
            status = folder_sample_end(folder, entry, err);
        if (!status && i % 1024 == 0)
            status = format_tell(&tell, i, bytes, err);
    }
    if (!status)
        status = index_builder_join(folder->builder, folder->part, err);
    return status ? status : format_tell(&tell, folder->input->object_count, bytes, err);
}

stk_status folder_build(const struct format_input *input, struct index_builder *builder,
                        struct stk_error *err)
{
    struct folder folder = {.input = input, .builder = builder};
    index_builder_keys_from_names(builder);
    stk_status status = index_part_new(&folder.part, err);
    if (!status)
        status = folder_sort(&folder, err);
    if (!status && folder_has_classes(&folder))
        status = folder_classes(&folder, err);
    if (!status)
        status = folder_samples(&folder, err);
    index_part_free(folder.part);
    classes_free(&folder.classes);
    memory_free(folder.entries);
    return status;
}

static const char *const folder_suffixes[] = {NULL};

const struct format_ops folder_format = {
    .name = "folder", .suffixes = folder_suffixes, .sniff = NULL, .build = folder_build};
