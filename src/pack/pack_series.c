#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/context.h"
#include "base/fail.h"
#include "base/memory.h"
#include "pack/append_series.h"
#include "pack/series_fit.h"
#include "pack/series_pack.h"
#include "pack/series_upload.h"
#include "store/upload_place.h"

#define DEFAULT_MEMORY (UINT64_C(256) << 20)

/* --- before anything is read ----------------------------------------------------------------- */

static stk_status check_options(const struct stk_series_options *options, struct stk_error *err)
{
    enum stk_dtype dtype;
    int has_time = options->time != NULL;
    stk_status status = STK_OK;

    if (!options->out || !options->out[0])
        return fail(err, STK_USAGE, "a series needs a folder to be written to");
    if ((unsigned)options->missing > STK_MISSING_ZERO ||
        (unsigned)options->scaler > STK_SCALER_NONE || (unsigned)options->scale > STK_SCALE_LATE)
        return fail(err, STK_USAGE,
                    "an option of the series has a value that is not one of its own");
    status = series_pack_dtype(options->dtype, &dtype, err);
    if (!status && options->split && !options->append)
        status = series_split_check(options->split, has_time, err);
    if (!status && options->fit_on && !options->append)
        status = series_fit_on_check(options->fit_on, has_time, err);
    return status;
}

/* --- the metadata ---------------------------------------------------------------------------- */

static char *text_copy(const char *text)
{
    return text ? memory_text(text, strlen(text)) : NULL;
}

/* What the ingest found becomes the meta's. */
static stk_status take_columns(struct series_pack *pack, struct stk_error *err)
{
    const struct stk_series_options *options = pack->options;
    struct series_ingest *ingest = &pack->ingest;
    struct series_meta *meta = &pack->meta;

    meta->columns = ingest->columns;
    meta->column_count = ingest->column_count;
    meta->feature_count = ingest->feature_count;
    meta->labels = ingest->labels;
    meta->label_count = ingest->label_count;
    meta->statics = ingest->statics;
    meta->static_count = ingest->static_count;
    meta->categories = ingest->categories;
    meta->category_count = ingest->category_count;
    meta->time_unit = ingest->time_unit;
    meta->time_zone = ingest->time_zone;
    meta->missing = ingest->missing;
    ingest->columns = ingest->statics = NULL;
    ingest->labels = NULL;
    ingest->categories = NULL;
    ingest->category_count = ingest->column_count = ingest->static_count = 0;
    ingest->time_unit = ingest->time_zone = NULL;
    ingest->missing = NULL;
    meta->entity_column = text_copy(options->entity);
    meta->time_column = text_copy(options->time);
    meta->missing_policy = text_copy(series_pack_policy(options->missing));
    if ((options->entity && !meta->entity_column) || (options->time && !meta->time_column) ||
        !meta->missing_policy)
        return fail_memory(err, 0);
    return STK_OK;
}

/* NaN stands for what no row has said: rows that are added later may say it. */
static void tell_statics(const struct series_pack *pack)
{
    const struct series_meta *meta = &pack->meta;

    for (uint32_t k = 0; k < meta->static_count; k++) {
        uint64_t missing = 0;
        for (uint64_t i = 0; i < meta->entity_count; i++)
            missing += isnan(pack->statics[i * meta->static_count + k]) ? 1 : 0;
        if (missing)
            context_notice(pack->context,
                           "static column '%.60s' has no value for %" PRIu64
                           " of the entities: it is NaN in their windows",
                           meta->statics[k], missing);
    }
}

/* Entities that have rows, one behind the other; names and statics come from the ingest. */
static stk_status take_entities(struct series_pack *pack, struct stk_error *err)
{
    struct series_ingest *ingest = &pack->ingest;
    struct series_meta *meta = &pack->meta;
    uint64_t row = 0;
    uint32_t statics = meta->static_count;
    stk_status status = STK_OK;

    meta->entities = memory_zero(ingest->entity_count, sizeof(*meta->entities));
    pack->statics = memory_zero(ingest->entity_count * statics + 1, sizeof(float));
    if (!meta->entities || !pack->statics)
        return fail_memory(err, ingest->entity_count * sizeof(*meta->entities));
    for (uint64_t i = 0; i < ingest->entity_count; i++) {
        struct ingest_entity *from = &ingest->entities[i];
        if (!from->rows)
            continue;
        for (uint32_t k = 0; !status && k < statics; k++)
            status = series_pack_static(pack, from->name, k, from->statics[k],
                                        &pack->statics[meta->entity_count * statics + k], err);
        meta->entities[meta->entity_count++] =
            (struct series_entity){.name = from->name, .start = row, .end = row + from->rows};
        from->name = NULL;
        row += from->rows;
    }
    meta->rows = row;
    meta->dropped_rows = ingest->dropped_rows;
    if (meta->entity_count < ingest->entity_count)
        context_notice(pack->context, "%" PRIu64 " entities have no row without a missing value",
                       ingest->entity_count - meta->entity_count);
    if (!status)
        tell_statics(pack);
    return status;
}

