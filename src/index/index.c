#include "index/index.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "index/index_heads.h"
#include "index/index_view.h"

/* --- blocks ---------------------------------------------------------------------------------- */

static uint64_t block_count(uint64_t length)
{
    return (length >> INDEX_BLOCK_SHIFT) + ((length & (INDEX_BLOCK - 1)) != 0);
}

stk_status index_check_block(const struct index *index, enum index_section_number number,
                             uint64_t block, struct stk_error *err)
{
    const struct index_section *section = &index->header.sections[number];
    const uint64_t *checks = index_section(index, INDEX_CHECKS);
    uint64_t start = block << INDEX_BLOCK_SHIFT;
    uint64_t left = section->length - start;
    size_t length = left < INDEX_BLOCK ? (size_t)left : INDEX_BLOCK;
    uint64_t check = section->first_check + block;
    uint64_t hash = hash_bytes(index->map + section->offset + start, length, check);
    if (hash != checks[check]) {
        fail(err, STK_CORRUPT, "a block of the index has a wrong checksum");
        fail_at(err, index->path, section->offset + start);
        fail_remedy(err, "delete this file: the index will be made anew");
        return STK_CORRUPT;
    }
    atomic_store_explicit(&index->checked[check], 1, memory_order_relaxed);
    return STK_OK;
}

static stk_status index_touch_all(const struct index *index, enum index_section_number number,
                                  struct stk_error *err)
{
    uint64_t length = index->header.sections[number].length;
    return length ? index_touch(index, number, 0, length, err) : STK_OK;
}

stk_status index_verify(const struct index *index, struct stk_error *err)
{
    if (index->in_memory)
        return STK_OK; /* no disk had the chance to change it */
    for (int number = 0; number < INDEX_CHECKS; number++) {
        uint64_t blocks = block_count(index->header.sections[number].length);
        for (uint64_t block = 0; block < blocks; block++) {
            stk_status status = index_check_block(index, number, block, err);
            if (status)
                return status;
        }
    }
    return STK_OK;
}

/* --- the header ------------------------------------------------------------------------------ */

static stk_status index_bad(const struct index *index, stk_status status, const char *what,
                            struct stk_error *err)
{
    fail(err, status, "%s", what);
    fail_at(err, index->path, 0);
    fail_remedy(err, "delete this file: the index will be made anew");
    return status;
}

static stk_status index_check_header(const struct index *index, uint64_t size,
                                     struct stk_error *err)
{
    struct index_header copy = index->header;
    if (memcmp(copy.magic, INDEX_MAGIC, sizeof(copy.magic)))
        return index_bad(index, STK_CORRUPT, "this is not an index file", err);
    if (copy.version != INDEX_VERSION)
        return index_bad(index, STK_UNSUPPORTED, "the index is of another version", err);
    copy.checksum = 0;
    if (hash_bytes(&copy, sizeof(copy), 0) != index->header.checksum)
        return index_bad(index, STK_CORRUPT, "the index's header has a wrong checksum", err);
    if (copy.file_size > size)
        return index_bad(index, STK_TRUNCATED, "the index ends too early", err);
    if (copy.file_size != size)
        return index_bad(index, STK_CORRUPT, "the index is longer than its header says", err);
    return STK_OK;
}

/* Not 0 when `count` items of `size` bytes are just the section's length. */
static int section_holds(const struct index_header *header, enum index_section_number number,
                         uint64_t count, uint64_t size)
{
    uint64_t bytes;
    return checked_mul(count, size, &bytes) && bytes == header->sections[number].length;
}

/* The numbers of things against the lengths of the sections that hold them. */
static int header_counts_fit(const struct index_header *header)
{
    uint64_t cells = 0, keys = 0;
    if (!checked_mul(header->samples, header->field_count, &cells) || header->samples == UINT64_MAX)
        return 0;
    if (header->kind == INDEX_TABLE && header->key_source == INDEX_KEYS_STORED)
        keys = header->samples + 1;
    if (header->kind == INDEX_GRID)
        cells = 0;
    if ((header->kind != INDEX_TABLE && header->kind != INDEX_GRID) ||
        (header->kind == INDEX_GRID) != (header->key_source == INDEX_KEYS_NUMBERS) ||
        header->key_source > INDEX_KEYS_NUMBERS || header->field_count > INDEX_MAX_FIELDS ||
        header->object_count >= INDEX_PART_CHUNK || header->chunk_count >= INDEX_PART_CHUNK - 2)
        return 0;
    return section_holds(header, INDEX_OBJECTS, header->object_count,
                         sizeof(struct index_file_object)) &&
           section_holds(header, INDEX_FIELDS, header->field_count,
                         sizeof(struct index_file_field)) &&
           section_holds(header, INDEX_CHUNKS, header->chunk_count,
                         sizeof(struct index_file_chunk)) &&
           section_holds(header, INDEX_CLASSES, header->class_count, sizeof(uint64_t)) &&
           section_holds(header, INDEX_ROWS, cells, sizeof(struct index_file_row)) &&
           section_holds(header, INDEX_KEYS, keys, sizeof(uint64_t)) &&
           header->sections[INDEX_OVERFLOW].length % sizeof(struct index_file_overflow) == 0 &&
           header->sections[INDEX_RUNS].length % sizeof(struct index_file_run) == 0;
}

