/* .npz files: one alone is a grid, whose fields are the members (without ".npy") and whose samples
 * are their rows, so that all must have the same number; several are a sample each, with a field a
 * member (with ".npy", so that its codec is found). Stored members are extents, deflated ones
 * chunks. */
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/memory.h"
#include "filter/filter.h"
#include "format/format.h"
#include "format/npy_array.h"
#include "format/shard_crew.h"
#include "format/zip_directory.h"

#define HEAD_CAP (64u * 1024u + 64u) /* npy_header_parse needs no more */

static int is_array(const struct zip_member *member)
{
    size_t len = strlen(member->name);
    return len > 4 && !strcmp(member->name + len - 4, ".npy");
}

static stk_status member_chunk(const struct format_input *input, const struct zip_member *member,
                               uint32_t object, uint64_t samples, struct chunk *chunk,
                               struct stk_error *err)
{
    *chunk = (struct chunk){.offset = member->offset,
                            .length = member->packed,
                            .decoded = member->size,
                            .count = samples,
                            .object = object,
                            .filter = FILTER_DEFLATE,
                            .check = member->check};
    return filter_check_size(member->packed, member->size, input->chunk_limit, err);
}

/* --- one file: a grid ------------------------------------------------------------------------ */

struct grid {
    const struct format_input *input;
    struct index_builder *builder;
    struct scan *scan;
    uint8_t *head;
    uint32_t object;
    char *first; /* the first array's field, and its rows: all others must have as many */
    uint64_t rows;
};

static stk_status grid_rows(struct grid *grid, const char *field, const struct npy_header *header,
                            struct stk_error *err)
{
    uint64_t rows = (uint64_t)header->shape.shape[0];
    if (!grid->first) {
        grid->first = memory_text(field, strlen(field));
        grid->rows = rows;
        return grid->first ? STK_OK : fail_memory(err, strlen(field));
    }
    if (rows == grid->rows)
        return STK_OK;
    fail(err, STK_SHAPE, "the arrays differ in rows: %s has %llu, %s has %llu", grid->first,
         (unsigned long long)grid->rows, field, (unsigned long long)rows);
    fail_remedy(err, "a sample is one row of every array: give arrays with another number of rows "
                     "a file of their own");
    return STK_SHAPE;
}

static stk_status grid_array(struct grid *grid, const struct zip_member *member, const char *field,
                             struct stk_error *err)
{
    struct npy_header header;
    size_t got = 0;
    struct npy_place place = {
        .field = field, .object = grid->object, .offset = member->offset, .length = member->size};
    stk_status status = zip_member_head(member, grid->scan, grid->head, HEAD_CAP, &got, err);
    if (!status)
        status = npy_header_parse(&header, &(struct stk_bytes){grid->head, got}, member->size, err);
    if (!status && header.shape.rank > 0)
        status = grid_rows(grid, field, &header, err);
    if (!status && member->is_deflated) {
        struct chunk chunk;
        status = member_chunk(grid->input, member, grid->object, grid->rows, &chunk, err);
        if (!status)
            status = index_builder_chunk(grid->builder, &chunk, &place.chunk, err);
        place.chunk |= INDEX_PART_CHUNK;
    }
    return status ? status : npy_array_add(grid->input, grid->builder, &place, &header, err);
}

static stk_status grid_member(struct grid *grid, const struct zip_member *member,
                              struct stk_error *err)
{
    if (!is_array(member)) {
        index_builder_skipped(grid->builder, 1);
        return STK_OK;
    }
    char *field = memory_text(member->name, strlen(member->name) - 4);
    if (!field)
        return fail_memory(err, strlen(member->name));
    stk_status status = grid_array(grid, member, field, err);
    if (status) {
        fail_at(err, scan_name(grid->scan), member->offset);
        fail_field(err, field);
    }
    memory_free(field);
    return status;
}

static stk_status npz_build_grid(const struct format_input *input, struct index_builder *builder,
                                 struct stk_error *err)
{
    const struct format_object *object = &input->objects[0];
    struct grid grid = {.input = input, .builder = builder};
    struct zip_directory directory = {0};
    stk_status status = scan_open(&grid.scan, input->root, object->name, err);
    if (!status)
        status = zip_directory_read(&directory, grid.scan, err);
    if (!status)
        status = index_builder_object(builder, object->name, object->size, object->version,
                                      &grid.object, err);
    grid.head = memory_alloc(HEAD_CAP);
    if (!status && !grid.head)
        status = fail_memory(err, HEAD_CAP);
    for (uint32_t i = 0; !status && i < directory.count; i++)
        status = grid_member(&grid, &directory.members[i], err);
    memory_free(grid.head);
    memory_free(grid.first);
    zip_directory_free(&directory);
    scan_close(grid.scan);
    return status;
}

