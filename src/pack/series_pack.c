#include "pack/series_pack.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/context.h"
#include "base/fail.h"
#include "base/memory.h"
#include "pack/read_all.h"
#include "pack/series_sort.h"

#define RAW_NAME "raw.rows" /* rows that are not the array: gone when they were converted */
#define MOST_NOTICES 8      /* of columns; more are counted */

static const enum scaler_kind kinds[] = {[STK_SCALER_STANDARD] = SCALER_STANDARD,
                                         [STK_SCALER_MINMAX] = SCALER_MINMAX,
                                         [STK_SCALER_ROBUST] = SCALER_ROBUST,
                                         [STK_SCALER_NONE] = SCALER_NONE};
static const char *const policies[] = {[STK_MISSING_ERROR] = "error",
                                       [STK_MISSING_DROP] = "drop",
                                       [STK_MISSING_FFILL] = "ffill",
                                       [STK_MISSING_MEAN] = "mean",
                                       [STK_MISSING_ZERO] = "zero"};

void series_pack_reset(struct series_pack *pack)
{
    series_ingest_reset(&pack->ingest); /* its files lie in the folder */
    series_folder_close(pack->folder);
    series_meta_reset(&pack->meta);
    memory_free(pack->hashes.blocks);
    memory_free(pack->statics);
    memset(pack, 0, sizeof(*pack));
}

enum scaler_kind series_pack_kind(enum stk_scaler_kind kind)
{
    return kinds[kind];
}

const char *series_pack_policy(enum stk_missing missing)
{
    return policies[missing];
}

stk_status series_pack_dtype(const char *text, enum stk_dtype *out, struct stk_error *err)
{
    *out = text ? stk_dtype_parse(text) : STK_F32;
    if (*out == STK_F32 || *out == STK_F16 || *out == STK_BF16)
        return STK_OK;
    return fail(err, STK_USAGE, "a series is of f32, f16 or bf16, not '%.40s'", text);
}

/* --- rows ------------------------------------------------------------------------------------ */

stk_status series_pack_rows(struct series_pack *pack, const struct series_meta *known,
                            struct stk_error *err)
{
    struct series_ingest *ingest = &pack->ingest;
    stk_status status;

    ingest->options = pack->options;
    ingest->context = pack->context;
    ingest->folder_fd = series_folder_fd(pack->folder);
    ingest->label = series_folder_hidden(pack->folder);
    ingest->known = known;
    status = series_ingest_run(ingest, pack->tables, err);
    for (uint32_t i = 0; !status && i < ingest->column_count; i++)
        pack->missing += ingest->missing[i];
    if (status || (ingest->is_grouped && ingest->is_ordered))
        return status;
    uint64_t count; /* rows that were to stay as they came are to stay as they are sorted */
    int is_final = row_spool_hashes(ingest->spool, &count) != NULL;
    const struct series_sort sort = {.context = pack->context,
                                     .folder_fd = ingest->folder_fd,
                                     .label = ingest->label,
                                     .memory = pack->memory,
                                     .entities = ingest->entities,
                                     .entity_count = ingest->entity_count,
                                     .time_unit = ingest->time_unit,
                                     .is_final = is_final};
    pack->was_sorted = 1;
    return series_sort_run(&sort, &ingest->spool, err);
}

/* --- values ---------------------------------------------------------------------------------- */

