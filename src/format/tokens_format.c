#include "format/tokens_format.h"

#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/npy_header.h"
#include "base/text.h"
#include "index/windows_index.h"

#define HEAD_CAP (64u * 1024u + 64u) /* npy_header_parse needs no more */

struct tokens_build {
    const struct tokens_input *input;
    enum stk_dtype dtype;
    struct windows_entity *entities;
    struct index_object *objects;
};

static void name_file(const struct tokens_build *build, const struct format_object *object,
                      uint64_t offset, struct stk_error *err)
{
    struct text path = {0};
    const char *root = build->input->root;
    text_format(&path, "%s%s%s", root, *root ? "/" : "", object->name);
    fail_at(err, path.failed ? object->name : path.data, offset);
    text_free(&path);
}

/* ---- files --------------------------------------------------------------------------------- */

static int is_npy(const char *name)
{
    size_t len = strlen(name);
    return len > 4 && !strcasecmp(name + len - 4, ".npy");
}

static stk_status npy_head(const struct tokens_build *build, const struct format_object *object,
                           struct npy_header *header, struct stk_error *err)
{
    struct scan *scan = NULL;
    size_t got = 0;
    uint8_t *head = memory_alloc(HEAD_CAP);
    if (!head)
        return fail_memory(err, HEAD_CAP);
    stk_status status = scan_open(&scan, build->input->root, object->name, err);
    if (!status)
        status = scan_read(scan, 0, head, HEAD_CAP, &got, err);
    if (!status) {
        status = npy_header_parse(header, &(struct stk_bytes){head, got}, scan_size(scan), err);
        if (status)
            name_file(build, object, 0, err);
    }
    scan_close(scan);
    memory_free(head);
    return status;
}

/* Rows are counted from the file's first byte, so a head must be as long as some of them. */
static stk_status npy_entity(struct tokens_build *build, const struct format_object *object,
                             struct windows_entity *entity, struct stk_error *err)
{
    struct npy_header header;
    stk_status status = npy_head(build, object, &header, err);
    if (status)
        return status;
    if (build->dtype == STK_DTYPE_COUNT)
        build->dtype = header.shape.dtype;
    uint64_t size = stk_dtype_size(build->dtype);
    if (header.shape.rank != 1 || header.shape.dtype != build->dtype || header.byteswap ||
        header.length % size) {
        status = fail(err, STK_SHAPE, "tokens are one axis of %s, this is %s with %d axes%s",
                      stk_dtype_name(build->dtype), stk_dtype_name(header.shape.dtype),
                      (int)header.shape.rank, header.byteswap ? " in the other byte order" : "");
        fail_remedy(err, "save it as a flat array of that type");
        name_file(build, object, 0, err);
        return status;
    }
    entity->origin = entity->start = header.length / size;
    entity->end = entity->start + (uint64_t)header.shape.shape[0];
    return STK_OK;
}

static stk_status flat_entity(const struct tokens_build *build, const struct format_object *object,
                              struct windows_entity *entity, struct stk_error *err)
{
    uint64_t size = stk_dtype_size(build->dtype);
    if (object->size % size) {
        fail(err, STK_CORRUPT, "%llu bytes are no whole number of tokens of %llu bytes",
             (unsigned long long)object->size, (unsigned long long)size);
        name_file(build, object, object->size - object->size % size, err);
        fail_remedy(err, "check dtype; the file may have been cut off");
        return STK_CORRUPT;
    }
    entity->end = object->size / size;
    return STK_OK;
}

/* The type comes from the options, else from the first .npy, else it is uint16. */
static stk_status find_dtype(struct tokens_build *build, struct stk_error *err)
{
    const struct tokens_input *input = build->input;
    struct windows_entity entity = {0};
    build->dtype = input->dtype;
    for (uint64_t i = 0; i < input->object_count && build->dtype == STK_DTYPE_COUNT; i++) {
        stk_status status = is_npy(input->objects[i].name)
                                ? npy_entity(build, &input->objects[i], &entity, err)
                                : STK_OK;
        if (status)
            return status;
    }
    if (build->dtype == STK_DTYPE_COUNT)
        build->dtype = STK_U16;
    if (build->dtype >= STK_U8 && build->dtype <= STK_I64)
        return STK_OK;
    fail(err, STK_USAGE, "tokens are integers, not %s", stk_dtype_name(build->dtype));
    fail_remedy(err, "give dtype=uint16 or dtype=uint32; other arrays are opened with format=raw");
    return STK_USAGE;
}