/* --- several files: a sample each ------------------------------------------------------------ */

static stk_status scan_member(struct shard *shard, const struct zip_member *member,
                              struct stk_error *err)
{
    struct extent extent = {member->offset, member->size, shard->number};
    stk_status status = STK_OK;
    if (!is_array(member)) {
        shard->skipped++;
        return STK_OK;
    }
    if (member->is_deflated) {
        struct chunk chunk;
        uint32_t number = 0;
        status = member_chunk(shard->input, member, shard->number, 1, &chunk, err);
        if (!status)
            status = index_part_chunk(shard->part, &chunk, &number, err);
        extent.offset = 0;
        extent.object = INDEX_PART_CHUNK | number;
    }
    return status
               ? status
               : index_part_extent(shard->part, member->name, strlen(member->name), &extent, err);
}

static size_t key_len_of(const char *name)
{
    size_t len = strlen(name);
    return len > 4 && !strcasecmp(name + len - 4, ".npz") ? len - 4 : len;
}

static stk_status npz_scan(struct shard *shard, struct stk_error *err)
{
    const char *name = shard->object->name;
    struct scan *scan = NULL;
    struct zip_directory directory = {0};
    uint32_t arrays = 0;
    stk_status status = scan_open(&scan, shard->input->root, name, err);
    if (!status)
        status = zip_directory_read(&directory, scan, err);
    for (uint32_t i = 0; i < directory.count; i++)
        arrays += is_array(&directory.members[i]) != 0;
    if (!status && arrays > 0)
        status = index_part_sample(shard->part, name, key_len_of(name), err);
    for (uint32_t i = 0; !status && i < directory.count; i++) {
        status = scan_member(shard, &directory.members[i], err);
        if (status) {
            fail_at(err, scan_name(scan), directory.members[i].offset);
            fail_field(err, directory.members[i].name);
        }
    }
    if (!status)
        status = shard_tick(shard, shard->object->size, err);
    zip_directory_free(&directory);
    scan_close(scan);
    return status;
}

static stk_status npz_build(const struct format_input *input, struct index_builder *builder,
                            struct stk_error *err)
{
    if (input->object_count == 1)
        return npz_build_grid(input, builder, err);
    return crew_run(input, builder, npz_scan, err);
}

#define CHECK_PIECE (1u << 20)

static stk_status check_stored(const struct zip_member *member, struct scan *scan,
                               const struct format_step *step, struct stk_error *err)
{
    uint8_t *piece = memory_alloc(CHECK_PIECE);
    stk_status status = piece ? STK_OK : fail_memory(err, CHECK_PIECE);
    uint32_t check = 0;
    for (uint64_t done = 0; !status && done < member->size;) {
        uint64_t left = member->size - done;
        size_t len = left < CHECK_PIECE ? (size_t)left : CHECK_PIECE;
        status = scan_read_all(scan, member->offset + done, piece, len, err);
        if (!status)
            check = filter_crc32(check, piece, len);
        if (!status && step->take(step->user, len))
            status = fail(err, STK_CANCELLED, "stopped on request");
        done += len;
    }
    if (!status && check != member->check)
        status = fail(err, STK_CORRUPT, "the data has a wrong checksum (CRC-32)");
    memory_free(piece);
    return status;
}

/* Values that are read in place are read in part and in any order, so their sum is looked at only
 * here; a chunk's whenever it is decoded. */
static stk_status npz_check(struct scan *scan, const struct format_step *step,
                            struct stk_error *err)
{
    struct zip_directory directory = {0};
    stk_status status = zip_directory_read(&directory, scan, err);
    for (uint32_t i = 0; !status && i < directory.count; i++) {
        const struct zip_member *member = &directory.members[i];
        if (!is_array(member) || member->is_deflated)
            continue;
        status = check_stored(member, scan, step, err);
        if (status && status != STK_CANCELLED) {
            fail_at(err, scan_name(scan), member->offset);
            fail_field(err, member->name);
        }
    }
    zip_directory_free(&directory);
    return status;
}

static int npz_sniff(const struct stk_bytes *head)
{
    return head->len >= 4 &&
           (!memcmp(head->data, "PK\3\4", 4) || !memcmp(head->data, "PK\5\6", 4)); /* empty */
}

static const char *const npz_suffixes[] = {".npz", NULL};

const struct format_ops npz_format = {.name = "npz",
                                      .suffixes = npz_suffixes,
                                      .sniff = npz_sniff,
                                      .build = npz_build,
                                      .check = npz_check};