/* Every section inside the file, its blocks' checksums inside CHECKS, texts ended by NUL. */
static int header_sections_fit(const struct index *index)
{
    const struct index_header *header = &index->header;
    uint64_t blocks = 0;
    for (int number = 0; number < INDEX_SECTION_COUNT; number++) {
        const struct index_section *section = &header->sections[number];
        if (section->offset % INDEX_ALIGN || section->offset < sizeof(*header) ||
            !checked_inside(section->offset, section->length, header->file_size))
            return 0;
        if (number != INDEX_CHECKS && section->first_check != blocks)
            return 0;
        if (number != INDEX_CHECKS)
            blocks += block_count(section->length);
    }
    if (!section_holds(header, INDEX_CHECKS, blocks, sizeof(uint64_t)) || !index_heads_fit(header))
        return 0;
    const struct index_section *strings = &header->sections[INDEX_STRINGS];
    const struct index_section *names = &header->sections[INDEX_NAMES];
    if (strings->length == 0 || index->map[strings->offset + strings->length - 1])
        return 0;
    return names->length == 0 || !index->map[names->offset + names->length - 1];
}

/* --- opening --------------------------------------------------------------------------------- */

stk_status index_text(const struct index *index, enum index_section_number number, uint64_t offset,
                      const char **out, struct stk_error *err)
{
    *out = NULL;
    const struct index_section *section = &index->header.sections[number];
    const char *base = index_section(index, number);
    if (offset >= section->length)
        return index_bad(index, STK_CORRUPT, "a name lies outside the index's names", err);
    uint64_t at = offset;
    for (;;) { /* block by block: none is read before it is checked */
        stk_status status = index_touch(index, number, at, 1, err);
        if (status)
            return status;
        uint64_t end = (at | (INDEX_BLOCK - 1)) + 1;
        if (end > section->length)
            end = section->length;
        if (memchr(base + at, 0, end - at))
            break;
        if (end == section->length)
            return index_bad(index, STK_CORRUPT, "a name in the index has no end", err);
        at = end;
    }
    *out = base + offset;
    return STK_OK;
}

static int tensor_load(const struct index_file_tensor *from, struct stk_tensor *to)
{
    *to = (struct stk_tensor){.rank = -1};
    if (from->rank == -1)
        return 1;
    if (from->rank < 0 || from->rank > STK_MAX_RANK || from->dtype >= STK_DTYPE_COUNT)
        return 0;
    to->rank = from->rank;
    to->dtype = (enum stk_dtype)from->dtype;
    memcpy(to->shape, from->shape, sizeof(to->shape));
    return stk_tensor_size(to) != UINT64_MAX;
}

static stk_status index_load_field(struct index *index, uint32_t number, struct stk_error *err)
{
    const struct index_file_field *from = &index->file_fields[number];
    struct index_field *to = &index->fields[number];
    uint64_t runs = index->header.sections[INDEX_RUNS].length / sizeof(struct index_file_run);
    stk_status status = index_text(index, INDEX_STRINGS, from->name, &to->name, err);
    if (status)
        return status;
    to->min_length = from->min_length;
    to->max_length = from->max_length;
    to->missing = from->missing;
    to->byteswap = from->byteswap != 0;
    int is_grid = index->header.kind == INDEX_GRID;
    if (!tensor_load(&from->row, &to->row) || (is_grid && to->row.rank < 0) ||
        !checked_inside(from->first_run, from->run_count, runs))
        return index_bad(index, STK_CORRUPT, "a field of the index makes no sense", err);
    return STK_OK;
}

