#include "dataset/series_open.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "dataset/series_state.h"
#include "store/scan.h"

#define OPEN_TRIES 4 /* the folder may be exchanged while we look at it */

/* ---- the files ----------------------------------------------------------------------------- */

struct file_look {
    const char *name;
    uint64_t rows, row_bytes;
    const char *what; /* of one row: "rows", "entities" */
};

static stk_status file_facts_now(const char *folder, const char *name, uint64_t *size,
                                 uint64_t *version, struct stk_error *err)
{
    struct scan *scan = NULL;
    stk_status status = scan_open(&scan, folder, name, err);
    if (status == STK_NOT_FOUND)
        fail_remedy(err, "a series is a folder with metadata.json and all_features.mmap: pack it "
                         "again if packing was cut off");
    if (status)
        return status;
    *size = scan_size(scan);
    *version = scan_version(scan);
    scan_close(scan);
    return STK_OK;
}

static stk_status wrong_size(const char *folder, const struct file_look *look, uint64_t expected,
                             uint64_t found, struct stk_error *err)
{
    struct text path = {0};
    text_format(&path, "%s/%s", folder, look->name);
    stk_status status = found < expected
                            ? fail(err, STK_TRUNCATED,
                                   "cut short: %" PRIu64 " %s of %" PRIu64 " bytes are %" PRIu64
                                   " bytes, but the file has %" PRIu64,
                                   look->rows, look->what, look->row_bytes, expected, found)
                            : fail(err, STK_CORRUPT,
                                   "grown since it was packed: %" PRIu64 " %s of %" PRIu64
                                   " bytes are %" PRIu64 " bytes, but the file has %" PRIu64,
                                   look->rows, look->what, look->row_bytes, expected, found);
    fail_at(err, path.data, found < expected ? found : expected);
    fail_remedy(err, "fetch the file again or pack the series again; in a folder made by hand, "
                     "check rows, features and dtype in metadata.json");
    text_free(&path);
    return status;
}

/* Adds one file to the objects, when its size is what the metadata says. */
static stk_status look_at(struct series *series, const char *folder, const struct file_look *look,
                          struct stk_error *err)
{
    struct index_object *object = &series->objects[series->object_count];
    uint64_t expected;
    *object = (struct index_object){.name = look->name};
    if (!checked_mul(look->rows, look->row_bytes, &expected))
        return fail(err, STK_CORRUPT, "%s: %" PRIu64 " %s of %" PRIu64 " bytes are no file",
                    look->name, look->rows, look->what, look->row_bytes);
    stk_status status = file_facts_now(folder, look->name, &object->size, &object->version, err);
    if (status)
        return status;
    if (object->size < expected || (object->size > expected && !series->unfinished))
        return wrong_size(folder, look, expected, object->size, err);
    series->object_count++;
    return STK_OK;
}

/* The journal of an append that began with the rows that the metadata still speaks of: what lies
 * behind them is not ours yet. */
static stk_status look_for_append(struct series *series, const char *folder, struct stk_error *err)
{
    struct stk_error found = {0};
    uint64_t rows = 0;
    stk_status status = series_journal_load(&rows, folder, &found);
    series->unfinished = !status && rows == series->meta.rows;
    if (status == STK_MEMORY || status == STK_RESOURCE) {
        if (err)
            *err = found;
        return status;
    }
    return STK_OK; /* none, or one that cannot be read: then the sizes must be right */
}

static stk_status look_at_all(struct series *series, const char *folder, struct stk_error *err)
{
    const struct series_meta *meta = &series->meta;
    series->row_bytes = (uint64_t)meta->column_count * stk_dtype_size(meta->dtype);
    series->object_count = 0;
    series->time_object = series->static_object = SERIES_NO_OBJECT;
    stk_status status = look_for_append(series, folder, err);
    struct file_look array = {SERIES_ARRAY, meta->rows, series->row_bytes, "rows"};
    if (!status)
        status = look_at(series, folder, &array, err);
    series->array_bytes = meta->rows * series->row_bytes; /* checked by now */
    if (!status && meta->time_column) {
        struct file_look time = {SERIES_TIME, meta->rows, sizeof(int64_t), "rows"};
        series->time_object = series->object_count;
        status = look_at(series, folder, &time, err);
    }
    if (!status && meta->static_count) {
        struct file_look table = {SERIES_STATIC, meta->entity_count,
                                  meta->static_count * sizeof(float), "entities"};
        series->static_object = series->object_count;
        status = look_at(series, folder, &table, err);
    }
    return status;
}

