/* The table: a row of extents a sample. This is the hot path of every epoch. */
#include <string.h>

#include "base/fail.h"
#include "index/index_view.h"
#include "index/sample_name.h"

/* In a shuffled order each row is a cache miss, and in a folder each object another one: rows are
 * asked for TABLE_AHEAD samples before their turn, their objects half of that. Measured with a
 * million samples in random order on an EPYC, one thread: 16 ns a sample in tars (two fields), 20
 * ns in a folder (one field, a million objects); without the prefetches 62 and 90 ns. */
#define TABLE_AHEAD 16u
#define TABLE_MANY_OBJECTS 4096u /* fewer stay in the cache */

/* Always inlined: GCC takes a function that only prefetches for one without effect and drops the
 * call. */
__attribute__((always_inline)) static inline void table_prefetch(const struct index *index,
                                                                 const uint64_t *samples,
                                                                 uint32_t i, uint32_t n)
{
    uint64_t stride = index->header.field_count, count = index->header.samples;
    if (i + TABLE_AHEAD < n && samples[i + TABLE_AHEAD] < count) {
        const struct index_file_row *ahead = &index->rows[samples[i + TABLE_AHEAD] * stride];
        __builtin_prefetch(ahead);
        __builtin_prefetch(ahead + stride - 1);
    }
    if (index->header.object_count < TABLE_MANY_OBJECTS || i + TABLE_AHEAD / 2 >= n ||
        samples[i + TABLE_AHEAD / 2] >= count)
        return;
    const struct index_file_row *row = &index->rows[samples[i + TABLE_AHEAD / 2] * stride];
    for (uint64_t f = 0; f < stride; f++) { /* a wrong number only wastes the prefetch */
        if (row[f].object < index->header.object_count)
            __builtin_prefetch(&index->objects[row[f].object]);
    }
}

static stk_status table_long(const struct index *index, uint64_t row, uint64_t *length,
                             struct stk_error *err)
{
    const struct index_file_overflow *items = index_section(index, INDEX_OVERFLOW);
    uint64_t low = 0, high = index->header.sections[INDEX_OVERFLOW].length / sizeof(*items);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        stk_status status =
            index_touch(index, INDEX_OVERFLOW, middle * sizeof(*items), sizeof(*items), err);
        if (status)
            return status;
        if (items[middle].row == row) {
            *length = items[middle].length;
            return STK_OK;
        }
        if (items[middle].row < row)
            low = middle + 1;
        else
            high = middle;
    }
    return index_fail_extent(index, row / index->header.field_count, err);
}

static stk_status table_sample(const struct index *index, uint64_t sample, struct extent *out,
                               struct stk_error *err)
{
    uint64_t stride = index->header.field_count;
    if (sample >= index->header.samples)
        return fail(err, STK_NOT_FOUND, "the index has no sample %llu", (unsigned long long)sample);
    if (stride == 0)
        return STK_OK;
    const struct index_file_row *row = &index->rows[sample * stride];
    stk_status status =
        index_touch(index, INDEX_ROWS, sample * stride * sizeof(*row), stride * sizeof(*row), err);
    for (uint64_t f = 0; !status && f < stride; f++) {
        out[f] = (struct extent){row[f].offset, row[f].length, row[f].object};
        if (row[f].object >= EXTENT_VALUE)
            continue;
        if (row[f].length == INDEX_LONG)
            status = table_long(index, sample * stride + f, &out[f].length, err);
        if (!status)
            status = index_place(index, sample, &out[f], err);
    }
    return status;
}

static stk_status table_resolve(const struct index *index, const uint64_t *samples, uint32_t n,
                                struct extent *out, struct stk_error *err)
{
    uint64_t stride = index->header.field_count;
    stk_status status = STK_OK;
    for (uint32_t i = 0; !status && i < n && i < TABLE_AHEAD; i++) {
        if (samples[i] < index->header.samples)
            __builtin_prefetch(&index->rows[samples[i] * stride]);
    }
    for (uint32_t i = 0; !status && i < n; i++) {
        table_prefetch(index, samples, i, n);
        status = table_sample(index, samples[i], out + i * stride, err);
    }
    return status;
}

/* The key is the beginning of the name of an object that the sample lies in; all of them give the
 * same. */
static stk_status table_name_key(const struct index *index, uint64_t sample, struct stk_bytes *key,
                                 struct stk_error *err)
{
    uint64_t stride = index->header.field_count;
    const struct index_file_row *row = &index->rows[sample * stride];
    stk_status status = STK_OK;
    if (stride > 0)
        status = index_touch(index, INDEX_ROWS, sample * stride * sizeof(*row),
                             stride * sizeof(*row), err);
    for (uint64_t f = 0; !status && f < stride; f++) {
        struct index_object object;
        if (row[f].object >= index->header.object_count)
            continue;
        status = index_object(index, row[f].object, &object, err);
        if (status)
            return status;
        size_t len = 0;
        if (!sample_name_split(object.name, strlen(object.name), &len))
            break;
        *key = (struct stk_bytes){(const uint8_t *)object.name, len};
        return STK_OK;
    }
    return status ? status : index_fail_extent(index, sample, err);
}

static stk_status table_key(const struct index *index, uint64_t sample, char *scratch,
                            struct stk_bytes *key, struct stk_error *err)
{
    (void)scratch;
    if (index->header.key_source == INDEX_KEYS_NAMES)
        return table_name_key(index, sample, key, err);
    const uint64_t *ends = index_section(index, INDEX_KEYS);
    const uint8_t *bytes = index_section(index, INDEX_KEY_BYTES);
    stk_status status =
        index_touch(index, INDEX_KEYS, sample * sizeof(*ends), 2 * sizeof(*ends), err);
    if (status)
        return status;
    uint64_t begin = ends[sample], end = ends[sample + 1];
    if (begin > end || end > index->header.sections[INDEX_KEY_BYTES].length)
        return index_fail_extent(index, sample, err);
    if (end > begin)
        status = index_touch(index, INDEX_KEY_BYTES, begin, end - begin, err);
    if (!status)
        *key = (struct stk_bytes){bytes + begin, end - begin};
    return status;
}

const struct index_ops table_index_ops = {.resolve = table_resolve, .key = table_key};