static stk_status find_files(struct tokens_build *build, struct stk_error *err)
{
    const struct tokens_input *input = build->input;
    stk_status status = STK_OK;
    for (uint64_t i = 0; i < input->object_count && !status; i++) {
        const struct format_object *object = &input->objects[i];
        build->objects[i] = (struct index_object){object->name, object->size, object->version};
        build->entities[i] = (struct windows_entity){.name = object->name, .number = i};
        status = is_npy(object->name) ? npy_entity(build, object, &build->entities[i], err)
                                      : flat_entity(build, object, &build->entities[i], err);
    }
    return status;
}

/* ---- windows ------------------------------------------------------------------------------- */

/* The index would say so too, in words of series. */
static stk_status check_longest(const struct tokens_build *build, struct stk_error *err)
{
    const struct tokens_input *input = build->input;
    uint64_t longest = 0, most = 0;
    for (uint64_t i = 0; i < input->object_count; i++) {
        uint64_t tokens = build->entities[i].end - build->entities[i].start;
        if (tokens > most) {
            most = tokens;
            longest = i;
        }
    }
    if (most >= input->window)
        return STK_OK;
    fail(err, STK_USAGE, "no file holds a window of %llu tokens: the longest has %llu",
         (unsigned long long)input->window, (unsigned long long)most);
    name_file(build, &input->objects[longest], STK_NOWHERE, err);
    fail_remedy(err, "take a smaller window");
    return STK_USAGE;
}

static void hash_files(const struct tokens_build *build, uint8_t out[16])
{
    struct hash128 hash;
    hash128_init(&hash, 0);
    hash128_add_number(&hash, (uint64_t)build->dtype);
    for (uint64_t i = 0; i < build->input->object_count; i++) {
        const struct format_object *object = &build->input->objects[i];
        hash128_add(&hash, object->name, strlen(object->name) + 1);
        hash128_add_number(&hash, object->size);
    }
    hash128_out(&hash, out);
}

static stk_status make_index(const struct tokens_build *build, struct index **out,
                             struct stk_error *err)
{
    const struct tokens_input *input = build->input;
    struct windows_field field = {
        .name = TOKENS_FORMAT,
        .part = WINDOWS_FILE,
        .row_bytes = stk_dtype_size(build->dtype),
        .shape = {.dtype = build->dtype, .rank = 1, .shape = {(int64_t)input->window}},
    };
    struct windows_spec spec = {.format = TOKENS_FORMAT,
                                .root = input->root,
                                .path = "",
                                .objects = build->objects,
                                .object_count = (uint32_t)input->object_count,
                                .entities = build->entities,
                                .entity_count = input->object_count,
                                .window = input->window,
                                .stride = input->stride,
                                .min_history = input->window,
                                .fields = &field,
                                .field_count = 1};
    hash_files(build, spec.fingerprint);
    return windows_index_new(out, &spec, err);
}

stk_status tokens_index_new(struct index **out, const struct tokens_input *input,
                            struct stk_error *err)
{
    struct tokens_build build = {.input = input};
    *out = NULL;
    if (input->object_count > UINT32_MAX / 2)
        return fail(err, STK_UNSUPPORTED, "too many files");
    build.entities = memory_zero((size_t)input->object_count, sizeof *build.entities);
    build.objects = memory_zero((size_t)input->object_count, sizeof *build.objects);
    stk_status status = build.entities && build.objects
                            ? find_dtype(&build, err)
                            : fail_memory(err, input->object_count * sizeof *build.entities);
    if (!status)
        status = find_files(&build, err);
    if (!status)
        status = check_longest(&build, err);
    if (!status)
        status = make_index(&build, out, err);
    memory_free(build.entities);
    memory_free(build.objects);
    return status;
}