/* Metadata and files are looked at one after the other: when the folder was exchanged in between,
 * they are not of one series, and we look again. */
static stk_status load(struct series *series, const char *folder, struct stk_error *err)
{
    uint64_t size, before, after;
    stk_status status = STK_OK;
    for (int tries = 0; tries < OPEN_TRIES; tries++) {
        struct stk_error ignored;
        status = file_facts_now(folder, SERIES_METADATA, &size, &before, err);
        if (status)
            return status;
        series_meta_reset(&series->meta);
        status = series_meta_load(&series->meta, folder, err);
        if (!status)
            status = look_at_all(series, folder, err);
        if (!file_facts_now(folder, SERIES_METADATA, &size, &after, &ignored) && before == after)
            return status;
    }
    status = fail(err, STK_STALE, "metadata.json changes while it is read");
    fail_at(err, folder, STK_NOWHERE);
    fail_remedy(err, "wait until whoever packs the series is done");
    return status;
}

static stk_status check_dtype(const struct series_meta *meta, const char *folder,
                              struct stk_error *err)
{
    if (meta->dtype == STK_F32 || meta->dtype == STK_F16 || meta->dtype == STK_BF16 ||
        meta->dtype == STK_F64)
        return STK_OK;
    stk_status status = fail(err, STK_UNSUPPORTED, "a series of %s: windows are of floats",
                             stk_dtype_name(meta->dtype));
    fail_at(err, folder, STK_NOWHERE);
    fail_remedy(err, "dtype in metadata.json is one of float32, float16, bfloat16, float64");
    return status;
}

/* ---- the fingerprint ----------------------------------------------------------------------- */

static void hash_text(struct hash128 *hash, const char *text)
{
    hash128_add(hash, text, strlen(text));
}

static void hash_columns(struct hash128 *hash, const struct series_columns *columns)
{
    hash128_add_number(hash, columns->count);
    for (uint32_t i = 0; i < columns->count; i++)
        hash128_add_number(hash, columns->numbers[i]);
}

static void hash_scaler(struct hash128 *hash, const struct series_meta *meta)
{
    hash128_add_number(hash, (uint64_t)meta->late);
    for (uint32_t i = 0; meta->late && i < meta->scaler.count; i++) {
        hash128_add(hash, &meta->scaler.columns[i].center, sizeof(double));
        hash128_add(hash, &meta->scaler.columns[i].scale, sizeof(double));
    }
}

/* Of what samples are made of: a metadata.json edited by hand keeps the fingerprint of its values,
 * so that alone would not do. Entities and windows are added by the index. */
static void fingerprint(const struct series *series, uint8_t out[16])
{
    const struct series_meta *meta = &series->meta;
    struct hash128 hash;
    hash128_init(&hash, 1); /* version of this rule */
    hash128_add(&hash, meta->fingerprint, sizeof meta->fingerprint);
    hash128_add_number(&hash, meta->rows);
    hash_text(&hash, stk_dtype_name(meta->dtype));
    for (uint32_t i = 0; i < meta->column_count; i++)
        hash_text(&hash, meta->columns[i]);
    hash_scaler(&hash, meta);
    hash_columns(&hash, &series->x);
    hash_columns(&hash, &series->y);
    hash128_add_number(&hash, (uint64_t)series->info.pad);
    hash128_out(&hash, out);
}

/* ---- the windows --------------------------------------------------------------------------- */