static stk_status array_open(const struct series_pack *pack, const char *name, int *fd,
                             struct stk_error *err)
{
    *fd = openat(series_folder_fd(pack->folder), name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (*fd >= 0)
        return STK_OK;
    stk_status status = fail_errno(err, errno, "cannot make the array");
    fail_at(err, series_folder_hidden(pack->folder), STK_NOWHERE);
    return status;
}

static void tell_category(const struct series_pack *pack, const struct series_meta *meta,
                          uint32_t column)
{
    /* The ingest's own counts, or what became the meta's. */
    const uint64_t *missing = pack->ingest.missing ? pack->ingest.missing : meta->missing;
    enum stk_missing policy = pack->options->missing;

    if (missing[column] && policy != STK_MISSING_DROP)
        context_notice(pack->context,
                       "column '%.60s' holds categories: %s takes the code 0, the first of them",
                       meta->columns[column],
                       policy == STK_MISSING_FFILL ? "a missing one before the first"
                                                   : "a missing one");
}

static stk_status values_finish(struct series_pack *pack, const struct series_pack_values *values,
                                int array_fd, struct stk_error *err)
{
    const struct series_meta *meta = values->meta;
    double *means = memory_zero(meta->column_count, sizeof(*means));
    stk_status status;

    if (!means)
        return fail_memory(err, meta->column_count * sizeof(*means));
    for (uint32_t i = 0; i < meta->column_count; i++) {
        int is_category = pack->ingest.is_category[i];
        if (i < meta->scaler.count && !is_category) /* codes have no mean: the first one it is */
            means[i] = meta->scaler.columns[i].mean;
        if (is_category)
            tell_category(pack, meta, i);
    }
    const struct series_finish finish = {
        .context = pack->context,
        .threads = pack->options->threads,
        .memory = pack->memory,
        .spool = pack->ingest.spool,
        .array_fd = array_fd,
        .label = series_folder_path(pack->folder),
        .dtype = meta->dtype,
        .columns = (const char *const *)meta->columns,
        .scaler = meta->late || !meta->scaler.count || meta->scaler.kind == SCALER_NONE
                      ? NULL
                      : &meta->scaler,
        .missing = pack->options->missing,
        .has_missing = pack->missing > 0 && pack->options->missing != STK_MISSING_DROP,
        .means = means,
        .entities = values->entities,
        .entity_count = values->entity_count,
        .last = values->last,
        .last_user = values->last_user};
    status = series_finish_run(&finish, &pack->hashes.blocks, &pack->hashes.count, err);
    memory_free(means);
    return status;
}

/* Hashes that were made while the rows were spooled, when nothing is left to do with them. */
static int values_are_final(struct series_pack *pack, const struct series_meta *meta)
{
    uint64_t count;
    const uint64_t *blocks = row_spool_hashes(pack->ingest.spool, &count);
    int is_scaled = !meta->late && meta->scaler.count && meta->scaler.kind != SCALER_NONE;

    if (!blocks || is_scaled || (pack->missing && pack->options->missing != STK_MISSING_DROP))
        return 0;
    pack->hashes.blocks = memory_alloc(count * sizeof(*blocks));
    if (!pack->hashes.blocks) /* then they are made again */
        return 0;
    memcpy(pack->hashes.blocks, blocks, count * sizeof(*blocks));
    pack->hashes.count = count;
    return 1;
}

stk_status series_pack_values(struct series_pack *pack, const struct series_pack_values *values,
                              const char *name, const char *times_name, struct stk_error *err)
{
    struct row_spool *spool = pack->ingest.spool;
    int in_place = row_spool_dtype(spool) == values->meta->dtype;
    int fd = row_spool_values_fd(spool);
    stk_status status = row_spool_rename(spool, in_place ? name : RAW_NAME, times_name, err);

    if (!status && !in_place)
        status = array_open(pack, name, &fd, err);
    if (!status && !(in_place && values_are_final(pack, values->meta)))
        status = values_finish(pack, values, fd, err);
    if (!in_place && fd >= 0 && fd != row_spool_values_fd(spool) && close(fd) && !status)
        status = fail_errno(err, errno, "writing the array failed");
    if (status)
        return status;
    row_spool_keep(spool);
    row_spool_free(spool);
    pack->ingest.spool = NULL;
    if (!in_place)
        (void)unlinkat(series_folder_fd(pack->folder), RAW_NAME, 0);
    return STK_OK;
}

stk_status series_pack_static(const struct series_pack *pack, const char *entity, uint32_t column,
                              double value, float *out, struct stk_error *err)
{
    *out = (float)value;
    if (!isfinite(value) || isfinite(*out))
        return STK_OK;
    stk_status status =
        fail(err, STK_CORRUPT,
             "entity '%.80s', static column '%.60s': the value %g does not fit float32", entity,
             pack->meta.statics[column], value);
    fail_remedy(err, "leave the column out, or scale it");
    return status;
}

/* --- what the user should know --------------------------------------------------------------- */

/* Bits of a number that are left for differences around the center: six, or it is told. */
static double coarse_bound(enum stk_dtype dtype)
{
    return dtype == STK_F32 ? 0x1p18 : dtype == STK_F16 ? 0x1p5 : 0x1p2;
}

static int tell_scale(const struct series_pack *pack, const struct series_meta *meta,
                      uint32_t number, int is_quiet)
{
    const struct scaler_column *column = &meta->scaler.columns[number];
    const char *name = meta->columns[number];

    if (meta->scaler.kind == SCALER_NONE)
        return 0;
    if (column->count == 0 && !is_quiet)
        context_notice(pack->context,
                       "column '%.60s' has no value in the rows that the scaler is fitted on: "
                       "center 0, scale 1",
                       name);
    if (column->count == 0)
        return 1;
    if (column->scale != 1 || column->min != column->max)
        return 0;
    if (!is_quiet)
        context_notice(pack->context, "column '%.60s' is constant (%g): its scale is 1", name,
                       column->min);
    return 1;
}

static int tell_coarse(const struct series_pack *pack, const struct series_meta *meta,
                       uint32_t number, int is_quiet)
{
    const struct scaler_column *column = &meta->scaler.columns[number];

    if (fabs(column->center) / column->scale <= coarse_bound(meta->dtype))
        return 0;
    if (!is_quiet)
        context_notice(pack->context,
                       "column '%.60s' is around %g with a spread of %g: %s is too coarse for its "
                       "raw values; use --scale stored",
                       meta->columns[number], column->center, column->scale,
                       stk_dtype_name(meta->dtype));
    return 1;
}

void series_pack_notices(const struct series_pack *pack, const struct series_meta *meta)
{
    /* Rows that came as float32 lose nothing in it. */
    int may_lose = meta->late && (meta->dtype != STK_F32 || !pack->ingest.spool ||
                                  row_spool_dtype(pack->ingest.spool) != STK_F32);
    int told = 0;

    for (uint32_t i = 0; i < meta->scaler.count; i++) {
        if (pack->ingest.is_category[i])
            continue;
        told += tell_scale(pack, meta, i, told >= MOST_NOTICES);
        if (may_lose)
            told += tell_coarse(pack, meta, i, told >= MOST_NOTICES);
    }
    if (told > MOST_NOTICES)
        context_notice(pack->context, "%d more columns are like these", told - MOST_NOTICES);
}

stk_status series_time_file_read(void *user, uint64_t first, uint64_t n, int64_t *out,
                                 struct stk_error *err)
{
    const struct series_time_file *file = user;
    const struct read_file times = {file->fd, file->label};

    return read_all_at(&times, first * sizeof(*out), out, n * sizeof(*out), err);
}