static stk_status make_meta(struct series_pack *pack, struct stk_error *err)
{
    const struct stk_series_options *options = pack->options;
    struct series_meta *meta = &pack->meta;
    stk_status status = series_pack_dtype(options->dtype, &meta->dtype, err);

    meta->sequence = (struct series_sequence){.window = options->window ? options->window : 60,
                                              .horizon = options->horizon ? options->horizon : 1,
                                              .stride = options->stride ? options->stride : 1,
                                              .gap = options->gap};
    meta->late = options->scale == STK_SCALE_LATE;
    meta->has_hashes = 1;
    if (!status)
        status = take_columns(pack, err);
    return status ? status : take_entities(pack, err);
}

/* --- splits and the scaler ------------------------------------------------------------------- */

static int needs_mean(const struct series_pack *pack)
{
    return pack->options->missing == STK_MISSING_MEAN ||
           pack->options->missing == STK_MISSING_FFILL;
}

static int fits_all_rows(const struct stk_series_options *options)
{
    return options->fit_on ? strcmp(options->fit_on, "all") == 0 : options->split == NULL;
}

static stk_status fit_ranges(struct series_pack *pack, const struct series_times *times,
                             struct stk_error *err)
{
    struct series_meta *meta = &pack->meta;
    struct series_range *ranges = memory_zero(meta->entity_count, sizeof(*ranges));
    stk_status status;

    if (!ranges)
        return fail_memory(err, meta->entity_count * sizeof(*ranges));
    status = series_fit_ranges(meta, pack->options->fit_on, times, ranges, err);
    const struct series_fit fit = {.context = pack->context,
                                   .threads = pack->options->threads,
                                   .memory = pack->memory,
                                   .fd = row_spool_values_fd(pack->ingest.spool),
                                   .label = series_folder_hidden(pack->folder),
                                   .dtype = row_spool_dtype(pack->ingest.spool),
                                   .columns = meta->column_count,
                                   .names = (const char *const *)meta->columns,
                                   .skip = pack->ingest.is_category,
                                   .kind = series_pack_kind(pack->options->scaler),
                                   .ranges = ranges,
                                   .range_count = meta->entity_count};
    if (!status)
        status = series_fit_run(&fit, &meta->scaler, err);
    memory_free(ranges);
    return status;
}

static stk_status fit_rows(struct series_pack *pack, const struct series_times *times,
                           struct stk_error *err)
{
    struct series_meta *meta = &pack->meta;
    enum scaler_kind kind = series_pack_kind(pack->options->scaler);
    int is_needed = kind != SCALER_NONE || (needs_mean(pack) && pack->missing);
    stk_status status;

    if (!is_needed)
        status = scaler_init(&meta->scaler, kind, meta->column_count, err);
    else if (pack->ingest.fit)
        status =
            fit_scaler(pack->ingest.fit, (const char *const *)meta->columns, &meta->scaler, err);
    else
        status = fit_ranges(pack, times, err);
    if (status || kind == SCALER_NONE || fits_all_rows(pack->options))
        return status;
    meta->fit_on = text_copy(pack->options->fit_on ? pack->options->fit_on : meta->split_names[0]);
    return meta->fit_on ? STK_OK : fail_memory(err, 0);
}

static stk_status split_and_fit(struct series_pack *pack, struct stk_error *err)
{
    int times_fd = row_spool_times_fd(pack->ingest.spool);
    struct series_time_file file = {times_fd, series_folder_hidden(pack->folder)};
    const struct series_times times = {series_time_file_read, &file, pack->meta.rows};
    const struct series_times *given = times_fd >= 0 ? &times : NULL;
    stk_status status = STK_OK;

    if (pack->options->split)
        status = series_split_apply(&pack->meta, pack->options->split, given, err);
    if (!status)
        status = fit_rows(pack, given, err);
    if (!status)
        series_pack_notices(pack, &pack->meta);
    return status;
}