/* The small sections, wholly: fields, classes and the names of both. */
static stk_status index_load(struct index *index, struct stk_error *err)
{
    const struct index_header *header = &index->header;
    const char *text;
    stk_status status = index_touch_all(index, INDEX_FIELDS, err);
    if (!status)
        status = index_touch_all(index, INDEX_CLASSES, err);
    if (!status)
        status = index_text(index, INDEX_STRINGS, header->root, &text, err);
    if (!status)
        status = index_text(index, INDEX_STRINGS, header->format, &text, err);
    size_t bytes = header->sections[INDEX_FIELDS].length;
    index->fields = memory_zero(header->field_count + 1u, sizeof(*index->fields));
    struct index_file_field *copy = memory_alloc(bytes);
    index->file_fields = copy;
    if (!status && (!index->fields || !copy))
        status = fail_memory(err, bytes);
    if (!status && bytes)
        memcpy(copy, index_section(index, INDEX_FIELDS), bytes);
    for (uint32_t i = 0; !status && i < header->field_count; i++)
        status = index_load_field(index, i, err);
    const uint64_t *classes = index_section(index, INDEX_CLASSES);
    for (uint32_t i = 0; !status && i < header->class_count; i++)
        status = index_text(index, INDEX_STRINGS, classes[i], &text, err);
    return status;
}

static stk_status index_map(struct index *index, int fd, struct stk_error *err)
{
    struct stat info;
    if (fstat(fd, &info))
        return fail_errno(err, errno, "cannot look at the index");
    uint64_t size = (uint64_t)info.st_size;
    if (!S_ISREG(info.st_mode) || size < sizeof(index->header))
        return index_bad(index, STK_TRUNCATED, "the index is too short to be one", err);
    void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return fail_errno(err, errno, "cannot map the index");
    index->map = map;
    memcpy(&index->header, map, sizeof(index->header));
    stk_status status = index_check_header(index, size, err);
    index->header.file_size = size; /* what index_close unmaps */
    if (status)
        return status;
    if (!header_counts_fit(&index->header) || !header_sections_fit(index))
        return index_bad(index, STK_CORRUPT, "the index's sections make no sense", err);
    index->ops = index->header.kind == INDEX_TABLE ? &table_index_ops : &grid_index_ops;
    index->rows = index_section(index, INDEX_ROWS);
    index->objects = index_section(index, INDEX_OBJECTS);
    uint64_t blocks = index->header.sections[INDEX_CHECKS].length / sizeof(uint64_t);
    index->checked = memory_zero(blocks + 1, 1);
    return index->checked ? STK_OK : fail_memory(err, blocks);
}

stk_status index_open(struct index **out, const char *path, struct stk_error *err)
{
    *out = NULL;
    stk_status status = STK_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct index *index = memory_zero(1, sizeof(*index));
    if (fd < 0) {
        status = fail_errno(err, errno, "cannot open the index");
        fail_at(err, path, STK_NOWHERE);
        goto done;
    }
    if (index)
        index->path = memory_text(path, strlen(path));
    if (!index || !index->path) {
        status = fail_memory(err, sizeof(*index));
        goto done;
    }
    status = index_map(index, fd, err);
    if (!status)
        status = index_load(index, err);
    if (status)
        goto done;
    *out = index;
    index = NULL; /* the caller owns it now */
done:
    index_close(index);
    if (fd >= 0)
        close(fd);
    return status;
}

void index_close(struct index *index)
{
    if (!index)
        return;
    if (index->ops && index->ops->reset)
        index->ops->reset(index);
    if (index->in_memory)
        memory_free((void *)index->map);
    else if (index->map)
        munmap((void *)index->map, index->header.file_size);
    memory_free((void *)index->checked);
    memory_free((void *)index->file_fields);
    memory_free(index->fields);
    memory_free(index->path);
    memory_free(index);
}

/* --- what it holds --------------------------------------------------------------------------- */

uint64_t index_samples(const struct index *index)
{
    return index->header.samples;
}

uint32_t index_field_count(const struct index *index)
{
    return index->header.field_count;
}

const struct index_field *index_field(const struct index *index, uint32_t field)
{
    return field < index->header.field_count ? &index->fields[field] : NULL;
}

uint32_t index_object_count(const struct index *index)
{
    return index->header.object_count;
}

stk_status index_object(const struct index *index, uint32_t number, struct index_object *out,
                        struct stk_error *err)
{
    *out = (struct index_object){.name = ""};
    if (number >= index->header.object_count)
        return fail(err, STK_NOT_FOUND, "the index has no object %u", number);
    const struct index_file_object *object = &index->objects[number];
    stk_status status =
        index_touch(index, INDEX_OBJECTS, (uint64_t)number * sizeof(*object), sizeof(*object), err);
    const char *name = NULL;
    if (!status)
        status = index_text(index, INDEX_NAMES, object->name, &name, err);
    if (status)
        return status;
    *out = (struct index_object){.name = name, .size = object->size, .version = object->version};
    return STK_OK;
}

