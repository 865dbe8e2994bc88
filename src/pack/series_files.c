#include "pack/series_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/hash.h"
#include "pack/read_all.h"

#define FINGERPRINT_SEED UINT64_C(0x73657269657331) /* "series1" */

uint64_t series_row_bytes(const struct series_meta *meta)
{
    return meta->column_count * stk_dtype_size(meta->dtype);
}

uint64_t series_block_count(const struct series_meta *meta, uint64_t rows)
{
    return (rows * series_row_bytes(meta) + SERIES_BLOCK - 1) / SERIES_BLOCK;
}

void series_fingerprint(struct series_meta *meta, const struct series_hashes *hashes)
{
    struct hash128 hash;

    hash128_init(&hash, FINGERPRINT_SEED);
    hash128_add_number(&hash, meta->dtype);
    hash128_add_number(&hash, meta->feature_count);
    for (uint32_t i = 0; i < meta->column_count; i++)
        hash128_add(&hash, meta->columns[i], strlen(meta->columns[i]));
    hash128_add_number(&hash, meta->entity_count);
    for (uint64_t i = 0; i < meta->entity_count; i++) {
        const struct series_entity *entity = &meta->entities[i];
        hash128_add(&hash, entity->name, strlen(entity->name));
        hash128_add_number(&hash, entity->start);
        hash128_add_number(&hash, entity->end);
    }
    hash128_add(&hash, hashes->blocks, hashes->count * sizeof(*hashes->blocks));
    hash128_out(&hash, meta->fingerprint);
}

stk_status series_files_texts(const struct series_meta *meta, struct text *metadata,
                              struct text *scaler, struct stk_error *err)
{
    series_meta_write(meta, metadata);
    if (meta->scaler.count) {
        scaler_json(&meta->scaler, (const char *const *)meta->columns, scaler);
        text_add(scaler, "\n", 1);
    }
    if (metadata->failed || scaler->failed)
        return fail_memory(err, metadata->len + scaler->len);
    return STK_OK;
}

stk_status series_files_write(const struct series_folder *folder, const struct series_meta *meta,
                              const struct series_hashes *hashes, const float *statics,
                              struct stk_error *err)
{
    struct text metadata = {0}, scaler = {0};
    stk_status status = series_files_texts(meta, &metadata, &scaler, err);

    if (!status && meta->has_hashes)
        status = series_folder_write(folder, SERIES_HASHES, hashes->blocks,
                                     hashes->count * sizeof(*hashes->blocks), err);
    if (!status && meta->static_count)
        status =
            series_folder_write(folder, SERIES_STATIC, statics,
                                meta->entity_count * meta->static_count * sizeof(*statics), err);
    if (!status && scaler.len)
        status = series_folder_write(folder, SERIES_SCALER, scaler.data, scaler.len, err);
    if (!status)
        status = series_folder_write(folder, SERIES_METADATA, metadata.data, metadata.len, err);
    text_free(&metadata);
    text_free(&scaler);
    return status;
}

stk_status series_files_read(const struct series_folder *folder, const char *name, void *to,
                             uint64_t size, struct stk_error *err)
{
    int fd = series_folder_open_file(folder, name, O_RDONLY, err);
    stk_status status = fd < 0 ? STK_IO : STK_OK;

    if (!status)
        status = read_all_at(&(struct read_file){fd, name}, 0, to, size, err);
    if (fd >= 0)
        close(fd);
    return status;
}