/* --- the array ------------------------------------------------------------------------------- */

static stk_status make_array(struct series_pack *pack, struct stk_error *err)
{
    struct series_meta *meta = &pack->meta;
    struct finish_entity *entities = memory_zero(meta->entity_count, sizeof(*entities));
    stk_status status;

    if (!entities)
        return fail_memory(err, meta->entity_count * sizeof(*entities));
    for (uint64_t i = 0; i < meta->entity_count; i++)
        entities[i] =
            (struct finish_entity){.name = meta->entities[i].name,
                                   .rows = meta->entities[i].end - meta->entities[i].start,
                                   .number = i};
    const struct series_pack_values values = {
        .meta = meta, .entities = entities, .entity_count = meta->entity_count};
    status = series_pack_values(pack, &values, SERIES_ARRAY, SERIES_TIME, err);
    memory_free(entities);
    if (!status)
        series_fingerprint(meta, &pack->hashes);
    return status;
}

/* --- all ------------------------------------------------------------------------------------- */

static stk_status pack_new(struct series_pack *pack, struct stk_series_result *result,
                           struct stk_error *err)
{
    const struct stk_series_options *options = pack->options;
    enum series_folder_mode mode = options->force ? SERIES_FOLDER_REPLACE : SERIES_FOLDER_NEW;
    stk_status status = series_folder_open(&pack->folder, options->out, mode, err);

    pack->ingest.fit_all =
        fits_all_rows(options) && (options->scaler != STK_SCALER_NONE || needs_mean(pack));
    if (!status)
        status = series_pack_rows(pack, NULL, err);
    if (!status)
        status = make_meta(pack, err);
    if (!status)
        status = split_and_fit(pack, err);
    if (!status)
        status = make_array(pack, err);
    if (!status)
        status = series_files_write(pack->folder, &pack->meta, &pack->hashes, pack->statics, err);
    if (!status)
        status = series_folder_commit(pack->folder, err);
    if (!status)
        *result =
            (struct stk_series_result){.rows = pack->meta.rows,
                                       .entities = pack->meta.entity_count,
                                       .added_rows = pack->meta.rows,
                                       .dropped_rows = pack->meta.dropped_rows,
                                       .missing = pack->missing,
                                       .bytes = pack->meta.rows * series_row_bytes(&pack->meta),
                                       .sorted = pack->was_sorted};
    return status;
}

/* Packed here, then sent. */
static stk_status pack_and_send(struct series_pack *pack, struct stk_series_result *result,
                                struct stk_error *err)
{
    const struct stk_series_options *options = pack->options;
    struct stk_series_options local = *options;
    struct series_upload *upload = NULL;
    stk_status status;

    if (options->append) {
        fail(err, STK_UNSUPPORTED, "a series on the network cannot be added to");
        fail_at(err, options->out, STK_NOWHERE);
        fail_remedy(err, "add to a copy on this machine, then replace the one there");
        return STK_UNSUPPORTED;
    }
    status = series_upload_open(&upload, pack->context, options->out, options->force, err);
    if (status)
        return status;
    local.out = series_upload_path(upload);
    pack->options = &local;
    status = pack_new(pack, result, err);
    if (!status)
        status = series_upload_send(upload, err);
    series_pack_reset(pack); /* its files lie in what ends here */
    pack->options = options;
    series_upload_close(upload);
    return status;
}

stk_status stk_pack_series(struct stk_context *context, struct stk_tables *tables,
                           const struct stk_series_options *options,
                           struct stk_series_result *result, struct stk_error *err)
{
    struct series_pack pack = {.context = context, .options = options, .tables = tables};
    struct stk_series_result made = {0};
    stk_status status = check_options(options, err);

    pack.memory = options->memory ? options->memory : DEFAULT_MEMORY;
    if (!status && upload_place_is(options->out))
        status = pack_and_send(&pack, &made, err);
    else if (!status)
        status =
            options->append ? append_series_run(&pack, &made, err) : pack_new(&pack, &made, err);
    series_pack_reset(&pack);
    if (tables->close)
        tables->close(tables->user);
    if (result)
        *result = made;
    return status;
}