/* Entities that have rows in the split: *count of them. */
static struct windows_entity *sampled_entities(const struct series *series, uint64_t *count)
{
    const struct series_meta *meta = &series->meta;
    struct windows_entity *entities = memory_zero(meta->entity_count, sizeof *entities);
    *count = 0;
    for (uint64_t i = 0; entities && i < meta->entity_count; i++) {
        struct series_range rows = series_rows(series, i);
        if (rows.start < rows.end || series->split == SERIES_ALL_ROWS)
            entities[(*count)++] = (struct windows_entity){
                meta->entities[i].name, i, meta->entities[i].start, rows.start, rows.end};
    }
    return entities;
}

static stk_status make_index(struct dataset_source *source, const struct series_fields *fields,
                             struct stk_error *err)
{
    const struct series *series = source->series;
    struct text path = {0};
    uint64_t count;
    text_format(&path, "%s/%s", source->root, SERIES_METADATA);
    struct windows_entity *entities = sampled_entities(series, &count);
    struct windows_spec spec = {
        .root = source->root,
        .path = path.data,
        .objects = series->objects,
        .object_count = series->object_count,
        .entities = entities,
        .entity_count = count,
        .window = series->info.window,
        .horizon = series->info.horizon,
        .stride = series->info.stride,
        .gap = series->info.gap,
        .min_history = series->info.min_history,
        .fields = fields->items,
        .field_count = fields->count,
    };
    fingerprint(series, spec.fingerprint);
    stk_status status = STK_OK;
    if (!entities || path.failed)
        status = fail_memory(err, series->meta.entity_count * sizeof *entities);
    else if (!count)
        status = fail(err, STK_NOT_FOUND, "split \"%s\" has no rows", series->info.split);
    else
        status = windows_index_new(&source->index, &spec, err);
    if (status && err && !*err->object)
        fail_at(err, path.data, STK_NOWHERE);
    memory_free(entities);
    text_free(&path);
    return status;
}

static void tell(const struct dataset_source *source)
{
    const struct series *series = source->series;
    const struct stk_series_info *info = &series->info;
    if (series->unfinished && series->objects[SERIES_ARRAY_OBJECT].size > series->array_bytes)
        context_notice(&source->context,
                       "an append to %s did not finish: the %" PRIu64
                       " rows before it are read; append again to add the rest",
                       source->root, series->meta.rows);
    if (info->short_entities)
        context_notice(
            &source->context,
            "%" PRIu64 " of %" PRIu64 " entities are too short for a window of %" PRIu64
            " rows, a gap of %" PRIu64 " and a horizon of %" PRIu64 ": they give no sample",
            info->short_entities, info->entity_count, info->window, info->gap, info->horizon);
}

stk_status series_open(struct dataset_source *source, const char *folder,
                       const struct stk_dataset_options *options, struct stk_error *err)
{
    if (options->dtype || options->rank)
        return fail(err, STK_USAGE, "dtype and shape are for raw arrays, not for a series");
    struct series *series = memory_zero(1, sizeof *series);
    struct series_fields *fields = memory_zero(1, sizeof *fields);
    stk_status status = STK_OK;
    source->series = series;
    source->root = memory_text(folder, strlen(folder));
    if (!series || !fields || !source->root) {
        status = fail_memory(err, sizeof *series + sizeof *fields);
        goto done;
    }
    status = load(series, folder, err);
    if (!status)
        status = check_dtype(&series->meta, folder, err);
    if (!status)
        status = series_choose(series, options->window, err);
    if (!status)
        status = series_fields_make(source, options, fields, err);
    if (!status)
        status = make_index(source, fields, err);
    if (status)
        goto done;
    series_fields_measure(source);
    series->info.short_entities = windows_index_short(source->index);
    tell(source);
done:
    memory_free(fields);
    return status;
}

void series_free(struct series *series)
{
    if (!series)
        return;
    struct series_columns *both[] = {&series->x, &series->y};
    for (int i = 0; i < 2; i++) {
        window_gather_free(both[i]->gather);
        memory_free(both[i]->numbers);
        memory_free(both[i]->names);
        memory_free(both[i]->center);
        memory_free(both[i]->scale);
    }
    series_meta_reset(&series->meta);
    memory_free(series);
}
