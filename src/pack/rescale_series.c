#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "stoker/series.h"

#include "base/fail.h"
#include "base/memory.h"
#include "pack/series_fit.h"
#include "pack/series_pack.h"

#define FIT_MEMORY (UINT64_C(256) << 20)

struct rescale {
    struct stk_context *context;
    struct series_folder *folder;
    struct series_meta meta;
    int array_fd, times_fd;
    uint8_t *skip; /* columns of codes */
    struct series_range *ranges;
};

static stk_status rescale_open(struct rescale *rescale, const char *folder, const char *fit_on,
                               struct stk_error *err)
{
    struct series_meta *meta = &rescale->meta;
    stk_status status = series_folder_open(&rescale->folder, folder, SERIES_FOLDER_CHANGE, err);

    if (!status)
        status = series_meta_load(meta, series_folder_path(rescale->folder), err);
    if (status)
        return status;
    if (!meta->late) {
        fail(err, STK_USAGE, "the series holds scaled values: another scaler needs the raw ones");
        fail_at(err, series_folder_path(rescale->folder), STK_NOWHERE);
        fail_remedy(err, "pack it anew with --scale late");
        return STK_USAGE;
    }
    if (fit_on)
        status = series_fit_on_check(fit_on, meta->time_column != NULL, err);
    if (!status)
        rescale->array_fd = series_folder_open_file(rescale->folder, SERIES_ARRAY, O_RDONLY, err);
    if (!status && meta->time_column)
        rescale->times_fd = series_folder_open_file(rescale->folder, SERIES_TIME, O_RDONLY, err);
    if (!status && (rescale->array_fd < 0 || (meta->time_column && rescale->times_fd < 0)))
        status = STK_IO;
    return status;
}

static stk_status rescale_lists(struct rescale *rescale, const char *fit_on, struct stk_error *err)
{
    struct series_meta *meta = &rescale->meta;
    struct series_time_file file = {rescale->times_fd, SERIES_TIME};
    const struct series_times times = {series_time_file_read, &file, meta->rows};

    rescale->skip = memory_zero(meta->column_count, 1);
    rescale->ranges = memory_zero(meta->entity_count, sizeof(*rescale->ranges));
    if (!rescale->skip || !rescale->ranges)
        return fail_memory(err, meta->entity_count * sizeof(*rescale->ranges));
    for (uint32_t i = 0; i < meta->category_count; i++)
        for (uint32_t k = 0; k < meta->column_count; k++)
            if (strcmp(meta->categories[i].column, meta->columns[k]) == 0)
                rescale->skip[k] = 1;
    return series_fit_ranges(meta, fit_on, rescale->times_fd >= 0 ? &times : NULL, rescale->ranges,
                             err);
}

static stk_status rescale_fit(struct rescale *rescale, enum scaler_kind kind, const char *fit_on,
                              struct stk_error *err)
{
    struct series_meta *meta = &rescale->meta;
    const char *words = fit_on ? fit_on : meta->split_count ? meta->split_names[0] : "all";
    const struct series_fit fit = {.context = rescale->context,
                                   .memory = FIT_MEMORY,
                                   .fd = rescale->array_fd,
                                   .label = series_folder_path(rescale->folder),
                                   .dtype = meta->dtype,
                                   .columns = meta->column_count,
                                   .names = (const char *const *)meta->columns,
                                   .skip = rescale->skip,
                                   .kind = kind,
                                   .ranges = rescale->ranges,
                                   .range_count = meta->entity_count};
    struct scaler scaler = {0};
    stk_status status = kind == SCALER_NONE ? scaler_init(&scaler, kind, meta->column_count, err)
                                            : series_fit_run(&fit, &scaler, err);

    if (status)
        return status;
    scaler_reset(&meta->scaler);
    meta->scaler = scaler;
    memory_free(meta->fit_on);
    meta->fit_on = NULL;
    if (kind == SCALER_NONE || strcmp(words, "all") == 0)
        return STK_OK;
    meta->fit_on = memory_text(words, strlen(words));
    return meta->fit_on ? STK_OK : fail_memory(err, strlen(words));
}

/* metadata.json is what readers go by and comes last: until then all of them scale as before. */
static stk_status rescale_write(const struct rescale *rescale, struct stk_error *err)
{
    struct text metadata = {0}, scaler = {0};
    stk_status status = series_files_texts(&rescale->meta, &metadata, &scaler, err);

    if (!status) {
        series_folder_remove(rescale->folder, SERIES_JOBLIB); /* it is of the old scaler */
        status =
            series_folder_rewrite(rescale->folder, SERIES_SCALER, scaler.data, scaler.len, err);
    }
    if (!status)
        status = series_folder_rewrite(rescale->folder, SERIES_METADATA, metadata.data,
                                       metadata.len, err);
    text_free(&metadata);
    text_free(&scaler);
    return status;
}

stk_status stk_series_rescale(struct stk_context *context, const char *folder,
                              enum stk_scaler_kind scaler, const char *fit_on,
                              struct stk_error *err)
{
    struct rescale rescale = {.context = context, .array_fd = -1, .times_fd = -1};
    stk_status status;

    if ((unsigned)scaler > STK_SCALER_NONE)
        return fail(err, STK_USAGE, "there is no scaler of number %d", (int)scaler);
    status = rescale_open(&rescale, folder, fit_on, err);
    if (!status)
        status = rescale_lists(&rescale, fit_on, err);
    if (!status)
        status = rescale_fit(&rescale, series_pack_kind(scaler), fit_on, err);
    if (!status)
        status = rescale_write(&rescale, err);
    if (rescale.array_fd >= 0)
        close(rescale.array_fd);
    if (rescale.times_fd >= 0)
        close(rescale.times_fd);
    memory_free(rescale.skip);
    memory_free(rescale.ranges);
    series_meta_reset(&rescale.meta);
    series_folder_close(rescale.folder);
    return status;
}