uint32_t index_chunk_count(const struct index *index)
{
    return index->header.chunk_count;
}

stk_status index_chunk(const struct index *index, uint32_t number, struct chunk *out,
                       struct stk_error *err)
{
    *out = (struct chunk){.count = 0};
    if (number >= index->header.chunk_count)
        return fail(err, STK_NOT_FOUND, "the index has no chunk %u", number);
    const struct index_file_chunk *chunk =
        (const struct index_file_chunk *)index_section(index, INDEX_CHUNKS) + number;
    stk_status status =
        index_touch(index, INDEX_CHUNKS, (uint64_t)number * sizeof(*chunk), sizeof(*chunk), err);
    if (status)
        return status;
    struct extent encoded = {chunk->offset, chunk->length, chunk->object};
    if (chunk->object >= index->header.object_count)
        return index_bad(index, STK_CORRUPT, "a chunk of the index lies in no object", err);
    status = index_place(index, STK_NOWHERE, &encoded, err);
    if (status)
        return status;
    *out = (struct chunk){.offset = chunk->offset,
                          .length = chunk->length,
                          .decoded = chunk->decoded,
                          .first = chunk->first,
                          .count = chunk->count,
                          .object = chunk->object,
                          .filter = chunk->filter,
                          .check = chunk->check};
    if (!tensor_load(&chunk->shape, &out->shape) ||
        !checked_inside(chunk->first, chunk->count, index->header.samples))
        return index_bad(index, STK_CORRUPT, "a chunk of the index makes no sense", err);
    if (out->shape.rank < 0)
        out->shape.rank = 0;
    return STK_OK;
}

uint32_t index_class_count(const struct index *index)
{
    return index->header.class_count;
}

const char *index_class(const struct index *index, uint32_t number)
{
    if (number >= index->header.class_count)
        return NULL;
    const uint64_t *classes = index_section(index, INDEX_CLASSES);
    return (const char *)index_section(index, INDEX_STRINGS) + classes[number];
}

const char *index_root(const struct index *index)
{
    return (const char *)index_section(index, INDEX_STRINGS) + index->header.root;
}

const char *index_format(const struct index *index)
{
    return (const char *)index_section(index, INDEX_STRINGS) + index->header.format;
}

const char *index_path(const struct index *index)
{
    return index->path;
}

uint64_t index_size(const struct index *index)
{
    return index->header.file_size;
}

uint64_t index_skipped(const struct index *index)
{
    return index->header.skipped;
}

void index_fingerprint(const struct index *index, uint8_t out[16])
{
    memcpy(out, index->header.fingerprint, 16);
}

/* --- samples --------------------------------------------------------------------------------- */

stk_status index_fail_extent(const struct index *index, uint64_t sample, struct stk_error *err)
{
    fail(err, STK_CORRUPT, "the index points outside the object that it names");
    fail_at(err, index->path, STK_NOWHERE);
    fail_sample(err, sample, NULL, 0);
    fail_remedy(err, "delete this file: the index will be made anew");
    return STK_CORRUPT;
}

stk_status index_place_chunk(const struct index *index, uint64_t sample, struct extent *extent,
                             struct stk_error *err)
{
    uint32_t number = extent->object & ~INDEX_PART_CHUNK;
    if (number >= index->header.chunk_count)
        return index_fail_extent(index, sample, err);
    const struct index_file_chunk *chunk =
        (const struct index_file_chunk *)index_section(index, INDEX_CHUNKS) + number;
    stk_status status =
        index_touch(index, INDEX_CHUNKS, (uint64_t)number * sizeof(*chunk), sizeof(*chunk), err);
    if (status)
        return status;
    if (!checked_inside(extent->offset, extent->length, chunk->decoded))
        return index_fail_extent(index, sample, err);
    extent->object = index->header.object_count + number;
    return STK_OK;
}

stk_status index_resolve(const struct index *index, const uint64_t *samples, uint32_t n,
                         struct extent *out, struct stk_error *err)
{
    return index->ops->resolve(index, samples, n, out, err);
}

stk_status index_key(const struct index *index, uint64_t sample, char *scratch,
                     struct stk_bytes *key, struct stk_error *err)
{
    *key = (struct stk_bytes){NULL, 0};
    if (sample >= index->header.samples)
        return fail(err, STK_NOT_FOUND, "the index has no sample %llu", (unsigned long long)sample);
    return index->ops->key(index, sample, scratch, key, err);
}

void index_trim(const struct index *index)
{
    if (!index->in_memory)
        madvise((void *)index->map, index->header.file_size, MADV_DONTNEED);
}
